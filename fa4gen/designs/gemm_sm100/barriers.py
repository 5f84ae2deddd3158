"""The barrier table of the Blackwell matrix product: each row is declared here, once.

Full and empty rows of a ring follow each other, as its struct expects. In a pair the leader's
MMA warp issues for both CTAs: what it waits for counts the arrivals of both, and its commits
arrive on the rows of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.gemm_sm100.values import LANES

if TYPE_CHECKING:
    from fa4gen.designs.common.model import ArriveHow, Barrier
    from fa4gen.designs.gemm_sm100.values import Values

TILE_SLOTS = 2
"""Tiles on their way from the scheduler to the other roles."""
ORDER_SLOTS = 2
"""Tiles by which the loads of A and B may be ahead of those of the residual."""


def gemm_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    rows = [*_input_rows(values), *_accumulator_rows(values)]
    if values.c.exists:
        rows += [*_residual_rows(values), *_order_rows()]
    if values.scheduler == "dynamic":
        rows += _tile_rows(values)
    return tuple(rows)


def _commit(values: Values) -> ArriveHow:
    return "multicast_commit" if values.is_pair else "mma_commit"


def _both(values: Values) -> str:
    return " in both CTAs" if values.is_pair else ""


def _loaded(values: Values) -> str:
    return "A, B and scales" if values.scales.kind else "A and B"


def _input_rows(values: Values) -> tuple[Barrier, Barrier]:
    pair = values.is_pair
    full = barrier_row(
        "input_full",
        values.num_stages,
        1,
        "tma_bytes",
        f"the loader, then the bytes of {_loaded(values)}" + _both(values),
        "the MMA warp",
        f"a block of {_loaded(values)} has landed",
        transaction_bytes=values.cta_group * values.stage_bytes,
        cta="leader" if pair else "own",
    )
    empty = barrier_row(
        "input_empty",
        values.num_stages,
        1,
        _commit(values),
        "commit of the products that read the block",
        "the loader" + ", and the MMA warp before it copies scales" * bool(values.scales.kind),
        f"a slot of {_loaded(values)} may be overwritten",
        first_wait=1,
        cta="pair" if pair else "own",
    )
    return full, empty


def _accumulator_rows(values: Values) -> tuple[Barrier, Barrier]:
    full = barrier_row(
        "accum_full",
        values.num_accum_slots,
        1,
        _commit(values),
        "commit of the tile's last product",
        "the epilogue",
        "a tile's sums are in tensor memory",
        cta="pair" if values.is_pair else "own",
    )
    empty = barrier_row(
        "accum_empty",
        values.num_accum_slots,
        LANES * values.cta_group,
        "thread",
        "every thread of the epilogue" + _both(values),
        "the MMA warp",
        "the sums have been read, and may be overwritten"
        if not values.overlap_columns
        else "the sums that both accumulators have room for have been read",
        first_wait=1,
        cta="leader" if values.is_pair else "own",
    )
    return full, empty


def _residual_rows(values: Values) -> tuple[Barrier, Barrier]:
    full = barrier_row(
        "residual_full",
        values.num_epi_stages,
        1,
        "tma_bytes",
        "the residual's loader, then the bytes of its part of C",
        "the epilogue",
        "a part of C has landed",
        transaction_bytes=values.residual_copy_bytes,
    )
    empty = barrier_row(
        "residual_empty",
        values.num_epi_stages,
        LANES,
        "thread",
        "every thread of the epilogue",
        "the residual's loader",
        "a slot of C may be overwritten",
        first_wait=1,
    )
    return full, empty


def _order_rows() -> tuple[Barrier, Barrier]:
    full = barrier_row(
        "order_full",
        ORDER_SLOTS,
        1,
        "thread",
        "the loader, after the first blocks of a tile",
        "the residual's loader",
        "a tile's C may be loaded: its A and B were asked for first",
    )
    empty = barrier_row(
        "order_empty",
        ORDER_SLOTS,
        1,
        "thread",
        "the residual's loader",
        "the loader",
        "the residual's loader is at most one tile behind: no phase is missed",
        first_wait=1,
    )
    return full, empty


def _tile_rows(values: Values) -> tuple[Barrier, Barrier, Barrier]:
    """Return the rows of tiles: in a pair the answer to the leader goes to both CTAs.

    Readers: four warps of the epilogue, the loader and the residual's in each CTA, and the one
    MMA warp that issues.
    """
    pair = values.is_pair
    readers = values.cta_group * (5 + values.c.exists) + 1
    full = barrier_row(
        "tile_full",
        TILE_SLOTS,
        1,
        "tma_bytes",
        ("the leader's scheduler" if pair else "the scheduler") + ", then the hardware's answer",
        "every other role, and the scheduler",
        "the answer is there: the next tile, or that there is none",
        transaction_bytes=16,
        cta="pair" if pair else "own",
    )
    empty = barrier_row(
        "tile_empty",
        TILE_SLOTS,
        readers,
        "thread",
        "every warp of the other roles" + _both(values),
        "the scheduler",
        "the answer has been read",
        first_wait=1,
        cta="leader" if pair else "own",
    )
    wanted = barrier_row(
        "tile_wanted",
        1,
        1,
        "thread",
        "the loader, when it begins with a tile",
        "the scheduler",
        "the tile after it may be asked for, no sooner",
        cta="leader" if pair else "own",
    )
    return full, empty, wanted
