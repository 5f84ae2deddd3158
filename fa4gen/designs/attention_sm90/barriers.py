"""The barrier table of the Hopper attention kernel: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.shared.model import Barrier

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values

CONSUMER_WARPS = 4
"""Warps of a consumer warpgroup. One lane of each arrives for it."""
TILE_SLOTS = 2
"""Tiles on their way from the loader to the consumers."""
UNPLACED = 0
"""The offset of a row before the table is laid out."""


def attention_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (
        *_query_rows(values),
        *_ring_rows(values, "key", "Q.K"),
        *_ring_rows(values, "value", "P.V"),
        *_tile_rows(values),
    )


def _query_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the query slots, one a warpgroup."""
    staged = values.epilogue == "tma_store"
    full = Barrier(
        name="query_full",
        slots=values.num_consumer_warpgroups,
        arrivals=1,
        arrive_how="tma_bytes",
        arrived_by="the loader, then the bytes of Q",
        waited_by="the warpgroup",
        meaning="a warpgroup's query rows have landed",
        first_wait_parity=0,
        transaction_bytes=values.query_bytes,
        cta="own",
        offset=UNPLACED,
    )
    empty = Barrier(
        name="query_empty",
        slots=values.num_consumer_warpgroups,
        arrivals=1 if staged else CONSUMER_WARPS,
        arrive_how="thread",
        arrived_by="the thread whose TMA store has read the slot"
        if staged
        else "each warp of the warpgroup, after its last Q.K",
        waited_by="the loader",
        meaning="a warpgroup's query slot may be overwritten",
        first_wait_parity=1,
        transaction_bytes=0,
        cta="own",
        offset=UNPLACED,
    )
    return full, empty


def _ring_rows(values: Values, ring: str, product: str) -> tuple[Barrier, Barrier]:
    """Return full and empty of a ring; in a pair, each CTA fills half of both CTAs' slots."""
    half = ", half of them from the peer" if values.is_pair else ""
    full = Barrier(
        name=f"{ring}_full",
        slots=values.num_kv_stages,
        arrivals=1,
        arrive_how="tma_bytes",
        arrived_by=f"the loader, then the bytes of the block{half}",
        waited_by="every consumer",
        meaning=f"a block of {ring}s has landed in its slot",
        first_wait_parity=0,
        transaction_bytes=values.block_bytes,
        cta="pair" if values.is_pair else "own",
        offset=UNPLACED,
    )
    empty = Barrier(
        name=f"{ring}_empty",
        slots=values.num_kv_stages,
        arrivals=_warps(values) * values.config.cta_group,
        arrive_how="thread",
        arrived_by=f"{_every_warp(values)}, once {product} has read the block",
        waited_by="the loader",
        meaning=f"a {ring} slot may be overwritten",
        first_wait_parity=1,
        transaction_bytes=0,
        cta="pair" if values.is_pair else "own",
        offset=UNPLACED,
    )
    return full, empty


def _tile_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the slots that tiles pass through.

    In a pair with a dynamic scheduler the leader's loader hands out the tiles of both CTAs.
    """
    shared = values.is_pair and values.scheduler == "dynamic"
    full = Barrier(
        name="tile_full",
        slots=TILE_SLOTS,
        arrivals=1,
        arrive_how="thread",
        arrived_by="the leader's loader" if shared else "the loader",
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
        arrivals=_warps(values) * values.config.cta_group + 1 if shared else _warps(values),
        arrive_how="thread",
        arrived_by=f"{_every_warp(values)}, and the peer's loader"
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


def _warps(values: Values) -> int:
    return CONSUMER_WARPS * values.num_consumer_warpgroups


def _every_warp(values: Values) -> str:
    return "every consumer warp of both CTAs" if values.is_pair else "every consumer warp"
