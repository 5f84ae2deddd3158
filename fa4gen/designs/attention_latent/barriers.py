"""The barrier table of the latent kernel: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.values import STAGES
from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.common.roles import WARPGROUP_WARPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent.values import LatentValues
    from fa4gen.designs.common.model import Barrier


def latent_barriers(values: LatentValues) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory.

    The rows of the right half are as far apart as those of the left, which the kernel relies on.
    """
    probabilities = barrier_row(
        "probabilities_full",
        STAGES,
        WARPGROUP_WARPS,
        "thread",
        "every warp of the warpgroup that computed them",
        "the other warpgroup",
        "the probabilities of its block, and maxima, are in shared memory",
    )
    return (
        *_half_rows(values, "left", 0),
        *_half_rows(values, "right", 1),
        *_tail_rows(values),
        probabilities,
    )


def _half_rows(values: LatentValues, half: str, number: int) -> Iterator[Barrier]:
    yield barrier_row(
        f"{half}_full",
        STAGES * values.half_parts,
        1,
        "tma_bytes",
        "the loader, then the bytes of these columns",
        f"the warpgroup whose block it is, then warpgroup {number}",
        f"two panels of the {half} columns of a block are in its slot",
        transaction_bytes=values.half_bytes // values.half_parts,
    )
    yield barrier_row(
        f"{half}_empty",
        STAGES * values.half_parts,
        WARPGROUP_WARPS * values.cluster,
        "thread",
        f"every warp of warpgroup {number}{_of_both(values)}, once it has multiplied by these "
        "columns as values",
        "the loader",
        f"two panels of the {half} columns of a slot may be overwritten",
        first_wait=1,
    )


def _tail_rows(values: LatentValues) -> Iterator[Barrier]:
    yield barrier_row(
        "tail_full",
        STAGES,
        1,
        "tma_bytes",
        "the loader, then the bytes of these columns",
        "the warpgroup whose block it is",
        "the columns of a block that are no values are in its slot",
        transaction_bytes=values.tail_bytes,
    )
    yield barrier_row(
        "tail_empty",
        STAGES,
        WARPGROUP_WARPS * values.cluster,
        "thread",
        f"every warp of warpgroup 0{_of_both(values)}, once it has the scores of its block, or has "
        "multiplied by the probabilities of the other's, which are in their place",
        "the loader",
        "these columns of a slot may be overwritten",
        first_wait=1,
    )


def _of_both(values: LatentValues) -> str:
    """Return the words for arrivals of two CTAs; arrivals of an unpaired tile are one CTA's."""
    return " of both CTAs" if values.cluster == 2 else ""
