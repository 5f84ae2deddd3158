"""The tiles of a matrix product: all of the output, once, whatever the group of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.runtime.gemm_schedule import GROUP_ROWS, GemmSize, plan_gemm_schedule
from tests.runtime.views import gemm_plan

PLANS = [
    gemm_plan(cta_group=1, BM=128, BN=128),
    gemm_plan(cta_group=2, BM=128, BN=256),
    gemm_plan(cta_group=4, BM=64, BN=96),
    gemm_plan(split_k=2, BM=128, BN=80),
    gemm_plan(swap_operands=True, cta_group=2, BM=144, BN=64),
    gemm_plan(arch="sm_100a", cta_group=2, BM=128, BN=256),
    gemm_plan(arch="sm_100a", cta_group=1, BM=64, BN=64, scheduler="dynamic"),
    gemm_plan(arch="sm_100a", cta_group=2, scheduler="dynamic"),
]


def tile_at(schedule, index):
    """(batch, row tile, column tile), computed as templates/common/gemm/tiles.cuh.j2 does."""
    batch, in_matrix = divmod(index, schedule.row_tiles * schedule.column_tiles)
    first = in_matrix // (schedule.group_rows * schedule.column_tiles) * schedule.group_rows
    rows = min(schedule.group_rows, schedule.row_tiles - first)
    in_group = in_matrix - first * schedule.column_tiles
    return batch, first + in_group % rows, in_group // rows


sizes = st.builds(
    GemmSize, st.integers(1, 3), st.integers(1, 5000), st.integers(1, 2000), st.integers(0, 99)
)


@given(st.sampled_from(PLANS), sizes, st.sampled_from([1, 2, 4, 132, 148]))
def test_every_part_of_the_output_has_one_tile(plan, size, multiprocessors):
    schedule = plan_gemm_schedule(plan, size, max(multiprocessors, plan.launch.cluster))
    rows, columns = plan.tile_rows, plan.tile_columns
    assert (schedule.row_tiles - 1) * rows < size.m <= schedule.row_tiles * rows
    assert (schedule.column_tiles - 1) * columns < size.n <= schedule.column_tiles * columns
    tiles = [tile_at(schedule, index) for index in range(schedule.num_tiles)]
    assert len(set(tiles)) == len(tiles)
    assert len(tiles) == size.batch * schedule.row_tiles * schedule.column_tiles
    assert set(tiles) == {
        (batch, row, column)
        for batch in range(size.batch)
        for row in range(schedule.row_tiles)
        for column in range(schedule.column_tiles)
    }


@given(st.sampled_from(PLANS), sizes, st.integers(2, 160))
def test_the_grid_is_whole_clusters_none_of_them_idle(plan, size, multiprocessors):
    schedule = plan_gemm_schedule(plan, size, multiprocessors)
    assert schedule.grid % plan.launch.cluster == 0
    assert 0 < schedule.grid <= schedule.num_tiles * plan.launch.cluster
    if plan.scheduler == "dynamic":
        assert schedule.grid == schedule.num_tiles * plan.cta_group
    else:
        assert schedule.grid <= max(multiprocessors, plan.launch.cluster)


def test_clusters_of_four_are_as_many_as_run_at_once() -> None:
    """30 on the 132 multiprocessors of an H200; those that came later would double the time."""
    plan = gemm_plan(cta_group=4, BM=64, BN=96)
    assert plan_gemm_schedule(plan, GemmSize(1, 10_000, 10_000, 64), 132).grid == 120


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("size", [GemmSize(0, 9, 9, 9), GemmSize(1, 0, 9, 9), GemmSize(1, 9, 0, 9)])
def test_without_an_output_nothing_is_launched(plan, size):
    assert plan_gemm_schedule(plan, size, 132).grid == 0


@pytest.mark.parametrize("plan", PLANS)
def test_without_k_the_output_is_written_all_the_same(plan):
    assert plan_gemm_schedule(plan, GemmSize(1, 9, 9, 0), 132).grid == plan.launch.cluster


def test_a_group_keeps_as_many_rows_whatever_the_tile():
    size = GemmSize(1, 8192, 8192, 8192)
    for plan in PLANS:
        rows = plan_gemm_schedule(plan, size, 132).group_rows * plan.tile_rows
        assert GROUP_ROWS - plan.tile_rows < rows <= GROUP_ROWS
