"""The barrier table at depth 512: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    BUFFERS,
    CONSUMER_WARPGROUPS,
    CTA_GROUP,
    RING_SLOTS,
)
from fa4gen.designs.shared.model import Barrier

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values

CONSUMER_WARPS = 4
"""Warps of a consumer warpgroup. One lane of each arrives for it."""
TILE_SLOTS = 2
"""Tiles on their way from the loader to the consumers."""
QUERY_BARRIERS = 4
"""Queries land in four parts, so that the first Q.K begins before all are there."""
UNPLACED = 0
"""The offset of a row before the table is laid out."""


def pair_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (*_loaded_rows(values), *_crossing_rows(values), *_tile_rows(values))


def _loaded_rows(values: Values) -> tuple[Barrier, ...]:
    """Return the barriers of what TMA brings in."""
    return (
        Barrier(
            name="query_full",
            slots=QUERY_BARRIERS,
            arrivals=1,
            arrive_how="tma_bytes",
            arrived_by="the loader, then the bytes of two panels of Q",
            waited_by="both warpgroups",
            meaning="two panels of the tile's queries have landed",
            first_wait_parity=0,
            transaction_bytes=values.num_panels // QUERY_BARRIERS * values.query_panel_bytes,
            cta="own",
            offset=UNPLACED,
        ),
        Barrier(
            name="ring_full",
            slots=RING_SLOTS,
            arrivals=1,
            arrive_how="tma_bytes",
            arrived_by="the loader, then the bytes of the slot",
            waited_by="both warpgroups",
            meaning="a panel of keys, or a chunk of values, has landed in its slot",
            first_wait_parity=0,
            transaction_bytes=values.slot_bytes,
            cta="own",
            offset=UNPLACED,
        ),
        Barrier(
            name="ring_empty",
            slots=RING_SLOTS,
            arrivals=CONSUMER_WARPS * CONSUMER_WARPGROUPS,
            arrive_how="thread",
            arrived_by="every consumer warp, once its product has read the slot",
            waited_by="the loader",
            meaning="a slot may be overwritten, and the panel of Q that it was multiplied by",
            first_wait_parity=1,
            transaction_bytes=0,
            cta="own",
            offset=UNPLACED,
        ),
    )


def _crossing_rows(values: Values) -> tuple[Barrier, ...]:
    """Return the barriers of what a warpgroup and its like in the peer exchange."""

    def message(name: str, what: str, size: int) -> Barrier:
        return Barrier(
            name=f"{name}_full",
            slots=BUFFERS * CONSUMER_WARPGROUPS,
            arrivals=1,
            arrive_how="store_bytes",
            arrived_by=f"the warpgroup itself, then the bytes of the peer's {what}",
            waited_by="the warpgroup",
            meaning=f"the peer's {what} have arrived",
            first_wait_parity=0,
            transaction_bytes=size,
            cta="pair",
            offset=UNPLACED,
        )

    return (
        message("maximum", "row maxima of a block", values.row_message_bytes),
        message("probability", "probabilities of a block", values.probability_bytes),
        Barrier(
            name="buffers_free",
            slots=BUFFERS * CONSUMER_WARPGROUPS,
            arrivals=CONSUMER_WARPS,
            arrive_how="thread",
            arrived_by="every warp of the peer's warpgroup, once it has read the maxima of a block "
            "and multiplied the probabilities of the one before",
            waited_by="the warpgroup",
            meaning="probabilities of the next block, and maxima of the one after it, may cross",
            first_wait_parity=0,
            transaction_bytes=0,
            cta="pair",
            offset=UNPLACED,
        ),
        message("sum", "row sums of a tile", values.row_message_bytes),
    )


def _tile_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the slots that tiles pass through.

    With a dynamic scheduler the leader's loader hands out the tiles of both CTAs.
    """
    shared = values.scheduler == "dynamic"
    warps = CONSUMER_WARPS * CONSUMER_WARPGROUPS
    full = Barrier(
        name="tile_full",
        slots=TILE_SLOTS,
        arrivals=1,
        arrive_how="thread",
        arrived_by="the loader; in the peer, then the bytes from the leader's loader"
        if shared
        else "the loader",
        waited_by="every consumer, the peer's loader" if shared else "every consumer",
        meaning="the next tile is in its slot",
        first_wait_parity=0,
        transaction_bytes=0,
        cta="pair" if shared else "own",
        offset=UNPLACED,
    )
    empty = Barrier(
        name="tile_empty",
        slots=TILE_SLOTS,
        arrivals=warps * CTA_GROUP + 1 if shared else warps,
        arrive_how="thread",
        arrived_by="every consumer warp of both CTAs, and the peer's loader"
        if shared
        else "every consumer warp",
        waited_by="the leader's loader" if shared else "the loader",
        meaning="the tile has been read",
        first_wait_parity=1,
        transaction_bytes=0,
        cta="leader" if shared else "own",
        offset=UNPLACED,
    )
    return full, empty
