"""The barrier table of the latent kernel on Blackwell: each row is declared here, once.

What the leader's MMA warp waits for counts the warps, or bytes, of both CTAs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent_sm100.values import PAIR, PARTS, STAGES
from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.common.roles import WARPGROUP_WARPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_latent_sm100.values import LatentPairValues
    from fa4gen.designs.common.model import Barrier

BUFFERS = 2


def latent_barriers(values: LatentPairValues) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (
        *_ring_rows(
            "key", STAGES * PARTS, values.key_bytes // PARTS,
            "a part of the columns of half of a block's keys", "Q.K",
        ),
        *_ring_rows(
            "value", STAGES, values.value_bytes,
            "half of the value columns of a block", "P.V",
        ),
        barrier_row(
            "scores_full", BUFFERS, 1, "multicast_commit", "commit of Q.K", "the consumers",
            "the scores of a block are in tensor memory",
        ),
        _from_consumers("query_full", "the rows of both CTAs are in shared memory"),
        _from_consumers(
            "probabilities_full",
            "P is stored, its scores have been loaded, and the output rescaled, or read",
        ),
        barrier_row(
            "output_full", 1, 1, "multicast_commit", "commit of P.V", "the consumers",
            "P of a block has been read, and P.V added to the output",
        ),
    )  # fmt: skip


def _from_consumers(name: str, meaning: str) -> Barrier:
    return barrier_row(
        name,
        1,
        PAIR * WARPGROUP_WARPS,
        "thread",
        "every consumer warp of both CTAs",
        "the MMA warp",
        meaning,
        cta="leader",
    )


def _ring_rows(name: str, slots: int, size: int, what: str, product: str) -> Iterator[Barrier]:
    yield barrier_row(
        f"{name}_full",
        slots,
        1,
        "tma_bytes",
        "the leader's loader, then the bytes of both CTAs",
        "the MMA warp",
        f"{what} has landed in each CTA",
        transaction_bytes=PAIR * size,
        cta="leader",
    )
    yield barrier_row(
        f"{name}_empty",
        slots,
        1,
        "multicast_commit",
        f"commit of {product}",
        "the loader",
        "the slot may be overwritten",
        first_wait=1,
    )
