"""Every row is covered exactly once, and the schedule is the best by the model of the GPU."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.runtime.schedule import (
    FULL_TILE_COST,
    GROUP_L2_BYTES,
    INT32_MAX,
    MAX_SHORT_TILES,
    SHORT_TILE_COST,
    ProblemSize,
    full_tiles,
    heads_per_group,
    least_makespan,
    least_padding,
    makespan,
    plan_schedule,
    short_tile_candidates,
)
from tests.runtime.views import make_plan


def plan_of(depth, mask, cta_group, scheduler):
    keys = {"mask": mask, "cta_group": cta_group, "scheduler": scheduler}
    return make_plan(depth=depth, num_kv_stages=1, **keys)


PLANS = [
    plan_of(depth, mask, cta_group, scheduler)
    for depth in (64, 128, 256)
    for mask in ("none", "causal")
    for cta_group in (1, 2)
    for scheduler in ("static", "dynamic")
]

sizes = st.builds(
    ProblemSize,
    batch=st.integers(0, 4),
    query_heads=st.integers(0, 9),
    heads_per_key_head=st.just(1),
    query_rows=st.integers(0, 3000),
    key_rows=st.integers(0, 3000),
)


def tiles_of_head(plan, schedule):
    """The rows of each tile of a head, as the kernel's tile_at counts them."""
    for unit in range(schedule.tiles_per_head):
        first = unit * plan.BM - 64 * min(unit, schedule.num_short_tiles)
        rows = plan.BM - (64 if unit < schedule.num_short_tiles else 0)
        yield first, first + rows


@given(st.sampled_from(PLANS), sizes, st.integers(2, 200))
def test_tiles_cover_every_row_once(plan, size, multiprocessors):
    schedule = plan_schedule(plan, size, multiprocessors)
    if not size.all_heads or not size.query_rows:
        assert schedule.grid == schedule.num_tiles == 0
        return
    end = 0
    tiles = list(tiles_of_head(plan, schedule))
    for first, past in tiles:
        assert first == end
        end = past
    assert end >= size.query_rows
    # No tile is entirely past the end, except for the second of a pair.
    assert tiles[-plan.cta_group][0] < size.query_rows


@given(st.sampled_from(PLANS), sizes, st.integers(2, 200))
def test_grid_fits_the_gpu_and_the_work(plan, size, multiprocessors):
    schedule = plan_schedule(plan, size, multiprocessors)
    assert schedule.grid % plan.cta_group == 0
    assert schedule.grid <= multiprocessors
    assert schedule.tiles_per_head % plan.cta_group == 0
    assert schedule.num_tiles == schedule.tiles_per_head * size.all_heads
    assert schedule.grid <= schedule.num_tiles
    if schedule.num_tiles:
        assert schedule.grid >= plan.cta_group


@given(st.sampled_from(PLANS), st.integers(1, INT32_MAX - 2000), st.integers(1, 2**20))
@settings(deadline=None)
def test_any_extent_stays_in_range(plan, rows, heads):
    size = ProblemSize(1, heads, 1, rows, rows)
    schedule = plan_schedule(plan, size, 132)
    covered = schedule.tiles_per_head * plan.BM - 64 * schedule.num_short_tiles
    assert rows <= covered < INT32_MAX
    assert 1 <= schedule.heads_per_group <= size.all_heads


@given(st.integers(0, 400), st.integers(0, 400), st.integers(1, 150))
def test_makespan_is_that_of_taking_turns(full, short, workers):
    free_at = [0] * workers
    for cost in [FULL_TILE_COST] * full + [SHORT_TILE_COST] * short:
        heapq.heapreplace(free_at, free_at[0] + cost)
    assert makespan(full, short, workers) == max(free_at)


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 150))
def test_least_makespan_is_no_longer_than_without_short_tiles(rows, heads, workers):
    short = least_makespan(rows, 192, heads, workers)

    def cost(number):
        return makespan(full_tiles(rows, 192, number) * heads, number * heads, workers)

    assert cost(short) == min(cost(number) for number in short_tile_candidates(rows, 192))


@given(st.integers(1, 100_000))
def test_least_padding_wastes_less_than_a_warpgroup(rows):
    short = least_padding(rows, 192)
    padded = 128 * short + 192 * full_tiles(rows, 192, short)
    assert 0 <= padded - rows < (64 if rows > 64 else 128)
    assert short <= 2


@pytest.mark.parametrize(
    ("rows", "heads", "short", "tiles"),
    [(512, 512, 1, 3), (1024, 256, 2, 6), (4096, 64, 2, 22), (16384, 16, 5, 87)],
)
def test_dense_cuts_on_132_multiprocessors(rows, heads, short, tiles):
    schedule = plan_schedule(
        plan_of(128, "none", 1, "dynamic"), ProblemSize(1, heads, 1, rows, rows), 132
    )
    assert (schedule.num_short_tiles, schedule.tiles_per_head) == (short, tiles)


def test_candidates_are_bounded():
    assert len(short_tile_candidates(INT32_MAX, 192)) == MAX_SHORT_TILES + 1


def test_groups_fill_l2_under_a_causal_dynamic_schedule():
    causal = plan_of(128, "causal", 1, "dynamic")
    # Keys and values of a head: 2 * 4096 * 128 * 2 bytes = 2 MB, so 16 heads fit 32 MB.
    assert plan_schedule(causal, ProblemSize(4, 16, 1, 4096, 4096), 132).heads_per_group == 16
    # Four query heads share each key head: four times as many.
    assert plan_schedule(causal, ProblemSize(8, 16, 4, 4096, 4096), 132).heads_per_group == 64
    for plan in (plan_of(128, "none", 1, "dynamic"), plan_of(128, "causal", 1, "static")):
        assert plan_schedule(plan, ProblemSize(4, 16, 1, 4096, 4096), 132).heads_per_group == 1


@given(st.integers(1, 2**31), st.integers(0, 2**40))
def test_a_group_fits_or_is_one_head(all_heads, bytes_per_head):
    group = heads_per_group(all_heads, bytes_per_head)
    assert group == 1 or group * bytes_per_head <= GROUP_L2_BYTES
    assert group == all_heads or group & (group - 1) == 0


@pytest.mark.parametrize("rows", [1, 64, 65, 192, 193, 1000])
def test_without_three_warpgroups_no_tile_is_short(rows):
    for plan in (plan_of(256, "none", 1, "dynamic"), plan_of(128, "none", 2, "static")):
        assert plan_schedule(plan, ProblemSize(1, 3, 1, rows, rows), 132).num_short_tiles == 0
