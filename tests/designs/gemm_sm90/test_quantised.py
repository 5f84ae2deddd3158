"""Quantised outputs on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.offers import offers, problems_of

ConfigOf = Callable[..., HopperGemmConfig]
QUANTISED = {"output_scales": "1x128"}
SCALED = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"output_scales": "mxfp8"},
            "output_scales",
            "output_scales: mxfp8, which is for Blackwell; Hopper's products take 1x128",
            "Set output_scales: 1x128; or output_scales: null.",
        ),
        (
            {**QUANTISED, "swap_operands": True},
            "swap_operands",
            "the 128 columns of a scale would be rows of wgmma",
            "Set swap_operands: false; or output_scales: null.",
        ),
        (
            {**QUANTISED, "BN": 192},
            "BN",
            "BN: 192 columns, but with output_scales: 1x128 a tile has whole blocks of 128",
            "Set BN: 128; or output_scales: null.",
        ),
        (
            {**QUANTISED, "out_dtype": "bf16"},
            "out_dtype",
            "out_dtype: bf16, but with output_scales: 1x128 it is the type of C, and residual is",
            "Set out_dtype: auto; or output_scales: null.",
        ),
        (
            {**QUANTISED, "out_dtype": "fp32", "residual": "matrix", "num_epi_stages": 2},
            "out_dtype",
            "it is the type of C, of 16 bits",
            "Set out_dtype: auto; or output_scales: null.",
        ),
        (
            {"output_scale_dtype": "ue8m0"},
            "output_scale_dtype",
            "output_scale_dtype: ue8m0, which is for output_scales: 1x128",
            "Set output_scale_dtype: null; or output_scales: 1x128.",
        ),
    ],
)
def test_a_refusal_says_what_helps(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    config = hopper_gemm(**keys)
    (problem,) = problems_of(config)
    assert problem.key == key
    assert words in problem.message
    assert problem.remedy == remedy
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


@pytest.mark.parametrize("keys", [{}, SCALED, {"num_consumer_warpgroups": 3}, {"BM": 256}], ids=str)
def test_tiles_have_whole_blocks_of_columns(hopper_gemm: ConfigOf, keys: dict[str, Any]) -> None:
    plan = build_plan(hopper_gemm(**QUANTISED, **keys))
    assert plan.BN % 128 == 0
    assert plan.out_panel_columns == 128
    assert (plan.out_dtype, plan.c_dtype) == ("fp8_e4m3", "bf16")


GATED = {**SCALED, **QUANTISED, "activation": "silu(gate) * up"}


@pytest.mark.parametrize(
    ("keys", "halves", "products"),
    [
        ({}, True, 64),
        ({"BM": 64}, True, 64),
        ({"cta_group": 2}, True, 64),
        ({"output_scales": None}, False, 128),
        ({"output_scales": None, "BN": 256}, True, 64),
        ({"activation": "silu(x)"}, False, 128),
    ],
    ids=str,
)
def test_products_of_gate_and_up_take_turns_in_the_registers(
    hopper_gemm: ConfigOf, keys: dict[str, Any], halves: bool, products: int
) -> None:
    """Whether ``BN: 256`` has room for the products of a half."""
    plan = build_plan(hopper_gemm(**{**GATED, **keys}))
    assert (plan.multiplies_halves, plan.products) == (halves, products)
    assert plan.wgmma_columns == (128,)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"BN": 128}, "BN: 128 columns of B, 64 of the output, but with output_scales: 1x128"),
        ({"gate_layout": "interleaved"}, "a scale of B is for 128: gate is to have one, and up"),
        ({"multiply_ahead": True}, "gate's and up's products are in the same registers"),
    ],
)
def test_what_gated_products_cannot_be_is_refused(
    hopper_gemm: ConfigOf, keys: dict[str, Any], words: str
) -> None:
    problems = problems_of(hopper_gemm(**{**GATED, **keys}))
    assert any(words in problem.message for problem in problems)


@pytest.mark.parametrize(("dtype", "type_"), [("fp32", "float*"), ("ue8m0", "unsigned char*")])
def test_scales_are_a_pointer_with_a_stride_for_each_axis(
    hopper_gemm: ConfigOf, dtype: str, type_: str
) -> None:
    plan = build_plan(hopper_gemm(**QUANTISED, output_scale_dtype=dtype))
    types = {row.name: row.c_type for row in plan.parameters}
    assert types["out_scales"] == type_
    strides = ["out_scales_batch_stride", "out_scales_m_stride", "out_scales_blocks_stride"]
    assert [types[name] for name in strides] == ["int64"] * 3


def test_a_plan_without_output_scales_has_no_trace_of_them(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(residual="matrix"))
    assert plan.output_scales is None
    assert plan.c_panels == 1
    assert not [row for row in plan.parameters if "scales" in row.name]


def test_a_matrix_c_has_two_panels_for_one_of_the_output(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**QUANTISED, residual="matrix"))
    maps = {row.name: row for row in plan.tensor_maps}
    assert maps["c"].box == (64, 64, 1)
    assert maps["out"].box == (128, 64, 1)
    assert plan.residual_bytes == plan.epi_bytes == 2 * 64 * 128


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ({}, False),
        ({"residual": "row"}, False),
        ({"residual": "matrix"}, False),
        ({"residual": "column"}, True),
        ({"activation": "exp(x)"}, True),
        ({**SCALED, "activation": "silu(gate) * up"}, False),
    ],
)
def test_columns_past_the_end_that_are_no_zeros_are_left_out(
    hopper_gemm: ConfigOf, keys: dict[str, Any], counts: bool
) -> None:
    assert build_plan(hopper_gemm(**QUANTISED, **keys)).counts_columns == counts
