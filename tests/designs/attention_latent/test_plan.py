"""The plan of latent attention: shared memory, barriers, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import design_of
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.attention_latent.model import LatentAttentionPlan

    PlanOf = Callable[..., LatentAttentionPlan]

LATENT: dict[str, Any] = {"depth": 576, "value_depth": 512, "pack_heads": True}
PAGES: dict[str, Any] = {"keys": "paged", "page_size": 64}


def test_the_depth_asks_for_the_design(plan_of: PlanOf) -> None:
    plan = plan_of(**LATENT)
    assert design_of(plan).name == "attention_latent"
    assert plan.values_in_keys
    assert not plan_of(depth=128, pack_heads=True).values_in_keys
    assert (plan.depth, plan.value_depth, plan.BM, plan.BN) == (576, 512, 64, 64)


@pytest.mark.parametrize("more", [{}, PAGES, {"key_lengths": True}, {"split_keys": {"keys": 512}}])
def test_two_blocks_and_the_query_fill_shared_memory(plan_of: PlanOf, more: dict[str, Any]) -> None:
    plan = plan_of(**LATENT, **more)
    block = 64 * 576 * 2
    assert plan.region("kv").slot_bytes == plan.region("query").bytes == block
    assert plan.region("kv").slots == plan.num_parts == 2
    assert 232448 - block < plan.launch.dynamic_shared_bytes <= 232448
    # The line of the sequences is where the query will be.
    assert plan.line_bytes + plan.line_sums_bytes + 16 <= block
    assert {region.name for region in plan.shared}.isdisjoint({"line", "line_sums"})


def test_the_parts_of_a_block_have_barriers_of_their_own(plan_of: PlanOf) -> None:
    plan = plan_of(**LATENT)
    left, right, tail = (plan.barrier(f"{name}_full") for name in ("left", "right", "tail"))
    assert (left.slots, right.slots, tail.slots) == (4, 4, 2)
    assert left.transaction_bytes == right.transaction_bytes == 64 * 128 * 2
    assert tail.transaction_bytes == 64 * 64 * 2
    parts = (row.slots * row.transaction_bytes for row in (left, right, tail))
    assert sum(parts) == plan.region("kv").slot_bytes * plan.num_kv_stages
    empty = {"left_empty": 4, "right_empty": 4, "tail_empty": 2}  # by warps of both CTAs
    for name, slots in empty.items():
        assert (plan.barrier(name).slots, plan.barrier(name).arrivals) == (slots, 8)
    row = plan.barrier("probabilities_full")
    assert (row.slots, row.arrivals) == (2, 4)
    to_right = right.offset - left.offset
    assert plan.barrier("right_empty").offset - plan.barrier("left_empty").offset == to_right


@pytest.mark.parametrize("page_size", [64, 128, 256])
def test_a_lane_copies_a_box_of_some_columns(plan_of: PlanOf, page_size: int) -> None:
    plan = plan_of(**LATENT, keys="paged", page_size=page_size)
    columns, rows, *_ = plan.tensor_map("key").box
    assert (columns, rows) == (64, min(64, page_size))
    assert plan.half_panels * (64 // rows) <= 32


def test_there_is_one_map_and_no_parameter_of_values(plan_of: PlanOf) -> None:
    plan = plan_of(**LATENT, **PAGES)
    assert [row.name for row in plan.tensor_maps] == ["key"]
    assert not [row.name for row in plan.parameters if row.name.startswith("value")]


def test_registers_are_those_of_the_launch(plan_of: PlanOf) -> None:
    plan = plan_of(**LATENT)
    assert plan.launch.threads == 384
    assert 128 * (plan.producer_registers + 2 * plan.consumer_registers) <= 65536
    assert plan.wgmma_columns == (64, 128)


VALID: dict[str, Any] = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", **LATENT}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"value_depth": "auto"}, "value_depth: auto is not possible; it must be 512"),
        ({"value_depth": 256}, "value_depth: 256 is not possible; it must be 512"),
        ({"pack_heads": False}, "pack_heads: false is not possible; it must be true"),
        ({"depth": 256}, "value_depth: 512 with pack_heads is not supported yet"),
        ({"arch": "sm_100a"}, "the key cta_group is missing"),
        ({"packed_rows": 16}, "depth: 576 needs packed_rows: 64, got 16"),
        ({"num_kv_stages": 3}, "depth: 576 needs num_kv_stages: 2, got 3"),
        ({"kv_dtype": "fp8_e4m3"}, "depth: 576 has no kv_dtype, got fp8_e4m3"),
        ({"BN": 128}, "depth: 576 has no BN, got 128"),
        ({"cta_group": 2}, "depth: 576 needs cta_group: 1, got 2"),
        ({"batching": "ragged"}, "batching: ragged with pack_heads is not supported yet"),
    ],
)
def test_what_cannot_work_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build_plan(load_mapping({**VALID, **keys}, "probe").config)
    assert message in str(raised.value)
