"""Quantised outputs on Blackwell: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.errors import ConfigError, Problem
from tests.designs.offers import offers


def config_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", **keys}
    return config_from_data(data, "probe")


def problems_of(config: Any) -> tuple[Problem, ...]:
    try:
        build_plan(config)
    except ConfigError as error:
        return error.problems
    return ()


WITHOUT = "output_scales: null."


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"output_scales": "1x128", "BM": 64},
            "BM",
            "with output_scales: 1x128 a thread has a row of its own",
            f"Set BM: 128; or {WITHOUT}",
        ),
        (
            {"output_scales": "mxfp8", "BN": 192},
            "BN",
            "BN: 192 columns, but with output_scales: mxfp8 the epilogue quantises 128 at a time",
            f"Set BN: 256; or {WITHOUT}",
        ),
        (
            {"output_scales": "1x128", "residual": "row", "out_dtype": "fp32"},
            "out_dtype",
            "with output_scales: 1x128 it is the type of C, of 16 bits",
            f"Set out_dtype: auto; or {WITHOUT}",
        ),
        (
            {"output_scales": "1x128", "out_dtype": "fp16"},
            "out_dtype",
            "with output_scales: 1x128 it is the type of C, and residual is none",
            f"Set out_dtype: auto; or {WITHOUT}",
        ),
        (
            {"output_scales": "1x128", "output_scale_order": "arranged"},
            "output_scale_order",
            "output_scale_order: arranged, which is for output_scales: mxfp8 and nvfp4",
            "Set output_scale_order: row_major.",
        ),
        (
            {"output_scales": "amax", "BM": 64},
            "BM",
            "BM: 64, but with output_scales: amax a thread has a row of its own",
            f"Set BM: 128; or {WITHOUT}",
        ),
        (
            {"output_scales": "amax", "activation": "silu(gate) * up"},
            "activation",
            "with output_scales: amax values are those of gate and up apart",
            f"Set activation: null; or {WITHOUT}",
        ),
        (
            {"output_scales": "amax", "out_dtype": "fp32"},
            "out_dtype",
            "out_dtype: fp32, but with output_scales: amax pairs of 16 bits are looked at",
            f"Set out_dtype: auto; or {WITHOUT}",
        ),
        (
            {"output_scales": "nvfp4", "BM": 64, "output_scale_order": "arranged"},
            "BM",
            "with output_scales: nvfp4 a thread has a row of its own",
            "Set BM: 128; or output_scales: null and output_scale_order: row_major.",
        ),
        (
            {"output_scales": "nvfp4", "activation": "silu(gate) * up", "BN": 128},
            "BN",
            "BN: 128 columns of B, 64 of the output, but with output_scales: nvfp4 the epilogue",
            f"Set BN: 256; or {WITHOUT}",
        ),
        (
            {"output_scales": "nvfp4", "output_scale_dtype": "ue8m0"},
            "output_scale_dtype",
            "output_scale_dtype: ue8m0, which is for output_scales: 1x128",
            "Set output_scale_dtype: null; or output_scales: 1x128.",
        ),
        (
            {"output_scales": "mxfp8", "output_scale_dtype": "fp32"},
            "output_scale_dtype",
            "output_scale_dtype: fp32, which is for output_scales: 1x128",
            "Set output_scale_dtype: null; or output_scales: 1x128.",
        ),
    ],
)
def test_a_refusal_says_what_helps(keys: dict[str, Any], key: str, words: str, remedy: str) -> None:
    config = config_of(**keys)
    (problem,) = problems_of(config)
    assert problem.key == key
    assert words in problem.message
    assert problem.remedy == remedy
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


def test_two_elements_of_nvfp4_share_a_byte_and_the_call_has_the_scale_of_the_tensor() -> None:
    plan = build_plan(config_of(output_scales="nvfp4", residual="matrix", BN=256))
    assert (plan.out_dtype, plan.output_scales.columns) == ("fp4_e2m1", 16)
    assert plan.out_panel_columns == 128
    assert plan.tensor_map("out").box == (64, 128, 1)
    assert plan.tensor_map("out").swizzle == 64
    assert plan.out_bytes == 128 * 64
    assert (plan.c_panels, plan.residual_bytes) == (2, 2 * 128 * 128)
    assert plan.column_unit == 2
    names = [row.name for row in plan.parameters]
    assert names.index("out_tensor_scale") == names.index("out_scales_blocks_stride") + 1


@pytest.mark.parametrize(("form", "columns"), [("1x128", 128), ("mxfp8", 32)])
def test_a_panel_of_the_output_has_whole_blocks(form: str, columns: int) -> None:
    plan = build_plan(config_of(output_scales=form, activation="silu(gate) * up"))
    assert plan.output_scales.columns == columns
    assert plan.out_panel_columns == 128
    assert plan.out_dtype == "fp8_e4m3"
    assert plan.loads_in_parts
    types = {row.name: row.c_type for row in plan.parameters}
    assert types["out_scales"] == ("float*" if form == "1x128" else "unsigned char*")
