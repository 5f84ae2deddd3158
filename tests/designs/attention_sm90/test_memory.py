from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.attention_sm90.plan import MAX_STAGES, decide
from fa4gen.designs.common.fitting import most_slots
from fa4gen.strict.json_schema import model_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
    from fa4gen.designs.common.attention_model import AttentionPlan


def bytes_of(plan: HopperAttentionPlan, stages: int) -> int:
    return replace(plan, num_kv_stages=stages).dynamic_shared_bytes


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_more_stages_than_the_most_fit(
    any_config: st.SearchStrategy[HopperAttentionConfig], data: st.DataObject
) -> None:
    plan = decide(data.draw(any_config))
    most = most_slots(plan, "num_kv_stages", MAX_STAGES)
    limit = plan.hardware.shared_bytes
    assert all((bytes_of(plan, n) <= limit) == (n <= most) for n in range(1, MAX_STAGES + 1))


def test_the_most_stages_of_the_schema_are_known_here() -> None:
    stages = model_schema(HopperAttentionConfig)["properties"]["num_kv_stages"]["anyOf"]
    assert max(branch.get("maximum", 0) for branch in stages) == MAX_STAGES


def test_the_map_says_what_lies_where(plan_of: Callable[..., AttentionPlan]) -> None:
    plan = plan_of(depth=96, dtype="fp16", epilogue="tma_store")
    holds = {region.name: region.holds for region in plan.shared}
    assert holds["query"] == (
        "Queries, one slot a consumer warpgroup: 64 x 96 fp16, 64-byte swizzle; then the output on "
        "its way to global memory"
    )
    assert holds["key"] == "Ring of key blocks: 128 x 96 fp16, 64-byte swizzle"
    assert [region.name for region in plan.shared] == ["query", "key", "value", "barriers", "tile"]
    latent = plan_of(depth=192, value_depth=128)
    assert latent.region("key").holds == "Ring of key blocks: 96 x 192 bf16, 128-byte swizzle"
    assert latent.region("value").holds == "Ring of value blocks: 96 x 128 bf16, 128-byte swizzle"
    assert "global memory" not in plan_of(epilogue="direct").region("query").holds
