"""The plan of a matrix product on Blackwell: its tables agree with one another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from fa4gen.designs.gemm_sm100.model import BlackwellGemmPlan
from fa4gen.designs.gemm_sm100.plan import MAX_STAGES, decide
from fa4gen.designs.gemm_sm100.scaling import FORMS
from fa4gen.errors import ConfigError
from fa4gen.scales import form_of
from fa4gen.strict.json_schema import model_schema

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Choice

Strategy = st.SearchStrategy[BlackwellGemmConfig]
PlanOf = Callable[..., BlackwellGemmPlan]
RINGS = {
    "input": "num_stages",
    "accum": "num_accum_stages",
    "residual": "num_epi_stages",
}


def planned(config: BlackwellGemmConfig) -> BlackwellGemmPlan:
    try:
        return build_plan(config)
    except ConfigError:
        reject()
        raise


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_the_maps_bring_is_what_the_barriers_expect(
    any_config: Strategy, data: st.DataObject
) -> None:
    plan = planned(data.draw(any_config))
    maps = {row.name: row for row in plan.tensor_maps}
    own = sum(plan.region(tensor).slot_bytes for tensor in _loaded(plan))
    assert plan.barrier("input_full").transaction_bytes == plan.cta_group * own
    for tensor in _loaded(plan):
        assert plan.region(tensor).slot_bytes % maps[tensor].box_bytes == 0
    halves = 2 if (plan.BM, plan.cta_group) == (64, 2) else 1
    assert plan.region("output").slot_bytes == halves * maps["out"].box_bytes
    if plan.residual != "none":
        residual = plan.barrier("residual_full").transaction_bytes
        loads = halves if "n" in plan.c.axes else 1
        if plan.gated and plan.residual == "row" and plan.gate_layout == "halves":
            loads = 2  # gate's and up's
        assert residual == loads * maps["c"].box_bytes
        assert plan.region("residual").slot_bytes >= residual
    for row in plan.tensor_maps:
        assert max(row.box) <= 256
        line = row.box[0] * row.box_bytes // math.prod(row.box)
        swizzled = len(row.dims) == 3 or row.tensor == "b" or "wrap" in row.dims
        assert row.swizzle in ((line,) if swizzled else (0,))


def _loaded(plan: BlackwellGemmPlan) -> tuple[str, ...]:
    maps = [row.name for row in plan.tensor_maps]
    assert ("scale_a" in maps) == (bool(plan.scales) and not plan.arranges_scales)
    return ("a", "b", "scale_a", "scale_b") if "scale_a" in maps else ("a", "b")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_panels_cover_the_tiles(any_config: Strategy, data: st.DataObject) -> None:
    plan = planned(data.draw(any_config))
    boxes = {row.name: row.box for row in plan.tensor_maps}
    columns = plan.BN // plan.cta_group
    along_k, lines = (plan.BK, plan.BM) if plan.a_major == "k" else (plan.BM, plan.BK)
    assert (along_k % boxes["a"][0], boxes["a"][1:]) == (0, (lines, 1))
    along_k, lines = (plan.BK, columns) if plan.b_major == "k" else (columns, plan.BK)
    assert (along_k % boxes["b"][0], math.prod(boxes["b"][1:])) == (0, lines)
    width = plan.out_panel_columns // plan.out_elements_per_byte
    assert boxes["out"][:3] == (width, plan.BM, 1)
    halves = 2 if (plan.BM, plan.cta_group) == (64, 2) else 1
    assert plan.out_columns // halves % plan.out_panel_columns == 0
    # A warp loads 32 columns of tensor memory at once, or half of a panel each in two half warps.
    assert plan.out_panel_columns % 32 == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_rows_of_a_ring_lie_one_behind_the_other(
    any_config: Strategy, data: st.DataObject
) -> None:
    plan = planned(data.draw(any_config))
    names = {row.name for row in plan.barriers}
    for ring, key in RINGS.items():
        if f"{ring}_full" not in names:
            assert (ring, plan.residual) == ("residual", "none")
            continue
        full, empty = plan.barrier(f"{ring}_full"), plan.barrier(f"{ring}_empty")
        slots = 1 if (ring, plan.overlap_columns > 0) == ("accum", True) else getattr(plan, key)
        assert full.slots == empty.slots == slots
        assert empty.offset == full.offset + full.bytes
        assert (full.first_wait_parity, empty.first_wait_parity) == (0, 1)
    assert plan.barrier("accum_empty").arrivals == 128 * plan.cta_group
    assert ("tile_full" in names) == (plan.scheduler == "dynamic")
    assert ("order_full" in names) == (plan.residual != "none")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_fits_the_chip(any_config: Strategy, data: st.DataObject) -> None:
    plan = planned(data.draw(any_config))
    assert plan.launch.dynamic_shared_bytes <= 232448
    assert plan.launch.cluster == plan.cta_group
    assert plan.launch.threads == sum(role.num_threads for role in plan.roles)
    assert all(role.registers * plan.launch.threads <= 65536 for role in plan.roles)
    ends = [region.end for region in plan.shared]
    assert all(region.offset >= end for region, end in zip(plan.shared[1:], ends, strict=False))
    assert all(region.offset % region.alignment == 0 for region in plan.shared)
    assert plan.tensor_memory[-1].end <= plan.tensor_memory_columns <= 512
    columns = [region.column for region in plan.tensor_memory]
    accumulators = [i * plan.stage_stride_cols for i in range(plan.num_accum_stages)]
    end = plan.num_accum_stages * plan.stage_stride_cols + plan.overlap_columns
    wide = plan.block_scales.tensor_columns
    assert columns == accumulators + [end + i * wide for i in range(plan.num_scale_stages)]
    assert (plan.num_scale_stages > 0) == (bool(plan.scales))


def test_forms_of_scales_are_those_of_quantising() -> None:
    for name, form in FORMS.items():
        known = form_of(name)
        assert (known.rows, known.columns) == (1, form.columns)
        assert known.element in form.dtypes
        assert (known.scale == "ue8m0") == form.powers_of_two


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_more_stages_than_the_most_fit(any_config: Strategy, data: st.DataObject) -> None:
    plan = decide(data.draw(any_config))
    most = most_slots(plan, "num_stages", MAX_STAGES)
    limit = plan.hardware.shared_bytes
    for stages in range(1, MAX_STAGES + 1):
        needed = replace(plan, num_stages=stages).dynamic_shared_bytes
        assert (needed <= limit) == (stages <= most)
    if plan.config.num_stages == "auto":
        assert plan.num_stages == max(1, most)


def test_the_most_stages_of_the_schema_are_known_here() -> None:
    stages = model_schema(BlackwellGemmConfig)["properties"]["num_stages"]["anyOf"]
    assert max(branch.get("maximum", 0) for branch in stages) == MAX_STAGES


def test_the_rows_of_the_table(plan_of: PlanOf) -> None:
    plan = plan_of(residual="matrix", scheduler="dynamic")
    rows = [(row.name, row.slots, row.arrivals, row.cta) for row in plan.barriers]
    assert rows == [
        ("input_full", 5, 1, "leader"),
        ("input_empty", 5, 1, "pair"),
        ("accum_full", 2, 1, "pair"),
        ("accum_empty", 2, 256, "leader"),
        ("residual_full", 2, 1, "own"),
        ("residual_empty", 2, 128, "own"),
        ("order_full", 2, 1, "own"),
        ("order_empty", 2, 1, "own"),
        ("tile_full", 2, 1, "pair"),
        ("tile_empty", 2, 13, "leader"),  # twice 4 + load + residual, and the leader's mma
        ("tile_wanted", 1, 1, "leader"),
    ]
    plain = {"dtype": "fp4_e2m1", "scales": "nvfp4", "scale_order": "row_major"}
    arranging = plan_of(**plain, BN=256, scheduler="dynamic")
    assert arranging.role("arrange").num_warps == 3
    assert arranging.barrier("input_full").arrivals == 1 + 2 * 3
    assert arranging.barrier("tile_empty").arrivals == 2 * (5 + 3) + 1
    assert plan_of(**plain, BN=64).role("arrange").num_warps == 2
    alone = plan_of(cta_group=1, scheduler="dynamic")
    assert {row.cta for row in alone.barriers} == {"own"}
    assert alone.barrier("tile_empty").arrivals == 6
    words = "".join(row.arrived_by + row.waited_by for row in alone.barriers)
    assert "both" not in words
    assert "leader" not in words


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ({}, (2, 128, 256, 64, 6, 2, 256)),
        ({"cta_group": 1}, (1, 128, 256, 64, 4, 2, 256)),
        ({"cta_group": 1, "residual": "matrix"}, (1, 128, 256, 64, 3, 2, 256)),
        ({"cta_group": 1, "num_stages": 5}, (1, 128, 128, 64, 5, 2, 128)),
        ({"BM": 64}, (2, 64, 256, 64, 8, 2, 128)),
        ({"dtype": "fp8_e4m3"}, (2, 128, 256, 128, 6, 2, 256)),
        ({"num_accum_stages": 4}, (2, 128, 128, 64, 8, 4, 128)),
        ({"stage_stride_cols": 512}, (2, 128, 256, 64, 6, 1, 512)),
        ({"stage_stride_cols": 128}, (2, 128, 128, 64, 8, 2, 128)),
    ],
)
def test_what_auto_becomes(
    plan_of: PlanOf, keys: dict[str, object], values: tuple[int, ...]
) -> None:
    plan = plan_of(**keys)
    chosen = (plan.cta_group, plan.BM, plan.BN, plan.BK, plan.num_stages)
    assert (*chosen, plan.num_accum_stages, plan.stage_stride_cols) == values


def test_every_choice_has_its_reason(plan_of: PlanOf) -> None:
    plan = plan_of(residual="matrix", BN=128)
    choices: dict[str, Choice] = {choice.key: choice for choice in plan.choices}
    assert choices["BN"].source == "config"
    assert all(row.reason for row in plan.choices if row.source != "config")
    tuned = {
        name for name in BlackwellGemmConfig.model_fields
        if "auto" in str(BlackwellGemmConfig.model_fields[name].annotation)
    }  # fmt: skip
    assert tuned <= {*choices, "most_groups"}  # of groups alone
    assert choices["num_stages"].reason == (
        "6 of 16384 + 8192 bytes fit the 232448 of shared memory beside 65536 for the residual and "
        "the output"
    )
    none = {choice.key: choice for choice in plan_of().choices}
    assert none["num_epi_stages"].reason == "there is no residual to wait for"


def test_roles_follow_each_other(plan_of: PlanOf) -> None:
    plan = plan_of(residual="row", scheduler="dynamic")
    assert [(role.name, role.first_warp, role.num_warps) for role in plan.roles] == [
        ("epilogue", 0, 4),
        ("scheduler", 4, 1),
        ("load", 5, 1),
        ("mma", 6, 1),
        ("residual", 7, 1),
    ]
    assert [role.first_warp for role in plan_of().roles] == [0, 4, 5]


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"BM": 128}, "128 x 128 float32"),
        ({"BM": 64, "cta_group": 1}, "64 x 128 float32, 16 rows in each quarter of the lanes"),
        ({"BM": 64}, "64 x 128 float32, the second half of the columns in lanes 64 to 127"),
    ],
)
def test_where_sums_lie(plan_of: PlanOf, keys: dict[str, object], where: str) -> None:
    plan = plan_of(BN=128, **keys)
    assert plan.tensor_memory[1].holds == f"accumulator 1: {where}"
