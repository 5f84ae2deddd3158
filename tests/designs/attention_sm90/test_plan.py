"""Properties of the plan of every config that is accepted."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.errors import ConfigError
from fa4gen.render.manifest import config_data
from tests.designs.facts import facts

Strategy = st.SearchStrategy[HopperAttentionConfig]
PlanOf = Callable[..., AttentionPlan]

Invariant = Callable[[HopperAttentionConfig, AttentionPlan], None]

INVARIANTS: list[Invariant] = []
OF_PACKED_HEADS = {"kv_dtype", "packed_rows", "split_keys"}
OF_BYTES = {"kv_scale", "promote_every"}
AUTO_KEYS = (
    {
        name
        for name, field in HopperAttentionConfig.model_fields.items()
        if "auto" in str(field.annotation)
    }
    - OF_PACKED_HEADS
    - OF_BYTES
)


def invariant(check: Invariant) -> Invariant:
    """Check this too for every config that is drawn."""
    INVARIANTS.append(check)
    return check


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_plan_keeps_the_invariants(any_config: Strategy, data: st.DataObject) -> None:
    config = data.draw(any_config)
    try:
        plan = build_plan(config)
    except ConfigError:
        reject()
    for holds in INVARIANTS:
        holds(config, plan)


@invariant
def regions_lie_in_order_apart_and_aligned_inside_the_limit(
    _config: HopperAttentionConfig, plan: AttentionPlan
) -> None:
    for region in plan.shared:
        assert region.offset % region.alignment == 0
        assert region.bytes == region.slots * region.slot_bytes
        if region.name in ("query", "key", "value"):
            assert region.alignment == 1024
            assert region.slot_bytes % 1024 == 0  # so each slot starts a swizzle pattern
    assert plan.shared[0].offset == 0
    for before, behind in itertools.pairwise(plan.shared):
        assert before.end <= behind.offset
    # The kernel rounds the base up to 1024, from wherever the driver's 16-byte alignment puts it.
    assert plan.shared_bytes_used + 1024 - 16 <= plan.launch.dynamic_shared_bytes
    assert plan.launch.dynamic_shared_bytes <= ARCHITECTURES[plan.arch].shared_bytes


@invariant
def panels_of_a_block_start_swizzle_patterns(
    _config: HopperAttentionConfig, plan: AttentionPlan
) -> None:
    row_bytes = plan.panel_columns * plan.element_bytes
    pattern = 8 * row_bytes  # eight rows, after which the swizzle repeats
    assert 64 * row_bytes % pattern == 0
    assert plan.BN // plan.cta_group * row_bytes % pattern == 0
    assert 16 * row_bytes % pattern == 0  # of one chunk of P.V to the next


@invariant
def barriers_lie_apart_inside_their_region(
    _config: HopperAttentionConfig, plan: AttentionPlan
) -> None:
    region = plan.region("barriers")
    taken = [
        range(row.offset + 8 * slot, row.offset + 8 * slot + 8)
        for row in plan.barriers
        for slot in range(row.slots)
    ]
    assert all(place.start % 8 == 0 for place in taken)
    assert [byte for place in taken for byte in place] == list(range(region.offset, region.end))
    assert len({row.name for row in plan.barriers}) == len(plan.barriers)
    assert len({row.constant for row in plan.barriers}) == len(plan.barriers)


@invariant
def arrivals_are_those_of_the_roles(_config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    consumer_warps = sum(role.num_warps for role in plan.roles if role.name.startswith("consume"))
    tiles_are_shared = plan.cta_group == 2 and plan.scheduler == "dynamic"
    arrivals = {row.name: row.arrivals for row in plan.barriers}
    transposing = 3 if plan.element_bytes == 1 and not plan.has_lines_of_keys else 0
    for ring in ("key", "value"):
        own = transposing if ring == "value" and transposing else 1
        assert arrivals[f"{ring}_full"] == own  # 1: the loader's, with the bytes that it expects
        assert arrivals[f"{ring}_empty"] == consumer_warps * plan.cta_group
    if transposing:
        assert (arrivals["value_rows_full"], arrivals["value_rows_empty"]) == (1, transposing)
    assert arrivals["query_full"] == 1
    assert arrivals["query_empty"] == (1 if plan.epilogue == "tma_store" else 4)
    assert arrivals["tile_full"] == 1
    assert arrivals["tile_empty"] == (
        2 * consumer_warps + 1 if tiles_are_shared else consumer_warps + transposing
    )
    assert all(0 < count < 2**20 for count in arrivals.values())
    for row in plan.barriers:
        waits_first = row.name.endswith("_empty")
        assert row.first_wait_parity == (1 if waits_first else 0)


@invariant
def bytes_on_a_barrier_are_those_of_the_boxes(
    _config: HopperAttentionConfig, plan: AttentionPlan
) -> None:
    for tensor_map in plan.tensor_maps:
        if tensor_map.tensor == "out":
            assert tensor_map.box_bytes == 64 * plan.value_depth * plan.element_bytes
            assert tensor_map.box_bytes <= plan.region("query").slot_bytes
            continue
        slot = plan.region(tensor_map.tensor).slot_bytes
        boxes, rest = divmod(slot, tensor_map.box_bytes)
        assert rest == 0
        # In a pair each CTA copies half of the rows, one box for each panel.
        halved = plan.cta_group == 2 and tensor_map.tensor != "query"
        depth = plan.value_depth if tensor_map.tensor == "value" else plan.depth
        assert boxes == (2 * depth // plan.panel_columns if halved else 1)
        turned_over = plan.element_bytes == 1 and tensor_map.tensor == "value"
        full = plan.barrier("value_rows_full" if turned_over else f"{tensor_map.tensor}_full")
        assert full.transaction_bytes == slot < 2**20
        assert full.slots == plan.region(tensor_map.tensor).slots
    for row in plan.barriers:
        assert (row.transaction_bytes > 0) == (row.arrive_how == "tma_bytes")


@invariant
def tensor_maps_can_be_encoded(_config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    parameters = {parameter.name: parameter.c_type for parameter in plan.parameters}
    for tensor_map in plan.tensor_maps:
        assert tensor_map.box[0] * plan.element_bytes == tensor_map.swizzle
        assert all(1 <= extent <= 256 for extent in tensor_map.box)
        assert len(tensor_map.box) == len(tensor_map.dims) == 5
        assert tensor_map.box[0] == plan.panel_columns
        assert plan.panel_columns * plan.num_panels == plan.depth
        assert plan.value_depth % plan.panel_columns == 0
        assert parameters[tensor_map.parameter] == "const __grid_constant__ TensorMap"
    stored = [m.tensor for m in plan.tensor_maps if m.direction == "store"]
    assert stored == (["out"] if plan.epilogue == "tma_store" else [])


@invariant
def registers_fit_the_register_file(_config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    arch = ARCHITECTURES[plan.arch]
    assert sum(role.num_threads for role in plan.roles) == plan.launch.threads <= 1024
    assert sum(role.num_threads * role.registers for role in plan.roles) <= arch.registers
    at_launch = min(256, arch.registers // plan.launch.threads // 8 * 8)
    producer, *consumers = plan.roles
    assert 24 <= producer.registers <= at_launch
    for role in consumers:
        assert at_launch <= role.registers == plan.consumer_registers <= 256
        assert role.registers % 8 == 0
    warps = [range(r.first_warp, r.first_warp + r.num_warps) for r in plan.roles]
    assert [w for some in warps for w in some] == list(range(plan.launch.threads // 32))


@invariant
def named_barriers_exist_and_differ(_config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    ids = [
        first + warpgroup
        for _, first in plan.named_barriers
        for warpgroup in range(plan.num_consumer_warpgroups)
    ]
    assert len(set(ids)) == len(ids)
    assert all(0 < number < ARCHITECTURES[plan.arch].named_barriers for number in ids)
    names = {name for name, _ in plan.named_barriers}
    assert ("turn_barrier" in names) == plan.ping_pong
    assert ("epilogue_barrier" in names) == (plan.epilogue == "tma_store")


@invariant
def every_auto_is_accounted_for(config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    choices = {choice.key: choice for choice in plan.choices}
    assert len(choices) == len(plan.choices)
    assert set(choices) >= AUTO_KEYS
    for key, choice in choices.items():
        if key == "registers":
            assert choice.value == RegisterBudget(
                producer=plan.producer_registers, consumer=plan.consumer_registers
            )
        elif key == "promote_every":
            assert plan.promoted_keys == (
                None if choice.value == "never" else choice.value * plan.BN
            )
        elif key == "rescale_threshold":
            assert plan.rescale_threshold in (choice.value, 0.0)
        else:
            assert choice.value == getattr(plan, key), key
        given_value = getattr(config, key, "auto")  # what a key decides, too
        if given_value == "auto":
            assert choice.source in ("auto", "derived")
            assert choice.reason
        else:
            assert choice.source in ("config", "default")
            if key != "registers":
                assert choice.value == given_value


def test_there_are_keys_that_accept_auto() -> None:
    assert {"BM", "BN", "num_kv_stages", "registers", "epilogue"} <= AUTO_KEYS


@invariant
def parameters_have_names_of_their_own(_config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    names = [parameter.name for parameter in plan.parameters]
    assert len(set(names)) == len(names)
    assert ("out_map" in names) != ("out" in names)
    assert ("lse" in names) == plan.lse
    assert ("tile_counter" in names) == (plan.scheduler == "dynamic")
    assert ("softmax_scale" in names) == bool(plan.score.FUNCTION)


@invariant
def a_plan_is_a_value(config: HopperAttentionConfig, plan: AttentionPlan) -> None:
    again = build_plan(HopperAttentionConfig.model_validate(config.data(only_given=True)))
    assert again == plan
    assert hash(again) == hash(plan)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.BN = 16  # type: ignore[misc]


@invariant
def what_spells_out_the_choices_gives_the_same_kernel(
    config: HopperAttentionConfig, plan: AttentionPlan
) -> None:
    keys = type(config).model_fields
    spelled = {choice.key: choice.value for choice in plan.choices if choice.key in keys}
    spelled["registers"] = {
        "producer": plan.producer_registers,
        "consumer": plan.consumer_registers,
    }
    again = build_plan(HopperAttentionConfig.model_validate({**config.data(), **spelled}))
    assert facts(again) == facts(plan)


def test_the_prototypes_kernel_comes_of_the_defaults(plan_of: PlanOf) -> None:
    plan = plan_of(mask="causal")
    assert (plan.BM, plan.BN, plan.num_kv_stages) == (192, 96, 2)
    assert (plan.producer_registers, plan.consumer_registers) == (32, 160)
    assert plan.launch.threads == 512
    sizes = {region.name: region.bytes for region in plan.shared}
    assert sizes["query"] == 48 * 1024
    assert sizes["key"] == sizes["value"] == 2 * 24 * 1024
    assert plan.mixed_tile_heights
    assert plan.summary == (
        "bf16, sums in float32; depth 128; mask causal",
        "tiles of 192 query rows x 96 keys, 3 consumer warpgroups, 2 stages",
        "dynamic scheduler, output from registers",
    )


@pytest.mark.parametrize("mask", ["none", "causal", {"sliding_window": {"left": 3, "right": 5}}])
def test_the_mask_is_the_config_s(plan_of: PlanOf, mask: object) -> None:
    names = [mask] if isinstance(mask, str) else list(mask)
    assert [plan_of(mask=mask).mask.name] == names


def test_a_threshold_too_small_for_float32_is_none_at_all(plan_of: PlanOf) -> None:
    assert plan_of(rescale_threshold=1e-60).rescale_threshold == 0.0
    assert plan_of(rescale_threshold=1e-30).rescale_threshold == 1e-30


def test_tiles_of_several_heads(plan_of) -> None:
    """Boxes of queries have rows of all the heads of a tile, head after head."""
    plan = plan_of(tile_heads=4, epilogue="tma_store")
    for name in ("query", "out"):
        row = plan.tensor_map(name)
        assert row.dims == ("column", "head", "row", "panel", "batch")
        assert row.box == (64, 4, 16, 2, 1)
        assert row.box_bytes == plan_of().tensor_map("query").box_bytes
    assert plan.tensor_map("key") == plan_of().tensor_map("key")
    assert plan.tile_queries == plan.BM // 4


def test_a_config_without_tile_heads_has_the_hash_from_before_there_was_the_key(config_of) -> None:
    assert "tile_heads" not in config_data(config_of())
    assert "tile_heads" not in config_data(config_of(tile_heads=1))
    assert config_data(config_of(tile_heads=2))["tile_heads"] == 2
