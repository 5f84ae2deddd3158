"""The plan of a matrix product on Hopper: its tables agree with one another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.build import build_plan
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm90.model import HopperGemmPlan

Strategy = st.SearchStrategy[HopperGemmConfig]
ConfigOf = Callable[..., HopperGemmConfig]


def planned(config: HopperGemmConfig) -> HopperGemmPlan:
    try:
        return build_plan(config)
    except ConfigError:
        reject()
        raise


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_the_maps_bring_is_what_the_barriers_expect(
    any_gemm_config: Strategy, data: st.DataObject
) -> None:
    plan = planned(data.draw(any_gemm_config))
    boxes = {row.name: row for row in plan.tensor_maps}
    mapped = ("b",) if plan.gathers_rows else ("a", "b")
    own = sum(plan.region(tensor).slot_bytes for tensor in mapped)
    assert plan.barrier("input_full").transaction_bytes == own
    lines = {"a": plan.BM if plan.a_major == "k" else plan.BK}
    lines["b"] = plan.BN if plan.b_major == "k" else plan.BK
    if not plan.shares_in_turns:
        lines["a"] //= plan.cluster_columns
        lines["b"] //= plan.cluster_rows
    for tensor, count in ((tensor, lines[tensor]) for tensor in mapped):
        panel, *extents = boxes[tensor].box
        assert (panel, math.prod(extents)) == (plan.panel_columns, count)
        assert len(extents) == (3 if plan.gated and tensor == "b" else 2)
        assert plan.region(tensor).slot_bytes % boxes[tensor].box_bytes == 0
    for consumer in range(plan.num_consumer_warpgroups):
        expected = boxes["c"].box_bytes * plan.c_panels if plan.residual != "none" else 0
        if plan.gated and plan.residual == "row" and plan.gate_layout == "halves":
            expected *= 2  # gate's and up's
        assert plan.barrier(f"epi{consumer}_ready").transaction_bytes == expected
    rows = plan.BM if plan.swap_operands else 64
    slot = plan.region("epi").slot_bytes  # which begins with a swizzle's pattern
    assert slot == -(-rows // 16) * 16 * 128 * plan.c_panels >= boxes["out"].box_bytes
    assert all(max(row.box) <= 256 for row in plan.tensor_maps)
    for row in plan.tensor_maps:
        assert row.swizzle == (0 if row.tensor == "c" and not plan.c.is_matrix else 128)
    for tensor in mapped:
        assert boxes[tensor].box[0] * boxes[tensor].box_bytes // math.prod(boxes[tensor].box) == 128


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_panels_of_a_tile_are_its_columns_and_no_others(
    any_gemm_config: Strategy, data: st.DataObject
) -> None:
    """Whole panels by one map, the narrow last one by another, or by the only one."""
    plan = planned(data.draw(any_gemm_config))
    boxes = {row.name: row.box for row in plan.tensor_maps}
    rows = plan.BM if plan.swap_operands else 64
    panels = plan.panels_per_ring // (plan.warpgroup_rows // 64)
    if plan.swap_operands:
        panels = plan.panels_per_ring * plan.num_consumer_warpgroups
    for tensor in ("c", "out") if plan.c.is_matrix else ("out",):
        first, last = boxes[tensor], boxes.get(f"{tensor}_last", boxes[tensor])
        loaded = panels * (plan.c_panels if tensor == "c" else 1)
        columns = plan.c_panel_columns if tensor == "c" else plan.out_panel_columns
        assert (loaded - 1) * first[0] + last[0] == plan.out_columns
        assert first[1:] == last[1:] == (rows, *[1] * (3 if plan.groups else 1))
        assert first[0] == min(plan.out_columns, columns)
        assert (f"{tensor}_last" in boxes) == (last[0] < first[0]) == plan.has_last_maps
    assert {row.parameter for row in plan.tensor_maps} == {
        row.name for row in plan.parameters if row.name.endswith("_map")
    }


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_rows_of_a_pipeline_lie_one_behind_the_other(
    any_gemm_config: Strategy, data: st.DataObject
) -> None:
    plan = planned(data.draw(any_gemm_config))
    names = [row.name for row in plan.barriers]
    pairs = [("input_full", "input_empty", plan.num_stages)]
    pairs += [
        (f"epi{i}_ready", f"epi{i}_written", plan.num_epi_stages)
        for i in range(plan.num_consumer_warpgroups)
    ]
    if plan.split_k == 2:
        pairs.append(("sums_full", "sums_empty", plan.num_consumer_warpgroups))
        sums = 128 * plan.warpgroup_rows * plan.wgmma_columns[0] // 128
        assert plan.barrier("sums_full").transaction_bytes == 4 * sums
        assert plan.region("sums").slot_bytes == 4 * sums
    alone = ["ring_free"] if plan.output_in_ring else []
    assert names == [name for *ends, _ in pairs for name in ends] + alone
    for filled, freed, slots in pairs:
        full, empty = plan.barrier(filled), plan.barrier(freed)
        assert full.slots == empty.slots == slots
        assert empty.offset == full.offset + full.bytes
        assert (full.first_wait_parity, empty.first_wait_parity) == (0, 1)
    arriving = 1 if plan.ping_pong else plan.num_consumer_warpgroups
    readers = plan.cluster_rows + plan.cluster_columns - 1
    assert plan.barrier("input_empty").arrivals == 4 * arriving * readers


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_fits_the_chip(any_gemm_config: Strategy, data: st.DataObject) -> None:
    plan = planned(data.draw(any_gemm_config))
    assert plan.launch.dynamic_shared_bytes <= 232448
    assert plan.launch.cluster == plan.cta_group * plan.split_k
    total = 128 * (plan.producer_registers + plan.num_consumer_warpgroups * plan.consumer_registers)
    assert total <= 65536
    assert plan.warpgroup_rows * plan.wgmma_columns[0] // 128 < plan.consumer_registers
    apart = [row for row in plan.shared if not (plan.output_in_ring and row.name == "epi")]
    ends = [region.end for region in apart]
    assert all(region.offset >= end for region, end in zip(apart[1:], ends, strict=False))


@pytest.mark.parametrize(
    ("keys", "first"),
    [({}, "none"), ({"swap_operands": True}, "b"), ({"evict_first": "both"}, "both")],
)
def test_what_leaves_l2_first(hopper_gemm: ConfigOf, keys: dict[str, Any], first: str) -> None:
    assert build_plan(hopper_gemm(**keys)).evict_first == first


def test_who_shares_what(hopper_gemm: ConfigOf) -> None:
    pair = build_plan(hopper_gemm(BM=192, BN=160, cta_group=2, num_epi_stages=1))
    across = build_plan(hopper_gemm(BM=192, BN=160, cta_group=2, num_epi_stages=1, share="a"))
    assert [(plan.tile_rows, plan.tile_columns) for plan in (pair, across)] == [
        (384, 160),
        (192, 320),
    ]
    assert [row.box[1] for row in pair.tensor_maps[:2]] == [192, 80]
    assert [row.box[1] for row in across.tensor_maps[:2]] == [96, 160]


@pytest.mark.parametrize(
    ("keys", "tile", "lines"),
    [
        ({"cta_group": 4, "share": "both"}, (256, 288), [64, 72]),
        ({"cta_group": 8}, (256, 576), [32, 72]),
        ({"cta_group": 8, "b_major": "n", "BN": 128}, (256, 512), [32, 32]),
        ({"cta_group": 8, "swap_operands": True, "BM": 40, "BN": 64}, (80, 256), [10, 32]),
    ],
    ids=str,
)
def test_a_cluster_that_shares_both(
    hopper_gemm: ConfigOf, keys: dict[str, Any], tile: tuple[int, int], lines: list[int]
) -> None:
    """Its tiles are two rows: a CTA brings part of A to its row, and part of B to its column."""
    plan = build_plan(hopper_gemm(**{"BM": 128, "BN": 144, "BK": 64, **keys}))
    assert plan.shares_both
    assert (plan.tile_rows, plan.tile_columns) == tile
    assert [row.box[1] for row in plan.tensor_maps[:2]] == lines


def test_a_loader_of_parts_of_both_has_more_registers(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(BM=192, BN=64, BK=128, cta_group=8))
    assert (plan.producer_registers, plan.consumer_registers) == (40, 152)


@pytest.mark.parametrize(
    ("keys", "in_turns", "lines"),
    [
        ({"swap_operands": True, "BM": 200, "BN": 128, "cta_group": 4}, False, 50),
        ({"swap_operands": True, "BM": 136, "BN": 64, "cta_group": 2}, True, 136),
        ({"swap_operands": True, "BM": 208, "BN": 64, "cta_group": 2}, False, 104),
    ],
)
def test_parts_of_rows(
    hopper_gemm: ConfigOf, keys: dict[str, Any], in_turns: bool, lines: int
) -> None:
    """Four CTAs bring any quarter of A, a pair whole blocks in turn, or halves of groups of 8."""
    plan = build_plan(hopper_gemm(**keys, BK=64, num_epi_stages=1))
    assert (plan.shares_in_turns, plan.tensor_maps[0].box[1]) == (in_turns, lines)


def test_the_output_lies_over_the_ring(hopper_gemm: ConfigOf) -> None:
    """Its panels take no room of their own, so that there is one stage more."""
    keys = {"BM": 136, "BN": 256, "BK": 64, "swap_operands": True}
    apart = build_plan(hopper_gemm(**keys, num_epi_stages=1))
    over = build_plan(hopper_gemm(**keys, output_in_ring=True))
    assert (apart.num_stages, over.num_stages, over.num_epi_stages) == (3, 4, 2)
    a, b, epi = (over.region(name) for name in ("a", "b", "epi"))
    assert (epi.offset, a.offset, b.offset) == (0, 0, a.end)
    assert epi.end <= b.end <= over.region("barriers").offset
    assert over.barrier("ring_free").arrivals == 2
    four = build_plan(hopper_gemm(**keys, cta_group=4, output_in_ring=True))
    assert (four.barrier("ring_free").arrivals, four.barrier("ring_free").cta) == (8, "cluster")


@pytest.mark.parametrize(
    ("keys", "slots"),
    [({"BN": 64}, 1), ({"BN": 144}, 3), ({"BM": 256, "BN": 144}, 4), ({"out_dtype": "fp32"}, 4)],
)
def test_a_slot_for_each_panel(hopper_gemm: ConfigOf, keys: dict[str, Any], slots: int) -> None:
    """As far as the schema goes: the ring has the room."""
    assert build_plan(hopper_gemm(**keys, output_in_ring=True)).num_epi_stages == slots


def test_the_output_of_few_rows_leaves_the_ring_its_room(hopper_gemm: ConfigOf) -> None:
    """Where the weights stream, some 200 KB of them are on their way."""
    for rows in (16, 32, 64):
        plan = build_plan(hopper_gemm(swap_operands=True, BM=rows))
        assert plan.num_epi_stages == 2
        assert plan.region("a").bytes + plan.region("b").bytes > 190_000


def test_the_defaults(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm())
    assert plan.residual == "none"
    assert plan.out_dtype == "bf16"
    assert plan.num_stages == max(
        stages for stages in range(1, 17) if _fits(hopper_gemm(num_stages=stages))
    )
    assert {choice.key for choice in plan.choices} >= {"BM", "BN", "BK", "num_stages", "registers"}


@pytest.mark.parametrize(
    ("keys", "rows", "warpgroups"),
    [
        ({"BM": 64}, 64, 1),
        ({"BM": 128}, 64, 2),
        ({"BM": 192}, 64, 3),
        ({"BM": 256}, 128, 2),
        ({"BM": 128, "num_consumer_warpgroups": 1}, 128, 1),
        ({"num_consumer_warpgroups": 3}, 64, 3),
        ({"swap_operands": True, "BM": 16}, 64, 1),
        ({"ping_pong": True}, 128, 2),
        ({"ping_pong": True, "BM": 64, "num_consumer_warpgroups": 3}, 64, 3),
    ],
)
def test_rows_of_a_warpgroup(
    hopper_gemm: ConfigOf, keys: dict[str, object], rows: int, warpgroups: int
) -> None:
    plan = build_plan(hopper_gemm(BN=64, ping_pong=keys.get("ping_pong", False), **{
        key: value for key, value in keys.items() if key != "ping_pong"
    }))  # fmt: skip
    assert (plan.warpgroup_rows, plan.num_consumer_warpgroups) == (rows, warpgroups)


def _fits(config: HopperGemmConfig) -> bool:
    try:
        build_plan(config)
    except ConfigError:
        return False
    return True
