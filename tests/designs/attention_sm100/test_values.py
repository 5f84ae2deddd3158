"""The plan's decisions where a config leaves keys out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.common.model import Choice

PlanOf = Callable[..., FA4Config]

# depth, value_depth, cta_group: BM, BN, ring, stages, parts of the depth, staging
SIXTEEN_BITS = {
    (64, 64, 1): (256, 128, "separate", 5, 1, "own"),
    (96, 96, 1): (256, 128, "fused", 5, 1, "own"),
    (128, 128, 1): (256, 128, "fused", 5, 1, "query"),
    (192, 192, 1): (256, 64, "fused", 5, 1, "query"),
    (192, 128, 1): (256, 96, "separate", 2, 3, "query"),
    (256, 256, 1): (128, 64, "fused", 5, 1, "query"),
    (64, 64, 2): (256, 128, "separate", 10, 1, "own"),
    (96, 96, 2): (256, 128, "separate", 5, 3, "own"),
    (128, 128, 2): (256, 128, "separate", 3, 2, "own"),
    (192, 192, 2): (256, 64, "separate", 5, 3, "query"),
    (192, 128, 2): (256, 128, "separate", 3, 3, "query"),
    (256, 256, 2): (128, 64, "separate", 3, 4, "own"),
}
EIGHT_BITS = {
    (64, 64, 1): (256, 128, "separate", 11, 1, "own"),
    (96, 96, 1): (256, 128, "separate", 6, 3, "own"),
    (128, 128, 1): (256, 128, "separate", 4, 1, "own"),
    (192, 192, 1): (256, 64, "separate", 3, 3, "own"),
    (192, 128, 1): (256, 128, "separate", 2, 3, "own"),
    (256, 256, 1): (128, 96, "fused", 5, 1, "own"),
    (64, 64, 2): (256, 128, "separate", 22, 1, "own"),
    (128, 128, 2): (256, 128, "separate", 8, 1, "own"),
    (192, 192, 2): (256, 64, "fused", 13, 1, "own"),
    (192, 128, 2): (256, 128, "separate", 5, 3, "own"),
    (256, 256, 2): (128, 96, "separate", 5, 2, "own"),
}


def choice(plan: FA4Config, key: str) -> Choice:
    return {row.key: row for row in plan.choices}[key]


def decided(plan: FA4Config) -> tuple[Any, ...]:
    return (
        plan.BM,
        plan.BN,
        plan.kv_ring,
        plan.num_kv_stages,
        plan.num_qk_stages,
        plan.output_staging,
    )


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("shape", SIXTEEN_BITS, ids=str)
def test_tiles_and_stages_of_16_bits(plan_of: PlanOf, shape: Any, dtype: str) -> None:
    depth, value_depth, cta_group = shape
    plan = plan_of(depth=depth, value_depth=value_depth, cta_group=cta_group, dtype=dtype)
    assert decided(plan) == SIXTEEN_BITS[shape]
    assert (plan.mma_k, plan.rescale_threshold, plan.probability_shift) == (16, 8.0, 0)
    assert plan.out_dtype == dtype


@pytest.mark.parametrize("shape", EIGHT_BITS, ids=str)
def test_tiles_and_stages_of_8_bits(plan_of: PlanOf, shape: Any) -> None:
    depth, value_depth, cta_group = shape
    plan = plan_of(depth=depth, value_depth=value_depth, cta_group=cta_group, dtype="fp8_e4m3")
    assert decided(plan) == EIGHT_BITS[shape]
    assert (plan.mma_k, plan.rescale_threshold, plan.probability_shift) == (32, 0.0, 8)
    assert plan.out_dtype == "bf16"


def test_the_published_configuration_comes_of_the_defaults(plan_of: PlanOf) -> None:
    """FA4Config of depth 128: two query tiles, P over S, O behind the scores, parts of a panel."""
    plan = plan_of(kv_ring="separate")
    assert (plan.num_qo, plan.BM, plan.BN, plan.BK0, plan.BK1) == (2, 256, 128, 64, 128)
    assert (plan.num_qk_stages, plan.num_pv_stages, plan.num_kv_stages) == (2, 2, 2)
    assert plan.launch.threads == 512
    columns = {region.name: region.column for region in plan.tensor_memory}
    assert (columns["scores_0"], columns["scores_1"]) == (0, 128)
    assert (columns["probabilities_0"], columns["probabilities_1"]) == (0, 128)
    assert (columns["output_0"], columns["output_1"]) == (256, 384)
    assert plan.tensor_memory_columns == 512
    half = plan_of(depth=64)
    assert half.BK0 == 64
    assert (half.columns("output_0").column, half.columns("output_1").column) == (256, 320)


def test_who_decided_and_why(plan_of: PlanOf) -> None:
    plan = plan_of(depth=256, num_kv_stages=4)
    assert choice(plan, "num_kv_stages") == Choice("num_kv_stages", 4, "config", "")
    assert choice(plan, "BM").reason == (
        "two query tiles with outputs of 256 columns need more than 512 columns of tensor memory"
    )
    assert choice(plan, "kv_ring").reason == "5 slots fit in one ring, 4 in two"
    assert choice(plan_of(), "num_kv_stages").reason == "5 fit the 232448 bytes of shared memory"
    assert choice(plan_of(), "value_depth") == Choice("value_depth", 128, "auto", "as depth")
    assert choice(plan_of(dtype="fp8_e4m3"), "out_dtype").reason == (
        "fp8 inputs have a 16-bit output"
    )


def test_one_query_tile_has_two_buffers_of_scores(plan_of: PlanOf) -> None:
    for depth in (64, 128):
        plan = plan_of(depth=depth, BM=128)
        assert (plan.num_qo, plan.launch.threads, plan.BN) == (1, 384, 128)
        assert plan.columns("scores_1").column == 128
        # Q.K of the next block must not wait for the P.V of this one.
        assert plan.columns("probabilities_0").column >= plan.columns("output_0").end
    wide = plan_of(BM=128, BN=160)
    assert wide.columns("probabilities_1").column == wide.columns("scores_1").column


def test_the_block_is_one_that_leaves_two_stages(plan_of: PlanOf) -> None:
    assert plan_of(depth=192, output_staging="query").BN == 64
    narrow = plan_of(depth=192, output_staging="own")
    assert (narrow.BN, narrow.output_staging) == (32, "own")
    assert plan_of(depth=128, value_depth=192).BN == 32


def test_a_single_stage_has_rings_of_its_own(plan_of: PlanOf) -> None:
    plan = plan_of(num_kv_stages=1)
    assert (plan.kv_ring, plan.num_kv_stages) == ("separate", 1)
    assert choice(plan, "kv_ring").reason == "a ring for both needs two slots"


def test_parts_of_the_depth_want_rings_of_their_own(plan_of: PlanOf) -> None:
    plan = plan_of(num_qk_stages=2)
    assert (plan.kv_ring, plan.num_kv_stages, plan.BK0) == ("separate", 2, 64)
    assert choice(plan, "kv_ring").reason == "parts of K have a ring of their own"
    assert plan_of(num_qk_stages=1).kv_ring == "fused"


@pytest.mark.parametrize(
    ("block", "stages", "parts"),
    [
        (128, "auto", (96, 32)),
        (96, "auto", (64, 32)),
        (64, "auto", (32, 32)),
        (32, "auto", (32,)),
        (128, 1, (128,)),
        (128, 4, (32, 32, 32, 32)),
        (96, 3, (32, 32, 32)),
        (96, 2, (64, 32)),
    ],
)
def test_parts_of_probabilities(plan_of: PlanOf, block: int, stages: Any, parts: Any) -> None:
    plan = plan_of(BN=block, num_pv_stages=stages)
    assert plan.pv_parts == parts
    assert plan.num_pv_stages == len(parts)


def test_barriers_of_many_parts_take_the_room_of_a_slot(plan_of: PlanOf) -> None:
    """Whatever the parts, the stages that were chosen fit, and one more does not."""
    for parts in (1, 2, 4):
        for depth in (64, 96, 128, 256):
            plan = plan_of(dtype="fp8_e4m3", depth=depth, BN=32, num_pv_stages=1, cta_group=2,
                           value_depth=64, num_qk_stages="auto" if parts > 1 else 1)  # fmt: skip
            room = 232448 - plan.launch.dynamic_shared_bytes
            slots = [r for r in plan.shared if r.name in ("kv", "key", "value")]
            stage = sum(r.slot_bytes for r in slots)
            more = 16 * plan.num_qk_stages + 16
            assert plan.num_kv_stages == 32 or room < stage + more


@pytest.mark.parametrize("cta_group", [1, 2])
def test_pairs_take_tiles_in_turn_unless_told_otherwise(plan_of: PlanOf, cta_group: int) -> None:
    assert plan_of(cta_group=cta_group).scheduler == ("dynamic" if cta_group == 1 else "static")
    assert plan_of(cta_group=cta_group, scheduler="dynamic").scheduler == "dynamic"


@pytest.mark.parametrize(("threshold", "shift"), [(0, 8), (0.5, 8), (2, 6), (8, 0), (8.8, 0)])
def test_probabilities_of_fp8_are_shifted_as_far_as_their_maximum_lets_them(
    plan_of: PlanOf, threshold: float, shift: int
) -> None:
    plan = plan_of(dtype="fp8_e4m3", rescale_threshold=float(threshold))
    assert plan.probability_shift == shift


@pytest.mark.parametrize(
    ("keys", "entry"),
    [
        ({}, 128),
        ({"depth": 256}, 168),
        ({"BM": 128}, 168),
        ({"depth": 256, "value_depth": 64}, 128),
    ],
)
def test_all_registers_are_given_out(plan_of: PlanOf, keys: Any, entry: int) -> None:
    plan = plan_of(**keys)
    softmax, correction, other = (
        plan.softmax_registers,
        plan.correction_registers,
        plan.other_registers,
    )
    assert plan.registers_at_entry == entry
    assert plan.num_qo * softmax + correction + other == entry * (plan.num_qo + 2)
    assert other < entry < softmax
    assert softmax - plan.BN >= 48  # beside a row of scores


SETTABLE: dict[str, Any] = {
    "value_depth": 64, "out_dtype": "fp16", "BM": 128, "BN": 64, "num_kv_stages": 2,
    "kv_ring": "separate", "num_qk_stages": 2, "num_pv_stages": 1,
    "output_staging": "query", "scheduler": "static", "rescale_threshold": 3.5,
    "exp2_fma_share": 0.5, "keys": "dense",
}  # fmt: skip


@pytest.mark.parametrize("key", SETTABLE)
def test_every_choice_can_be_made_in_the_config(plan_of: PlanOf, key: str) -> None:
    plan = plan_of(**{key: SETTABLE[key]})
    assert getattr(plan, key) == SETTABLE[key]
    assert choice(plan, key).source == "config"


def test_all_choices_can_be_made_at_once(plan_of: PlanOf) -> None:
    registers = {"softmax": 184, "correction": 168, "other": 88}
    plan = plan_of(**SETTABLE, registers=registers)
    assert {key: getattr(plan, key) for key in SETTABLE} == SETTABLE
    assert {row.source for row in plan.choices} == {"config"}
    assert (plan.softmax_registers, plan.correction_registers, plan.other_registers) == (
        184,
        168,
        88,
    )
    defaults = {row.key for row in plan_of().choices}
    assert defaults == {*SETTABLE, "registers"}


@pytest.mark.parametrize(
    ("keys", "share"),
    [({}, 0.125), ({"dtype": "fp8_e4m3"}, 0.25), ({"arch": "sm_103a", "dtype": "fp8_e4m3"}, 0.0)],
)
def test_the_fma_pipe_computes_what_ex2_has_no_time_for(
    plan_of: PlanOf, keys: dict[str, Any], share: float
) -> None:
    assert plan_of(**keys).exp2_fma_share == share


@pytest.mark.parametrize(
    ("softmax", "block"), [(136, 128), (128, 96), (96, 64), (64, 32), (40, 32)]
)
def test_a_row_of_scores_fits_the_registers_that_are_given(
    plan_of: PlanOf, softmax: int, block: int
) -> None:
    registers = {"softmax": softmax, "correction": 80, "other": 48}
    assert block == plan_of(value_depth=64, registers=registers).BN


@pytest.mark.parametrize(
    ("keys", "block"),
    [
        ({"num_kv_stages": 3, "kv_ring": "separate"}, 96),
        ({"num_kv_stages": 2, "kv_ring": "separate"}, 128),
        ({"num_pv_stages": 3}, 96),
        ({"num_pv_stages": 4}, 128),
        ({"num_pv_stages": 3, "num_kv_stages": 2}, 96),
    ],
)
def test_blocks_have_room_for_the_stages_and_parts_that_are_given(
    plan_of: PlanOf, keys: dict[str, Any], block: int
) -> None:
    assert block == plan_of(**keys).BN


def test_blocks_that_lists_name_are_narrower(plan_of: PlanOf) -> None:
    documents = {"document": {"dtype": "int32", "shape": ["batch", "keys"]}}
    mask = "key <= query and document[batch, query] == document[batch, key]"
    assert plan_of(mask=mask, parameters=documents).BN == 128
    assert plan_of(mask=mask, parameters=documents, blocks="listed").BN == 64
