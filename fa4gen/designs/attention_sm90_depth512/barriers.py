"""The barrier table at depth 512: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    BUFFERS,
    CONSUMER_WARPGROUPS,
    RING_SLOTS,
)
from fa4gen.designs.common.barriers import barrier_row, tile_rows

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values
    from fa4gen.designs.common.model import Barrier

CONSUMER_WARPS = 4
"""Warps of a consumer warpgroup. One lane of each arrives for it."""
QUERY_BARRIERS = 4
"""Queries land in four parts, so that the first Q.K begins before all are there."""


def pair_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (*_loaded_rows(values), *_crossing_rows(values), *_tile_rows(values))


def _loaded_rows(values: Values) -> tuple[Barrier, ...]:
    """Return the barriers of what TMA brings in."""
    return (
        barrier_row(
            "query_full",
            QUERY_BARRIERS,
            1,
            "tma_bytes",
            "the loader, then the bytes of two panels of Q",
            "both warpgroups",
            "two panels of the tile's queries have landed",
            transaction_bytes=values.num_panels // QUERY_BARRIERS * values.query_panel_bytes,
        ),
        barrier_row(
            "ring_full",
            RING_SLOTS,
            1,
            "tma_bytes",
            "the loader, then the bytes of the slot",
            "both warpgroups",
            "a panel of keys, or a chunk of values, has landed in its slot",
            transaction_bytes=values.slot_bytes,
        ),
        barrier_row(
            "ring_empty",
            RING_SLOTS,
            CONSUMER_WARPS * CONSUMER_WARPGROUPS,
            "thread",
            "every consumer warp, once its product has read the slot",
            "the loader",
            "a slot may be overwritten, and the panel of Q that it was multiplied by",
            first_wait=1,
        ),
    )


def _crossing_rows(values: Values) -> tuple[Barrier, ...]:
    """Return the barriers of what a warpgroup and its like in the peer exchange."""

    def message(name: str, what: str, size: int) -> Barrier:
        return barrier_row(
            f"{name}_full",
            BUFFERS * CONSUMER_WARPGROUPS,
            1,
            "store_bytes",
            f"the warpgroup itself, then the bytes of the peer's {what}",
            "the warpgroup",
            f"the peer's {what} have arrived",
            transaction_bytes=size,
            cta="pair",
        )

    return (
        message("maximum", "row maxima of a block", values.row_message_bytes),
        message("probability", "probabilities of a block", values.probability_bytes),
        barrier_row(
            "buffers_free",
            BUFFERS * CONSUMER_WARPGROUPS,
            CONSUMER_WARPS,
            "thread",
            "every warp of the peer's warpgroup, once it has read the maxima of a block "
            "and multiplied the probabilities of the one before",
            "the warpgroup",
            "probabilities of the next block, and maxima of the one after it, may cross",
            cta="pair",
        ),
        message("sum", "row sums of a tile", values.row_message_bytes),
    )


def _tile_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the slots that tiles pass through."""
    return tile_rows(
        CONSUMER_WARPS * CONSUMER_WARPGROUPS,
        shared=values.scheduler == "dynamic",
        readers="every consumer",
        reader_warps="every consumer warp",
        both="of both CTAs",
        loader="the loader; in the peer, then the bytes from the leader's loader",
    )
