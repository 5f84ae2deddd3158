"""The barrier table of the Hopper attention kernel: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.barriers import barrier_row, tile_rows

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.common.model import Barrier

CONSUMER_WARPS = 4
"""Warps of a consumer warpgroup. One lane of each arrives for it."""


def attention_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (
        *_query_rows(values),
        *_ring_rows(values, "key", "Q.K", values.key_bytes),
        *_ring_rows(values, "value", "P.V", values.value_bytes),
        *_tile_rows(values),
    )


def _query_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the query slots, one a warpgroup."""
    staged = values.epilogue == "tma_store"
    full = barrier_row(
        "query_full",
        values.num_consumer_warpgroups,
        1,
        "tma_bytes",
        "the loader, then the bytes of Q",
        "the warpgroup",
        "a warpgroup's query rows have landed",
        transaction_bytes=values.query_bytes,
    )
    empty = barrier_row(
        "query_empty",
        values.num_consumer_warpgroups,
        1 if staged else CONSUMER_WARPS,
        "thread",
        "the thread whose TMA store has read the slot"
        if staged
        else "each warp of the warpgroup, after its last Q.K",
        "the loader",
        "a warpgroup's query slot may be overwritten",
        first_wait=1,
    )
    return full, empty


def _ring_rows(
    values: Values, ring: str, product: str, block_bytes: int
) -> tuple[Barrier, Barrier]:
    """Return full and empty of a ring; in a pair, each CTA fills half of both CTAs' slots."""
    half = ", half of them from the peer" if values.is_pair else ""
    full = barrier_row(
        f"{ring}_full",
        values.num_kv_stages,
        1,
        "tma_bytes",
        f"the loader, then the bytes of the block{half}",
        "every consumer",
        f"a block of {ring}s has landed in its slot",
        transaction_bytes=block_bytes,
        cta="pair" if values.is_pair else "own",
    )
    empty = barrier_row(
        f"{ring}_empty",
        values.num_kv_stages,
        _warps(values) * values.config.cta_group,
        "thread",
        f"{_every_warp(values)}, once {product} has read the block",
        "the loader",
        f"a {ring} slot may be overwritten",
        first_wait=1,
        cta="pair" if values.is_pair else "own",
    )
    return full, empty


def _tile_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the slots that tiles pass through."""
    return tile_rows(
        _warps(values),
        shared=values.is_pair and values.scheduler == "dynamic",
        readers="every consumer",
        reader_warps="every consumer warp",
        both="of both CTAs",
    )


def _warps(values: Values) -> int:
    return CONSUMER_WARPS * values.num_consumer_warpgroups


def _every_warp(values: Values) -> str:
    return "every consumer warp of both CTAs" if values.is_pair else "every consumer warp"
