"""The division of a matrix product's output into tiles for CTAs: integer arithmetic only.

The kernel accepts any group; the choice here only decides the speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.runtime.schedule import ceil_div, resident_ctas

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

GROUP_ROWS = 2048
"""Rows of the output that are processed together, at most: a wave of tiles is then about square."""
GROUP_L2_BYTES = 32 << 20
"""The part of a 50 MB L2 for the rows of A that are read while B streams through."""


@dataclass(frozen=True)
class GemmSize:
    """Extents of one product: an output of (batch, m, n), sums over k."""

    batch: int
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class GemmSchedule:
    """The kernel's parameters that describe its tiles, and the number of CTAs."""

    row_tiles: int
    """Tiles along m: of a CTA, or of a pair."""
    column_tiles: int
    num_tiles: int
    """The tiles of all matrices of the batch; the most that there may be with groups."""
    group_rows: int
    """Row tiles that are processed together."""
    grid: int
    """CTAs; 0 when there is nothing to do."""


def plan_gemm_schedule(plan: GemmPlan, size: GemmSize, multiprocessors: int) -> GemmSchedule:
    """Divide and order the tiles of a product for a GPU with ``multiprocessors`` multiprocessors.

    A static scheduler has a CTA for each multiprocessor; a dynamic one is launched with a CTA, or
    pair of CTAs, for each tile, and those that run take the tiles of those that are cancelled.
    """
    tile_rows = plan.tile_rows
    row_tiles, column_tiles = ceil_div(size.m, tile_rows), ceil_div(size.n, plan.tile_columns)
    num_tiles = _row_tiles(plan, size, row_tiles) * column_tiles
    cluster = plan.launch.cluster
    ctas = num_tiles * cluster
    if plan.scheduler == "static":
        ctas = min(resident_ctas(multiprocessors, cluster), ctas)
    depth = size.k // max(1, size.batch) if plan.sums_by_group else size.k
    rows = min(GROUP_ROWS, GROUP_L2_BYTES // max(1, depth * plan.element_bytes))
    return GemmSchedule(
        row_tiles=row_tiles,
        column_tiles=column_tiles,
        num_tiles=num_tiles,
        group_rows=max(1, min(rows // tile_rows, row_tiles)),
        grid=ctas,
    )


def _row_tiles(plan: GemmPlan, size: GemmSize, row_tiles: int) -> int:
    """Return the row tiles of all matrices, of which each has ``row_tiles``.

    Groups that divide the rows of one matrix have a tile each that is not full, at most.
    """
    if plan.groups == "offsets":
        return min(size.m, size.m // plan.tile_rows + size.batch) if size.batch else 0
    return row_tiles * size.batch
