"""The maps of shared memory and tensor memory, in words and numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100_depth512 import plan as planning
from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.attention_sm100_depth512.plan import decide
from fa4gen.designs.attention_sm100_depth512.rules import MAX_STAGES
from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.common.model import Choice
from fa4gen.designs.common.values import MAX_KV_STAGES
from fa4gen.strict.json_schema import model_schema

PlanOf = Callable[..., Depth512Config]
ConfigOf = Callable[..., BlackwellPairAttentionConfig]

STAGES = {"bf16": 4, "fp16": 4, "fp8_e4m3": 11}


def bytes_of(plan: Depth512Config, stages: int) -> int:
    return replace(plan, num_kv_stages=stages).dynamic_shared_bytes


@pytest.mark.parametrize("scheduler", ["static", "dynamic"])
@pytest.mark.parametrize("dtype", STAGES)
def test_stages_of_a_dtype(plan_of: PlanOf, dtype: str, scheduler: str) -> None:
    plan = plan_of(dtype=dtype, scheduler=scheduler)
    assert plan.num_kv_stages == plan.region("kv").slots == STAGES[dtype]
    assert plan.launch.dynamic_shared_bytes <= 232448
    choice = {row.key: row for row in plan.choices}["num_kv_stages"]
    assert choice == Choice(
        "num_kv_stages",
        STAGES[dtype],
        "auto",
        f"{STAGES[dtype]} fit the 232448 bytes of shared memory",
    )


@given(st.data())
def test_no_more_stages_than_the_most_fit(
    any_config: st.SearchStrategy[BlackwellPairAttentionConfig], data: st.DataObject
) -> None:
    plan = decide(data.draw(any_config))
    most = most_slots(plan, "num_kv_stages", MAX_KV_STAGES)
    limit = plan.hardware.shared_bytes
    assert all((bytes_of(plan, n) <= limit) == (n <= most) for n in range(1, 33))
    if plan.config.num_kv_stages == "auto":
        assert plan.num_kv_stages == max(1, min(most, MAX_STAGES))


def test_lanes_of_a_warp_bound_the_stages_where_memory_does_not(
    config_of: ConfigOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "most_stages", lambda *_: 12)
    plan = decide(config_of(dtype="fp8_e4m3"))
    assert plan.num_kv_stages == MAX_STAGES == (32 - 10) // 2
    reasons = {row.key: row.reason for row in plan.choices}
    assert reasons["num_kv_stages"] == "one warp initialises 10 + 2 * 11 barriers"


def test_the_most_stages_of_the_schema_are_known_here() -> None:
    stages = model_schema(BlackwellPairAttentionConfig)["properties"]["num_kv_stages"]["anyOf"]
    assert max(branch.get("maximum", 0) for branch in stages) == MAX_KV_STAGES


@pytest.mark.parametrize(
    ("dtype", "query", "probabilities", "slot"),
    [
        ("bf16", 65536, 32768, 32768),
        ("fp16", 65536, 32768, 32768),
        ("fp8_e4m3", 32768, 16384, 16384),
    ],
)
def test_sizes_of_regions(
    plan_of: PlanOf, dtype: str, query: int, probabilities: int, slot: int
) -> None:
    plan = plan_of(dtype=dtype)
    assert [(region.name, region.slot_bytes) for region in plan.shared] == [
        ("query", query),
        ("probabilities", probabilities),
        ("kv", slot),
        ("barriers", 8),
        ("scale", 512),
        ("exchange", 512),
        ("tile", 16),
        ("tensor_memory", 4),
    ]


def test_the_map_says_what_lies_where(plan_of: PlanOf) -> None:
    holds = {region.name: region.holds for region in plan_of(dtype="fp8_e4m3").shared}
    assert holds["query"] == "Queries: 64 x 512 fp8_e4m3; then the output on its way out"
    assert holds["probabilities"] == (
        "Probabilities of a block: 64 x 256 fp8_e4m3, 128-byte swizzle"
    )
    assert holds["kv"] == ("Ring of parts of keys and values: 128 x 128 fp8_e4m3, 128-byte swizzle")


@pytest.mark.parametrize(("dtype", "step"), [("bf16", 32768), ("fp16", 32768), ("fp8_e4m3", 0)])
def test_halves_of_the_output_take_turns_where_the_queries_are_small(
    plan_of: PlanOf, dtype: str, step: int
) -> None:
    assert plan_of(dtype=dtype).staging_step == step


@pytest.mark.parametrize("dtype", STAGES)
def test_tensor_memory_is_full_and_disjoint(plan_of: PlanOf, dtype: str) -> None:
    plan = plan_of(dtype=dtype)
    assert [(place.name, place.column, place.columns) for place in plan.tensor_memory] == [
        ("o_lo", 0, 128),
        ("o_hi", 128, 128),
        ("s_even", 256, 128),
        ("s_odd", 384, 128),
    ]
    assert all(a.end == b.column for a, b in itertools.pairwise(plan.tensor_memory))
    assert plan.tensor_memory[-1].end == plan.tensor_memory_columns == 512
    assert plan.tensor_memory[0].holds == (
        "output, first half: 64 x 256 float32, as two halves of 128 columns"
    )
    assert plan.tensor_memory[3].holds == (
        "scores of odd blocks: 64 x 256 float32, as two halves of 128 columns"
    )
