"""The maps of shared memory and tensor memory, in words and numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.attention_sm100.plan import decide
from fa4gen.designs.common.fitting import most_slots
from fa4gen.designs.common.values import MAX_KV_STAGES
from fa4gen.strict.json_schema import model_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm100.model import FA4Config


def bytes_of(plan: FA4Config, stages: int) -> int:
    return replace(plan, num_kv_stages=stages).dynamic_shared_bytes


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_more_stages_than_the_most_fit(
    any_config: st.SearchStrategy[BlackwellAttentionConfig], data: st.DataObject
) -> None:
    plan = decide(data.draw(any_config))
    most = most_slots(plan, "num_kv_stages", MAX_KV_STAGES)
    limit = plan.hardware.shared_bytes
    assert all((bytes_of(plan, n) <= limit) == (n <= most) for n in range(1, MAX_KV_STAGES + 1))
    if plan.config.num_kv_stages == "auto":
        assert plan.num_kv_stages == max(1, most)


def test_the_most_stages_of_the_schema_are_known_here() -> None:
    stages = model_schema(BlackwellAttentionConfig)["properties"]["num_kv_stages"]["anyOf"]
    assert max(branch.get("maximum", 0) for branch in stages) == MAX_KV_STAGES


def test_the_map_says_what_lies_where(plan_of: Callable[..., FA4Config]) -> None:
    plan = plan_of()
    holds = {region.name: region.holds for region in plan.shared}
    assert list(holds) == ["query", "kv", "barriers", "scale", "tile", "tensor_memory"]
    assert holds["query"] == "Query tiles: 128 x 128 bf16, 128-byte swizzle; then its output"
    assert holds["kv"] == (
        "Ring of blocks, keys and values in turn: 128 x 128 bf16, K-major; 128 x 128 bf16, MN-major"
    )
    pair = plan_of(dtype="fp8_e4m3", depth=192, value_depth=128, cta_group=2)
    holds = {region.name: region.holds for region in pair.shared}
    assert list(holds)[:4] == ["query", "output", "key", "value"]
    assert holds["query"] == "Query tiles: 128 x 192 fp8_e4m3, 64-byte swizzle"
    assert holds["output"] == "Outputs on their way out: 128 x 128 bf16, 128-byte swizzle"
    assert holds["key"] == "Ring of key blocks: 128 x 192 fp8_e4m3 (this CTA's half), K-major"


def test_tensor_memory_in_words(plan_of: Callable[..., FA4Config]) -> None:
    assert [region.holds for region in plan_of().tensor_memory] == [
        "scores of query tile 0: 128 x 128 float32",
        "scores of query tile 1: 128 x 128 float32",
        "output of query tile 0: 128 x 128 float32",
        "output of query tile 1: 128 x 128 float32",
        "probabilities of query tile 0: 128 x 128 bf16, over the scores they came from",
        "probabilities of query tile 1: 128 x 128 bf16, over the scores they came from",
    ]
    assert [region.holds for region in plan_of(BM=128).tensor_memory][1::2] == [
        "scores of every other block, from 1: 128 x 128 float32",
        "probabilities of every other block, from 0: 128 x 128 bf16",
    ]


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        ({"depth": 64, "BN": 32, "BM": 128}, 256),  # 64 of scores, 64 of output, 32 of P
        ({"depth": 64, "BN": 32}, 256),  # 64, 128, 32
        ({"depth": 64, "BN": 64}, 512),  # 128, 128, 64
        ({"depth": 64, "BN": 64, "BM": 128}, 256),  # 128, 64, 64
        ({}, 512),
    ],
)
def test_columns_are_allocated_in_powers_of_two(
    plan_of: Callable[..., FA4Config], keys: dict[str, object], columns: int
) -> None:
    assert plan_of(**keys).tensor_memory_columns == columns
