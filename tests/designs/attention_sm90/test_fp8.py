"""Plans of attention in 8 bits: values are transposed in shared memory, a byte each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.attention_sm90.candidates import candidates
from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.errors import ConfigError

ConfigOf = Callable[..., HopperAttentionConfig]
PlanOf = Callable[..., AttentionPlan]
FP8 = "fp8_e4m3"


def fp8_plan(plan_of: PlanOf, **keys: object) -> HopperAttentionPlan:
    plan = plan_of(dtype=FP8, **keys)
    assert isinstance(plan, HopperAttentionPlan)
    return plan


def test_the_loader_fills_rows_and_three_warps_turn_them_over(plan_of: PlanOf) -> None:
    plan = fp8_plan(plan_of, depth=128)
    names = [region.name for region in plan.shared]
    assert names == ["query", "key", "value_rows", "value", "sums", "barriers", "tile"]
    rows, turned = plan.barrier("value_rows_full"), plan.barrier("value_full")
    assert (rows.arrive_how, rows.transaction_bytes) == ("tma_bytes", 128 * 128)
    assert (turned.arrive_how, turned.arrivals) == ("thread", 3)
    assert plan.barrier("value_empty").waited_by == "every transposing warp"
    assert plan.barrier("tile_empty").arrivals == 12 + 3
    assert "transpose values" in plan.roles[0].work


def test_values_with_contiguous_keys_are_loaded_as_products_read_them(plan_of: PlanOf) -> None:
    plan = fp8_plan(plan_of, depth=128, BN=96, value_major="keys")
    assert [ring.name for ring in plan.rings] == ["key", "value"]
    values, full = plan.tensor_map("value"), plan.barrier("value_full")
    assert (values.dims, values.box) == (("row", "column", "head", "batch"), (32, 128, 1, 1))
    assert (full.arrive_how, full.transaction_bytes) == ("tma_bytes", 96 * 128)
    assert plan.barrier("tile_empty").arrivals == 12
    assert "transpose" not in plan.roles[0].work


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dtype": "bf16"}, "value_major: keys is for dtype: fp8_e4m3; wgmma reads values of bf16"),
        ({"batching": "ragged"}, "value_major: keys is for dense batches without lengths"),
        ({"key_lengths": True}, "value_major: keys is for dense batches without lengths"),
        ({"keys": "paged", "page_size": 64}, "value_major: keys is for dense batches"),
    ],
)
def test_contiguous_keys_are_for_dense_bytes(
    config_of: ConfigOf, keys: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of(**{"dtype": FP8, "value_major": "keys", **keys})


def test_blocks_and_probabilities_are_those_of_bytes(plan_of: PlanOf) -> None:
    plan = fp8_plan(plan_of, depth=128)
    assert (plan.BN, plan.chunk_keys, plan.num_pv_chunks_in_flight) == (128, 32, 1)
    assert (plan.rescale_threshold, plan.probability_shift) == (2.7, 6)
    assert 2.0 ** (plan.rescale_threshold + plan.probability_shift) < 448
    assert fp8_plan(plan_of, rescale_threshold=0).probability_shift == 8
    assert plan_of(dtype="fp16").probability_shift == 0
    assert plan.descaled == ("query", "key", "value")
    assert not plan_of(dtype="fp16").has_descales


@pytest.mark.parametrize(
    ("depth", "columns"), [(64, 64), (96, 32), (128, 128), (192, 64), (256, 128)]
)
def test_panels_are_as_wide_as_tile_the_depth(plan_of: PlanOf, depth: int, columns: int) -> None:
    assert fp8_plan(plan_of, depth=depth).panel_columns == columns


@pytest.mark.parametrize(("block", "keys"), [(128, 128), (96, 32), (64, 64), (192, 64), (32, 32)])
def test_panels_of_transposed_values(plan_of: PlanOf, block: int, keys: int) -> None:
    assert fp8_plan(plan_of, depth=64, BN=block).value_panel_keys == keys


def test_the_output_has_16_bits(config_of: ConfigOf, plan_of: PlanOf) -> None:
    assert fp8_plan(plan_of).out_dtype == "bf16"
    assert fp8_plan(plan_of, out_dtype="fp16").out_dtype == "fp16"
    with pytest.raises(ConfigError, match="out_dtype: fp16 is for dtype: fp8_e4m3"):
        config_of(dtype="bf16", out_dtype="fp16")


def test_promoted_sums_have_a_slot_a_warpgroup(config_of: ConfigOf, plan_of: PlanOf) -> None:
    assert fp8_plan(plan_of, promote_every="never").promote_every is None
    assert fp8_plan(plan_of, depth=256).promote_every is None
    assert plan_of(dtype="fp16").promoted_keys is None
    plan = fp8_plan(plan_of)
    assert (plan.promote_every, plan.promoted_keys) == (16, 2048)
    sums = plan.region("sums")
    assert (sums.slots, sums.slot_bytes) == (3, 64 * 128 * 4)
    assert fp8_plan(plan_of, promote_every=3).promoted_keys == 3 * 128
    with pytest.raises(ConfigError, match="promote_every: 4 is for dtype: fp8_e4m3"):
        config_of(dtype="bf16", promote_every=4)


@pytest.mark.parametrize("depth", [64, 96, 128, 192, 256])
def test_two_stages_fit_beside_promoted_sums(plan_of: PlanOf, depth: int) -> None:
    plan = fp8_plan(plan_of, depth=depth, promote_every=4)
    assert plan.num_kv_stages == 2
    assert plan.promoted_keys == 4 * plan.BN


def test_two_stages_fit_where_values_are_narrower_than_keys(plan_of: PlanOf) -> None:
    keys: dict[str, Any] = {"depth": 192, "value_depth": 128}
    plan = fp8_plan(plan_of, **keys)
    assert (plan.BN, plan.num_kv_stages, plan.promote_every) == (96, 2, 21)
    for others in ({"promote_every": "never"}, {"value_major": "keys"}):
        plan = fp8_plan(plan_of, **keys, **others)
        assert (plan.BN, plan.num_kv_stages) == (128, 2)


def test_values_with_contiguous_keys_leave_room_for_promoted_sums(plan_of: PlanOf) -> None:
    keys = {"value_major": "keys"}
    plan = fp8_plan(plan_of, depth=192, **keys)
    assert (plan.BN, plan.num_kv_stages, plan.promoted_keys) == (128, 2, 2048)
    assert fp8_plan(plan_of, depth=256, **keys).promoted_keys is None
    plan = fp8_plan(plan_of, depth=256, promote_every=4, **keys)
    assert (plan.BN, plan.num_kv_stages, plan.promoted_keys) == (64, 2, 4 * 64)


PAGED = {"keys": "paged", "page_size": 64, "kv_scale": "page"}


@pytest.mark.parametrize(
    ("page_size", "block", "pages"), [(16, 128, 8), (64, 128, 2), (64, 96, 3), (256, 128, 1)]
)
def test_scales_of_pages_come_with_the_keys_of_a_block(
    plan_of: PlanOf, page_size: int, block: int, pages: int
) -> None:
    plan = fp8_plan(plan_of, **{**PAGED, "page_size": page_size}, BN=block)
    assert plan.has_page_scales
    scales = plan.region("page_scales")
    assert (scales.slots, scales.slot_bytes) == (2 * plan.num_kv_stages, 16 * pages)
    meanings = {row.name: row.meaning for row in plan.parameters if row.name.endswith("_descale")}
    assert "(pages, key heads)" in meanings["key_descale"]
    assert "(pages, key heads)" in meanings["value_descale"]
    assert "(batch, key heads)" in meanings["query_descale"]
    assert "with a scale for each page and key head" in plan.summary[0]


def test_scales_of_pages_leave_registers_to_two_warpgroups(plan_of: PlanOf) -> None:
    plan = fp8_plan(plan_of, depth=128, **PAGED)
    assert (plan.BM, plan.BN, plan.num_kv_stages, plan.promoted_keys) == (128, 128, 2, 2048)
    assert (plan.registers.producer, plan.registers.consumer) == (56, 224)
    assert not plan.compares_own_maxima
    assert plan.probability_shift == 6
    assert fp8_plan(plan_of, depth=128, **{**PAGED, "kv_scale": "head"}).BM == 192


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        (
            {"dtype": "bf16"},
            "kv_scale: page is for dtype: fp8_e4m3, but keys and values are bf16, without scales",
            "Set kv_scale: auto; or dtype: fp8_e4m3.",
        ),
        (
            {"keys": "auto", "page_size": None},
            "kv_scale: page is for keys: paged, but keys are dense, in no pages",
            "Set keys: paged and page_size: 64; or kv_scale: head.",
        ),
        (
            {"max_logits": True},
            "max_logits: true with kv_scale: page is not possible: the maxima that a kernel keeps "
            "are of logits to which the logarithms of values' scales are added",
            "Set max_logits: false; or kv_scale: head.",
        ),
        (
            {"score": "score * 2"},
            "score with kv_scale: page is not supported yet: an expression is of logits, and "
            "scores have the scales of their pages first",
            "Set score: null; or kv_scale: head.",
        ),
    ],
)
def test_what_scales_of_pages_do_not_have(
    config_of: ConfigOf, keys: dict[str, object], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        build_plan(config_of(**{"dtype": FP8, **PAGED, **keys}))
    [problem] = refused.value.problems
    assert (problem.message, problem.remedy) == (message, remedy)


def test_no_candidate_has_half_of_a_product(config_of: ConfigOf) -> None:
    blocks = [int(str(row["BN"])) for row in candidates(config_of(dtype=FP8, depth=128))]
    assert blocks[0] == 128
    assert min(blocks) == 32
    assert all(block % 32 == 0 for block in blocks)


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        (
            {"BN": 80},
            "BN: 80 keys of a block, but a wgmma of P.V in fp8_e4m3 takes 32 at a time",
            "Set BN: 64; or BN: auto.",
        ),
        (
            {"cta_group": 2},
            "cta_group: 2 shares blocks of values with contiguous columns, and those of "
            "fp8_e4m3 have contiguous keys in the shared memory of a CTA",
            "Set cta_group: 1.",
        ),
        (
            {"epilogue": "tma_store"},
            "epilogue: tma_store stages the output in the query slot, whose elements of fp8_e4m3 "
            "are half as wide as those of bf16",
            "Set epilogue: direct.",
        ),
        (
            {"rescale_threshold": 8.9},
            "rescale_threshold: probabilities up to 2^8.9 do not fit fp8_e4m3, whose largest "
            "number is 448",
            "Set rescale_threshold: 8.0; or rescale_threshold: auto.",
        ),
    ],
)
def test_what_bytes_do_not_have(
    config_of: ConfigOf, keys: dict[str, object], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        build_plan(config_of(dtype=FP8, **keys))
    [problem] = refused.value.problems
    assert (problem.message, problem.remedy) == (message, remedy)
