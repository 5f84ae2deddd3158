"""The plan of latent attention on Blackwell: memory, barriers, shares of pairs, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import design_of
from fa4gen.errors import ConfigError
from fa4gen.runtime.schedule import ProblemSize, plan_schedule

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent_sm100.model import LatentPairPlan

VALID: dict[str, Any] = {
    "kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 576, "value_depth": 512,
    "pack_heads": True, "cta_group": 2,
}  # fmt: skip
PAGES: dict[str, Any] = {"keys": "paged", "page_size": 64}


def planned(**more: Any) -> LatentPairPlan:
    plan: Any = build_plan(load_mapping({**VALID, **more}, "probe").config)
    return plan  # type: ignore[no-any-return]


def test_the_depth_asks_for_the_design() -> None:
    plan = planned()
    assert design_of(plan).name == "attention_latent_sm100"
    assert plan.values_in_keys
    assert (plan.depth, plan.value_depth, plan.BM, plan.tile_rows, plan.BN) == (
        576, 512, 128, 64, 64,
    )  # fmt: skip


@pytest.mark.parametrize("more", [{}, PAGES, {"key_lengths": True}, {"split_keys": {"keys": 512}}])
def test_two_blocks_and_the_query_fill_shared_memory(more: dict[str, Any]) -> None:
    plan = planned(**more)
    keys, values = plan.region("key"), plan.region("value")
    assert (keys.slots, keys.slot_bytes) == (2, 32 * 576 * 2)
    assert (values.slots, values.slot_bytes) == (2, 64 * 256 * 2)
    assert plan.region("query").bytes == 64 * 576 * 2
    assert 232448 - keys.slot_bytes < plan.launch.dynamic_shared_bytes <= 232448
    # The line of the sequences is where the query will be.
    assert plan.line_bytes + plan.line_sums_bytes + 16 <= plan.region("query").bytes


def test_output_and_scores_fit_tensor_memory() -> None:
    plan = planned()
    columns = [(region.name, region.column, region.columns) for region in plan.tensor_memory]
    assert columns == [("o", 0, 256), ("s_even", 256, 32), ("s_odd", 288, 32)]
    assert plan.tensor_memory_columns == 512


def test_barriers_count_both_ctas() -> None:
    plan = planned()
    key, value = plan.barrier("key_full"), plan.barrier("value_full")
    assert (key.slots, key.transaction_bytes) == (2 * 3, 2 * 3 * 64 * 2 * 32)
    assert (value.slots, value.transaction_bytes) == (2, 2 * 64 * 256 * 2)
    bytes_of_a_block = 3 * key.transaction_bytes + value.transaction_bytes
    assert bytes_of_a_block == 64 * 2 * (576 + 512)
    for name in ("query_full", "probabilities_full"):
        assert (plan.barrier(name).arrivals, plan.barrier(name).cta) == (2 * 4, "leader")


@pytest.mark.parametrize("page_size", [64, 128, 256])
def test_a_copy_is_a_panel_of_half_the_keys(page_size: int) -> None:
    plan = planned(keys="paged", page_size=page_size)
    assert plan.tensor_map("key").box[:2] == (64, 32)
    assert [row.name for row in plan.tensor_maps] == ["key"]
    assert not [row.name for row in plan.parameters if row.name.startswith("value")]


@pytest.mark.parametrize(
    ("multiprocessors", "batch", "keys", "grid"),
    [(148, 64, 4096, 148), (149, 64, 4096, 148), (148, 1, 640, 20), (148, 1, 0, 2), (1, 1, 99, 2)],
)
def test_pairs_have_shares(multiprocessors: int, batch: int, keys: int, grid: int) -> None:
    plan = planned()
    size = ProblemSize(batch, 128, 128, 1, keys)
    assert plan_schedule(plan, size, multiprocessors).grid == grid
    pairs = max(1, multiprocessors // 2)
    partial = 128 * plan.partial_stride * 4
    assert plan.workspace_bytes(multiprocessors) == plan.ticket_bytes + pairs * 2 * partial


def test_more_rows_than_a_tile_has_are_several() -> None:
    assert plan_schedule(planned(), ProblemSize(1, 128, 128, 2, 64), 148).tiles_per_head == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"value_depth": "auto"}, "value_depth: auto is not possible; it must be 512"),
        ({"pack_heads": False}, "pack_heads: false is not possible; it must be true"),
        ({"cta_group": 1}, "cta_group: 1 is not possible; it must be 2"),
        ({"dtype": "fp8_e4m3"}, "dtype: fp8_e4m3 is not possible; it must be bf16 or fp16"),
        ({"kv_dtype": "fp8_e4m3"}, "depth: 576 has no kv_dtype, got fp8_e4m3"),
        ({"packed_rows": 16}, "depth: 576 has no packed_rows, got 16"),
        ({"num_kv_stages": 3}, "depth: 576 needs num_kv_stages: 2, got 3"),
        ({"num_qk_stages": 2}, "depth: 576 needs num_qk_stages: 3, got 2"),
        ({"BN": 128}, "depth: 576 needs BN: 64, got 128"),
        ({"batching": "ragged"}, "batching: ragged with pack_heads is not supported yet"),
        ({"keys": "paged", "page_size": 32}, "is no multiple of the 64 keys of a block"),
    ],
)
def test_what_cannot_work_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        planned(**keys)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"mask": {"sliding_window": 9}, **PAGES, "split_keys": {"keys": 512}},
        {"sinks": True, "lse": False, "softcap": 9.0},
        {"arch": "sm_103a", "dtype": "fp16", "key_lengths": True, "mask": {"chunked": 128}},
    ],
)
def test_what_hopper_has_no_registers_for_is_planned(keys: dict[str, Any]) -> None:
    assert planned(**keys).values_in_keys
