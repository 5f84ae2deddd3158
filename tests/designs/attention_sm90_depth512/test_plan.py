from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm90_depth512.model import HopperPairAttentionPlan
from fa4gen.designs.common.model import BARRIER_BYTES
from fa4gen.masks import SlidingWindow

PlanOf = Callable[..., HopperPairAttentionPlan]


@pytest.fixture
def pair_plan(plan_of: PlanOf) -> PlanOf:
    """pair_plan(mask="causal") is the plan of depth 512 with these keys."""
    return lambda **keys: plan_of(**{"depth": 512, "cta_group": 2, **keys})


@pytest.mark.parametrize("scheduler", ["static", "dynamic"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_regions_do_not_overlap_and_fit(pair_plan: PlanOf, scheduler: str, dtype: str) -> None:
    plan = pair_plan(scheduler=scheduler, dtype=dtype)
    assert isinstance(plan, HopperPairAttentionPlan)
    for before, after in zip(plan.shared, plan.shared[1:], strict=False):
        assert before.end <= after.offset
    assert all(region.offset % region.alignment == 0 for region in plan.shared)
    assert plan.shared_bytes_used <= plan.launch.dynamic_shared_bytes <= 232448
    # There is nothing left to align a base with: the kernel asks for an aligned one.
    assert plan.launch.dynamic_shared_bytes - plan.shared_bytes_used < 16


def test_barriers_lie_side_by_side_in_their_region(pair_plan: PlanOf) -> None:
    plan = pair_plan()
    region = plan.region("barriers")
    offset = region.offset
    for row in plan.barriers:
        assert row.offset == offset
        offset += row.slots * BARRIER_BYTES
    assert offset == region.end


def test_bytes_of_barriers_are_those_of_their_slots(pair_plan: PlanOf) -> None:
    plan = pair_plan()
    for name, region, slots in (
        ("query_full", "query", 2),
        ("ring_full", "ring", 1),
        ("maximum_full", "maximum", 1),
        ("probability_full", "probability", 1),
        ("sum_full", "sum", 1),
    ):
        assert plan.barrier(name).transaction_bytes == slots * plan.region(region).slot_bytes


def test_boxes_fill_the_slots(pair_plan: PlanOf) -> None:
    plan = pair_plan()
    boxes = {row.tensor: row.box_bytes for row in plan.tensor_maps}
    assert boxes["query"] == plan.region("query").slot_bytes
    assert boxes["key"] == boxes["value"] == plan.region("ring").slot_bytes


def test_a_dynamic_scheduler_has_the_leader_hand_out_tiles(pair_plan: PlanOf) -> None:
    dynamic, static = pair_plan(scheduler="dynamic"), pair_plan(scheduler="static")
    assert (dynamic.barrier("tile_empty").arrivals, dynamic.barrier("tile_empty").cta) == (
        17,
        "leader",
    )
    assert (static.barrier("tile_empty").arrivals, static.barrier("tile_empty").cta) == (8, "own")
    counters = [[row.name for row in plan.parameters] for plan in (dynamic, static)]
    assert ["tile_counter" in names for names in counters] == [True, False]


def test_roles_fill_the_launch_and_share_its_registers(pair_plan: PlanOf) -> None:
    plan = pair_plan()
    assert sum(role.num_threads for role in plan.roles) == plan.launch.threads == 384
    assert sum(role.num_threads * role.registers for role in plan.roles) <= 65536


def test_both_ctas_work_on_a_tile(pair_plan: PlanOf, plan_of: PlanOf) -> None:
    plan = pair_plan()
    assert (plan.BM, plan.ctas_per_tile, plan.launch.cluster) == (128, 2, 2)
    assert plan_of(cta_group=2).ctas_per_tile == 1


def test_masks_and_extras_reach_the_plan(pair_plan: PlanOf) -> None:
    plan = pair_plan(mask={"sliding_window": {"left": 5, "right": 3}}, softcap=20.0, lse=False)
    assert plan.mask == SlidingWindow(5, 3)
    names = [row.name for row in plan.parameters]
    assert "lse" not in names
    assert "softmax_scale" in names
    assert "logits capped at 20.0" in plan.summary


@pytest.mark.parametrize(("page_size", "rows"), [(16, 16), (32, 32), (64, 64), (256, 64)])
def test_a_box_of_keys_is_of_one_page_and_a_box_of_values_as_ever(
    pair_plan: PlanOf, page_size: int, rows: int
) -> None:
    plan = pair_plan(batching="ragged", keys="paged", page_size=page_size)
    assert plan.scheduler == "static"
    assert plan.tensor_map("key").box == (64, rows, 1, 1, 1)
    value = plan.tensor_map("value")
    assert value.dims == ("column", "row", "panel", "place", "wrap")
    assert value.box_bytes == pair_plan().tensor_map("value").box_bytes == 8192
    assert [row.name for row in plan.parameters[-2:]] == ["value_row_steps", "value_head_steps"]
