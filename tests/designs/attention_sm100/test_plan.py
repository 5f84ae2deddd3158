"""Properties of the plan of every config that is accepted."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_config import RoleRegisters
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.errors import ConfigError
from tests.designs.facts import facts

Strategy = st.SearchStrategy[BlackwellAttentionConfig]
PlanOf = Callable[..., FA4Config]
Invariant = Callable[[BlackwellAttentionConfig, FA4Config], None]

INVARIANTS: list[Invariant] = []
AUTO_KEYS = {
    name
    for name, field in BlackwellAttentionConfig.model_fields.items()
    if "auto" in str(field.annotation)
} - {"kv_dtype", "kv_scale", "packed_rows", "split_keys"}  # of packed heads
LARGEST_E4M3 = 448


def invariant(check: Invariant) -> Invariant:
    """Check this too for every config that is drawn."""
    INVARIANTS.append(check)
    return check


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_plan_keeps_the_invariants(any_config: Strategy, data: st.DataObject) -> None:
    config = data.draw(any_config)
    try:
        plan = build_plan(config)
    except ConfigError:
        reject()
    assert isinstance(plan, FA4Config)
    for holds in INVARIANTS:
        holds(config, plan)


@invariant
def regions_lie_in_order_apart_and_aligned_inside_the_limit(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    for region in plan.shared:
        assert region.offset % region.alignment == 0
        assert region.bytes == region.slots * region.slot_bytes
    assert plan.shared[0].offset == 0
    assert plan.shared[0].alignment == 1024
    for before, behind in itertools.pairwise(plan.shared):
        assert before.end <= behind.offset
    # The kernel rounds the base up to 1024, from wherever the driver's 16-byte alignment puts it.
    assert plan.shared_bytes_used + 1024 - 16 <= plan.launch.dynamic_shared_bytes
    assert plan.launch.dynamic_shared_bytes <= ARCHITECTURES[plan.arch].shared_bytes == 232448


@invariant
def operands_start_swizzle_patterns(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    """Eight rows of a panel are a pattern; whatever a descriptor starts at has to start one."""
    pair, size = plan.cta_group, plan.element_bytes
    key_row, value_row = plan.panel_columns * size, plan.value_panel_columns * size
    out_row = plan.out_panel_columns * plan.out_element_bytes
    for name in ("query", "key", "value", "kv", "output"):
        for region in plan.shared:
            if region.name == name:
                row = {"value": value_row, "output": out_row}.get(name, key_row)
                row = max(key_row, value_row) if name == "kv" else row
                assert region.slot_bytes % (8 * row) == 0
    assert plan.BN // pair % 8 == 0  # rows of a panel of keys in one CTA
    assert plan.mma_k % 8 == 0  # rows of a panel of values that one MMA reads
    assert plan.mma_k * size == 32
    assert plan.depth % plan.mma_k == plan.BN % plan.mma_k == 0


@invariant
def slots_hold_their_tiles(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    pair, size = plan.cta_group, plan.element_bytes
    key, value = plan.BN * plan.depth * size // pair, plan.BN * plan.value_depth * size // pair
    names = {region.name: region for region in plan.shared}
    assert names["query"].slots == plan.num_qo == plan.BM // 128
    assert names["query"].slot_bytes == 128 * plan.depth * size
    if plan.kv_ring == "fused":
        assert names["kv"].slots == plan.num_kv_stages >= 2
        assert names["kv"].slot_bytes == max(key, value)
    else:
        assert names["key"].slots == names["value"].slots == plan.num_kv_stages
        assert (names["key"].slot_bytes, names["value"].slot_bytes) == (key, value)
    staging = names["output" if plan.output_staging == "own" else "query"]
    assert ("output" in names) == (plan.output_staging == "own")
    assert staging.slots == plan.num_qo
    assert staging.slot_bytes >= 128 * plan.value_depth * plan.out_element_bytes
    assert names["scale"].slot_bytes == 128 * 4


@invariant
def tensor_memory_is_disjoint_but_for_probabilities_over_their_own_scores(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    for a, b in itertools.combinations(plan.tensor_memory, 2):
        if a.column < b.end and b.column < a.end:
            assert (a.name[:-2], b.name[:-2]) == ("scores", "probabilities")
            assert a.name[-1] == b.name[-1]
            assert a.column == b.column
            assert b.end <= a.end
    columns = {region.name: region.columns for region in plan.tensor_memory}
    for i in range(2):
        assert columns[f"scores_{i}"] == plan.BN
        assert columns[f"probabilities_{i}"] == plan.BN * plan.element_bytes // 4
    outputs = {name for name in columns if name.startswith("output")}
    assert outputs == {f"output_{i}" for i in range(plan.num_qo)}
    assert all(columns[name] == plan.value_depth for name in outputs)
    allocated = plan.tensor_memory_columns
    end = max(region.end for region in plan.tensor_memory)
    assert allocated in (32, 64, 128, 256, 512)
    assert end <= allocated
    assert allocated == 32 or end > allocated // 2


@invariant
def barriers_lie_apart_inside_their_region(
    _config: BlackwellAttentionConfig, plan: FA4Config
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
def consumers_barriers_follow_the_producers(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    rings = ("kv",) if plan.kv_ring == "fused" else ("key", "value")
    for name in rings:
        full, empty = plan.barrier(f"{name}_full"), plan.barrier(f"{name}_empty")
        parts = plan.num_qk_stages if name == "key" else 1
        assert full.slots == empty.slots == plan.num_kv_stages * parts
        assert empty.offset == full.offset + full.bytes
    for full_name, empty_name in (
        ("query_full", "query_empty"),
        ("scale_full", "scale_empty"),
        ("output_full", "output_ready"),
        ("tile_full", "tile_empty"),
    ):
        full, empty = plan.barrier(full_name), plan.barrier(empty_name)
        assert empty.offset == full.offset + full.bytes
        assert (full.first_wait_parity, empty.first_wait_parity) == (0, 1)


@invariant
def arrivals_are_those_of_the_roles(config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    pair = plan.cta_group
    commit = "multicast_commit" if pair == 2 else "mma_commit"
    rows = {row.name: (row.arrivals, row.arrive_how) for row in plan.barriers}
    rings = ("kv",) if plan.kv_ring == "fused" else ("key", "value")
    for name in ("query", *rings):
        assert rows[f"{name}_full"] == (1, "tma_bytes")
    for name in rings:
        assert rows[f"{name}_empty"] == (1, commit)
    assert rows["query_empty"] == (1, commit if plan.output_staging == "own" else "thread")
    assert rows["scores_full"] == rows["output_full"] == (1, commit)
    assert rows["probabilities_full"] == rows["output_ready"] == (128 * pair, "thread")
    assert rows["scale_full"] == rows["scale_empty"] == (128, "thread")
    readers = sum(role.num_warps for role in plan.roles if role.name not in ("load", "idle"))
    shared = pair == 2 and plan.scheduler == "dynamic"
    assert rows["tile_empty"] == (2 * readers + 1 if shared else readers, "thread")
    assert rows["tile_full"] == (1, "thread")
    assert all(0 < row.arrivals < 2**20 for row in plan.barriers)
    slots = {row.name: row.slots for row in plan.barriers}
    assert slots["query_full"] == plan.num_qo * plan.num_qk_stages
    assert slots["scores_full"] == 2
    assert slots["probabilities_full"] == 2 * plan.num_pv_stages
    assert slots["scale_full"] == slots["output_full"] == plan.num_qo
    ctas = {row.cta for row in plan.barriers}
    if config.cta_group == 1:
        assert ctas == {"own"}
    else:
        waits_of_the_leader = {row.name for row in plan.barriers if row.cta == "leader"}
        filled = {f"{name}_full" for name in ("query", *rings)}
        shared_rows = {"tile_empty"} if shared else set()
        assert waits_of_the_leader == {
            *filled, *shared_rows, "probabilities_full", "output_ready"
        }  # fmt: skip


@invariant
def bytes_on_a_barrier_are_those_of_the_boxes(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    boxes = {tensor_map.tensor: tensor_map.box_bytes for tensor_map in plan.tensor_maps}
    assert boxes["out"] == 128 * plan.value_depth * plan.out_element_bytes
    # In a pair each CTA loads its part, and the leader's barrier counts the bytes of both.
    full = {row.name: row.transaction_bytes for row in plan.barriers}
    assert full["query_full"] == boxes["query"] * plan.cta_group
    if plan.kv_ring == "separate":
        assert full["key_full"] == boxes["key"] * plan.cta_group
        assert full["value_full"] == boxes["value"] * plan.cta_group
    else:
        assert plan.num_qk_stages == 1
    assert max(full.values()) < 2**20
    slot = plan.region("query").slot_bytes
    assert boxes["query"] * plan.num_qk_stages == slot
    assert boxes["key"] * plan.num_qk_stages == plan.BN * plan.depth * plan.element_bytes // (
        plan.cta_group
    )


@invariant
def tensor_maps_can_be_encoded(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    parameters = {parameter.name: parameter.c_type for parameter in plan.parameters}
    names = [tensor_map.tensor for tensor_map in plan.tensor_maps]
    assert names == ["query", "key", "value", "out"]
    for tensor_map in plan.tensor_maps:
        size = plan.out_element_bytes if tensor_map.tensor == "out" else plan.element_bytes
        assert tensor_map.box[0] * size == tensor_map.swizzle
        assert tensor_map.swizzle in (32, 64, 128)
        assert all(1 <= extent <= 256 for extent in tensor_map.box)
        assert len(tensor_map.box) == len(tensor_map.dims) == 5
        assert parameters[tensor_map.parameter] == "const __grid_constant__ TensorMap"
    assert plan.panel_columns * plan.num_panels == plan.depth == plan.padded_depth
    assert plan.BK0 * plan.num_qk_stages == plan.depth
    assert plan.BK0 % plan.panel_columns == 0
    assert plan.value_depth % (plan.value_panel_columns * plan.cta_group) == 0


@invariant
def parts_of_the_probabilities_tile_the_block(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    assert len(plan.pv_parts) == plan.num_pv_stages
    assert sum(plan.pv_parts) == plan.BN == plan.BK1
    assert all(keys > 0 and keys % 32 == 0 for keys in plan.pv_parts)


@invariant
def products_have_shapes_of_the_hardware(
    _config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    for columns in (plan.BN, plan.value_depth):
        assert columns % (16 * plan.cta_group) == 0
        assert columns <= 256


@invariant
def registers_fit_the_register_file(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    arch = ARCHITECTURES[plan.arch]
    assert sum(role.num_threads for role in plan.roles) == plan.launch.threads
    assert plan.launch.threads == 128 * (plan.num_qo + 2)
    assert plan.registers_at_entry == {512: 128, 384: 168}[plan.launch.threads]
    pool = plan.registers_at_entry * plan.launch.threads
    assert sum(role.num_threads * role.registers for role in plan.roles) <= pool <= arch.registers
    warpgroups = [role.registers for role in plan.roles for _ in range(role.num_warps)]
    for first in range(0, len(warpgroups), 4):
        assert len(set(warpgroups[first : first + 4])) == 1  # setmaxnreg is for all four warps
    assert all(24 <= count <= 256 and count % 8 == 0 for count in warpgroups)
    assert plan.softmax_registers > plan.BN
    warps = [range(r.first_warp, r.first_warp + r.num_warps) for r in plan.roles]
    assert [w for some in warps for w in some] == list(range(plan.launch.threads // 32))


@invariant
def probabilities_fit_their_type(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    largest = 2.0 ** (plan.rescale_threshold + plan.probability_shift)
    if plan.dtype == "fp8_e4m3":
        assert 0 <= plan.probability_shift <= 8
        assert LARGEST_E4M3 / 2 < largest <= LARGEST_E4M3 * (1 + 1e-9)
    else:
        assert plan.probability_shift == 0
        assert largest <= 2**10


@invariant
def every_auto_is_accounted_for(config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    choices = {choice.key: choice for choice in plan.choices}
    assert len(choices) == len(plan.choices)
    assert set(choices) >= AUTO_KEYS
    for key, choice in choices.items():
        if key == "registers":
            assert choice.value == RoleRegisters(
                softmax=plan.softmax_registers,
                correction=plan.correction_registers,
                other=plan.other_registers,
            )
        elif key == "rescale_threshold":
            assert plan.rescale_threshold in (choice.value, 0.0)
        else:
            assert choice.value == getattr(plan, key), key
        given_value = getattr(config, key)
        if given_value == "auto":
            assert choice.source in ("auto", "derived")
            assert choice.reason
        else:
            assert choice.source in ("config", "default")
            if key != "registers":
                assert choice.value == given_value


@invariant
def parameters_have_names_of_their_own(_config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    names = [parameter.name for parameter in plan.parameters]
    assert len(set(names)) == len(names)
    assert ("lse" in names) == plan.lse
    assert ("tile_counter" in names) == (plan.scheduler == "dynamic")
    assert ("softmax_scale" in names) == bool(plan.score.FUNCTION)
    descales = {"query_descale", "key_descale", "value_descale"}
    assert plan.has_descales == (plan.dtype == "fp8_e4m3") == (descales <= set(names))


@invariant
def a_plan_is_a_value(config: BlackwellAttentionConfig, plan: FA4Config) -> None:
    same = BlackwellAttentionConfig.model_validate(config.data(only_given=True))
    again = build_plan(same)
    assert again == plan
    assert hash(again) == hash(plan)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.BN = 16  # type: ignore[misc]


@invariant
def what_spells_out_the_choices_gives_the_same_kernel(
    config: BlackwellAttentionConfig, plan: FA4Config
) -> None:
    spelled = {choice.key: choice.value for choice in plan.choices}
    spelled["registers"] = {
        "softmax": plan.softmax_registers,
        "correction": plan.correction_registers,
        "other": plan.other_registers,
    }
    again = build_plan(BlackwellAttentionConfig.model_validate({**config.data(), **spelled}))
    assert facts(again) == facts(plan)


def test_there_are_keys_that_accept_auto() -> None:
    assert {
        "BM", "BN", "num_kv_stages", "num_qk_stages", "num_pv_stages", "kv_ring", "registers",
        "output_staging", "scheduler", "rescale_threshold", "exp2_fma_share", "value_depth",
    } <= AUTO_KEYS  # fmt: skip


def test_both_chips_have_plans_of_their_own(plan_of: PlanOf) -> None:
    b200, b300 = plan_of(), plan_of(arch="sm_103a")
    assert (b200.feature_macro, b300.feature_macro) == (
        "__CUDA_ARCH_FEAT_SM100_ALL",
        "__CUDA_ARCH_FEAT_SM103_ALL",
    )
    assert (b200.exp2_fma_share, b300.exp2_fma_share) == (0.125, 0.0)
    assert b300.shared == b200.shared


def test_a_plan_for_the_family_is_that_of_the_chip_with_slower_exponentials(
    plan_of: PlanOf,
) -> None:
    family, b200 = plan_of(arch="sm_100f"), plan_of()
    assert family.exp2_fma_share == b200.exp2_fma_share
    assert family.shared == b200.shared


@pytest.mark.parametrize("mask", ["none", "causal", {"sliding_window": {"left": 3, "right": 5}}])
def test_the_mask_is_the_config_s(plan_of: PlanOf, mask: object) -> None:
    names = [mask] if isinstance(mask, str) else list(mask)
    assert [plan_of(mask=mask).mask.name] == names


def test_a_threshold_too_small_for_float32_is_none_at_all(plan_of: PlanOf) -> None:
    assert plan_of(rescale_threshold=1e-60).rescale_threshold == 0.0
    assert plan_of(rescale_threshold=1e-30).rescale_threshold == 1e-30
