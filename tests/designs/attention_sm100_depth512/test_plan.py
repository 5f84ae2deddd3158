"""Properties of the plan of every config that is accepted."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_config import RoleRegisters
from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.errors import ConfigError
from tests.designs.facts import facts

Strategy = st.SearchStrategy[BlackwellPairAttentionConfig]
PlanOf = Callable[..., Depth512Config]
Invariant = Callable[[BlackwellPairAttentionConfig, Depth512Config], None]

INVARIANTS: list[Invariant] = []
LARGEST_E4M3 = 448


def invariant(check: Invariant) -> Invariant:
    """Check this too for every config that is drawn."""
    INVARIANTS.append(check)
    return check


def check_invariants(config: BlackwellPairAttentionConfig) -> None:
    plan = build_plan(config)
    assert isinstance(plan, Depth512Config)
    for holds in INVARIANTS:
        holds(config, plan)


@settings(max_examples=50)
@given(st.data())
def test_every_plan_keeps_the_invariants(free_config: Strategy, data: st.DataObject) -> None:
    check_invariants(data.draw(free_config))


@settings(max_examples=60)
@given(st.data())
def test_every_key_may_be_set(any_config: Strategy, data: st.DataObject) -> None:
    config = data.draw(any_config)
    try:
        build_plan(config)
    except ConfigError:
        reject()  # test_limits follows its remedies
    check_invariants(config)


@invariant
def regions_lie_in_order_apart_and_aligned_inside_the_limit(
    _config: BlackwellPairAttentionConfig, plan: Depth512Config
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
def slots_hold_their_tiles(_config: BlackwellPairAttentionConfig, plan: Depth512Config) -> None:
    size = plan.element_bytes
    assert plan.BK0 * plan.num_qk_stages == plan.depth == plan.value_depth == 512
    assert plan.BK1 * plan.num_pv_stages == plan.BN == 256
    assert (plan.cta_group, plan.BM, plan.panel_columns * size) == (2, 64, 128)
    assert plan.region("query").slot_bytes == plan.BM * plan.depth * size
    assert plan.region("probabilities").slot_bytes == plan.BM * plan.BN * size
    kv = plan.region("kv")
    # a part of K is half of the keys, a part of V half of a half's columns
    assert (
        kv.slot_bytes == plan.BN // 2 * plan.BK0 * size == plan.BK1 * plan.value_depth // 4 * size
    )
    assert kv.slots == plan.num_kv_stages
    half = plan.BM * plan.value_depth // 2 * plan.out_element_bytes
    assert plan.staging_step + half <= plan.region("query").slot_bytes
    assert plan.staging_step in (0, half)


@invariant
def barriers_are_one_for_each_lane(
    _config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    region = plan.region("barriers")
    taken = [row.offset + 8 * slot for row in plan.barriers for slot in range(row.slots)]
    assert taken == list(range(region.offset, region.end, 8))
    initialised_by_lanes = plan.barrier("query_empty").offset - region.offset
    assert initialised_by_lanes == 8 * (10 + 2 * plan.num_kv_stages) <= 8 * 32


@invariant
def tensor_memory_is_disjoint(_config: BlackwellPairAttentionConfig, plan: Depth512Config) -> None:
    for a, b in itertools.combinations(plan.tensor_memory, 2):
        assert a.end <= b.column or b.end <= a.column
    assert max(place.end for place in plan.tensor_memory) <= plan.tensor_memory_columns == 512


@invariant
def registers_fit_the_register_file(
    _config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    assert sum(role.num_threads for role in plan.roles) == plan.launch.threads == 384
    assert plan.registers_at_entry == 168
    pool = plan.registers_at_entry * plan.launch.threads
    assert sum(role.num_threads * role.registers for role in plan.roles) <= pool
    assert pool <= ARCHITECTURES[plan.arch].registers
    warps = [role.registers for role in plan.roles for _ in range(role.num_warps)]
    for first in range(0, 12, 4):
        assert len(set(warps[first : first + 4])) == 1  # setmaxnreg is for all four warps
    assert all(24 <= count <= 256 and count % 8 == 0 for count in warps)
    assert plan.softmax_registers >= 136


@invariant
def tensor_maps_can_be_encoded(_config: BlackwellPairAttentionConfig, plan: Depth512Config) -> None:
    names = [tensor_map.tensor for tensor_map in plan.tensor_maps]
    assert names == ["query", "key", "value", "out"]
    parameters = {parameter.name: parameter.c_type for parameter in plan.parameters}
    for tensor_map in plan.tensor_maps:
        size = plan.out_element_bytes if tensor_map.tensor == "out" else plan.element_bytes
        assert tensor_map.box[0] * size == tensor_map.swizzle == 128
        assert all(1 <= extent <= 256 for extent in tensor_map.box)
        assert parameters[tensor_map.parameter] == "const __grid_constant__ TensorMap"


@invariant
def probabilities_fit_their_type(
    _config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    largest = 2.0 ** (plan.rescale_threshold + plan.probability_shift)
    if plan.dtype == "fp8_e4m3":
        assert 0 <= plan.probability_shift <= 8
        assert LARGEST_E4M3 / 2 < largest <= LARGEST_E4M3 * (1 + 1e-9)
    else:
        assert plan.probability_shift == 0


@invariant
def every_choice_is_accounted_for(
    config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    choices = {choice.key: choice for choice in plan.choices}
    assert len(choices) == len(plan.choices)
    for key, choice in choices.items():
        given_value = getattr(config, key)
        if key == "registers":
            assert choice.value == RoleRegisters(
                softmax=plan.softmax_registers,
                correction=plan.correction_registers,
                other=plan.other_registers,
            )
        elif hasattr(plan, key) and key != "rescale_threshold":
            assert choice.value == getattr(plan, key), key
        if given_value == "auto":
            assert choice.source in ("auto", "derived")
            assert choice.reason
        elif key != "registers":
            assert choice.value == given_value


@invariant
def parameters_have_names_of_their_own(
    _config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    names = [parameter.name for parameter in plan.parameters]
    assert len(set(names)) == len(names)
    assert ("lse" in names) == plan.lse
    assert ("tile_counter" in names) == (plan.scheduler == "dynamic")
    assert ("softmax_scale" in names) == bool(plan.score.FUNCTION)
    descales = {"query_descale", "key_descale", "value_descale"}
    assert plan.has_descales == (plan.dtype == "fp8_e4m3") == (descales <= set(names))


@invariant
def a_plan_is_a_value(config: BlackwellPairAttentionConfig, plan: Depth512Config) -> None:
    same = BlackwellPairAttentionConfig.model_validate(config.data(only_given=True))
    again = build_plan(same)
    assert again == plan
    assert hash(again) == hash(plan)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.BN = 16  # type: ignore[misc]


@invariant
def what_spells_out_the_choices_gives_the_same_kernel(
    config: BlackwellPairAttentionConfig, plan: Depth512Config
) -> None:
    spelled = {choice.key: choice.value for choice in plan.choices}
    spelled["registers"] = {
        "softmax": plan.softmax_registers,
        "correction": plan.correction_registers,
        "other": plan.other_registers,
    }
    again = build_plan(BlackwellPairAttentionConfig.model_validate({**config.data(), **spelled}))
    assert facts(again) == facts(plan)


def test_roles(plan_of: PlanOf) -> None:
    plan = plan_of()
    assert [(r.name, r.first_warp, r.num_warps, r.registers) for r in plan.roles] == [
        ("softmax", 0, 4, 216),
        ("correction", 4, 4, 128),
        ("mma", 8, 1, 64),
        ("load", 9, 1, 64),
        ("idle", 10, 2, 64),
    ]
    assert (plan.launch.cluster, plan.launch.threads) == (2, 384)


@pytest.mark.parametrize(
    ("dtype", "boxes"),
    [
        ("bf16", {"query": (64, 64, 2), "key": (64, 128, 2), "value": (64, 128, 2),
                  "out": (64, 64, 4)}),
        ("fp8_e4m3", {"query": (128, 64, 1), "key": (128, 128, 1), "value": (128, 128, 1),
                      "out": (64, 64, 4)}),
    ],
)  # fmt: skip
def test_boxes(plan_of: PlanOf, dtype: str, boxes: dict[str, object]) -> None:
    plan = plan_of(dtype=dtype)
    assert {tensor_map.tensor: tensor_map.box[:3] for tensor_map in plan.tensor_maps} == boxes


def test_the_summary_tells_what_is_special(plan_of: PlanOf) -> None:
    plan = plan_of(mask={"sliding_window": 100}, softcap=30.0)
    assert plan.summary == (
        "bf16, sums in float32; depth 512; mask sliding window, 99 keys left and 0 right",
        "a pair of CTAs takes 128 query rows x 256 keys; a ring of 4 slots for parts of keys and "
        "values",
        "static scheduler; 0.0% of exp2 on the FMA pipe",
        "logits capped at 30.0",
    )
    assert plan_of(dtype="fp8_e4m3").summary[0] == (
        "fp8_e4m3 to bf16, sums in float32; depth 512; mask none"
    )


def test_both_chips_have_plans_of_their_own(plan_of: PlanOf) -> None:
    b200, b300 = plan_of(), plan_of(arch="sm_103a")
    assert (b200.feature_macro, b300.feature_macro) == (
        "__CUDA_ARCH_FEAT_SM100_ALL",
        "__CUDA_ARCH_FEAT_SM103_ALL",
    )
    assert (b300.shared, b300.barriers) == (b200.shared, b200.barriers)
