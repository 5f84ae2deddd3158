"""Refusals, their words, and that every suggested fix is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
from tests.designs.offers import check_offers, problems_of

Strategy = st.SearchStrategy[BlackwellGemmConfig]
ConfigOf = Callable[..., BlackwellGemmConfig]


@settings(max_examples=150, deadline=None)  # a third of them cannot work
@given(st.data())
def test_every_offer_removes_its_problem_and_brings_no_other(
    any_config: Strategy, data: st.DataObject
) -> None:
    check_offers(data.draw(any_config))


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"cta_group": 1, "num_stages": 5, "BN": 256},
            "num_stages",
            "shared memory: 5 * 16384 (a) + 5 * 32768 (b) + 2 * 16384 (output) + 1152 (barriers, "
            "tensor_memory, alignment) = 279680 bytes, 232448 available",
            "Set num_stages: 4; or BN: 128.",
        ),
        (
            {"num_stages": 6, "BN": 256, "residual": "matrix"},
            "num_stages",
            "shared memory: 6 * 16384 (a) + 6 * 16384 (b) + 2 * 16384 (output) + 2 * 16384 "
            "(residual) + 1232 (barriers, tensor_memory, alignment) = 263376 bytes, "
            "232448 available",
            "Set num_stages: 5; or BN: 128.",
        ),
        (
            {"num_stages": 2, "BK": 256, "BN": 256},
            "num_stages",
            "shared memory: 2 * 65536 (a) + 2 * 65536 (b) + 2 * 16384 (output) + 1104 (barriers, "
            "tensor_memory, alignment) = 296016 bytes, 232448 available",
            "Set num_stages: 1; or BK: 128; or BN: 128.",
        ),
        (
            {"num_accum_stages": 3, "BN": 192},
            "num_accum_stages",
            "tensor memory: 3 accumulators, 192 columns apart, take 576 columns, 512 available",
            "Set num_accum_stages: 2; or BN: 128.",
        ),
        (
            {"num_accum_stages": 2, "stage_stride_cols": 288, "BN": 256},
            "num_accum_stages",
            "tensor memory: 2 accumulators, 288 columns apart, take 576 columns, 512 available",
            "Set num_accum_stages: 1; or stage_stride_cols: auto.",
        ),
        (
            {"stage_stride_cols": 96, "BN": 128},
            "stage_stride_cols",
            "stage_stride_cols: an accumulator of BN = 128 takes 128 columns of tensor memory, the "
            "next one would begin after 96",
            "Set stage_stride_cols: 128; or BN: 64.",
        ),
        (
            {"stage_stride_cols": 32, "BM": 64, "BN": 128},
            "stage_stride_cols",
            "stage_stride_cols: an accumulator of BN = 128 takes 64 columns of tensor memory (in a "
            "pair, 64 rows take half of the columns), the next one would begin after 32",
            "Set stage_stride_cols: 64; or BN: 64.",
        ),
        (
            {"scales": "nvfp4"},
            "scales",
            "scales: nvfp4 are for elements of fp4_e2m1, and dtype is bf16",
            "Set dtype: fp4_e2m1; or scales: null.",
        ),
        (
            {"scale_order": "row_major"},
            "scale_order",
            "scale_order: row_major is for products with block scales, and the config has none",
            "Set scale_order: arranged.",
        ),
        (
            {"dtype": "fp8_e5m2"},
            "dtype",
            "dtype: fp8_e5m2 is for products with block scales, and the config has none",
            "Set scales: mxfp8; or dtype: fp8_e4m3.",
        ),
        (
            {"dtype": "fp8_e4m3", "scales": "mxfp8", "BK": 64},
            "BK",
            "BK: mxfp8 has 32 elements a scale, 128 in four scales, which are read together; a "
            "stage has 64",
            "Set BK: 128; or BK: auto.",
        ),
        (
            {"dtype": "fp8_e4m3", "scales": "mxfp8", "BM": 64},
            "BM",
            "BM: scales are for 128 rows at a time, and a tile has 64",
            "Set BM: 128.",
        ),
        (
            {"dtype": "fp4_e2m1", "scales": "mxfp4", "b_major": "n"},
            "b_major",
            "b_major: elements of fp4_e2m1 share bytes along k, which has to be contiguous; "
            "b_major is n",
            "Set b_major: k.",
        ),
        (
            {
                "dtype": "fp4_e2m1",
                "scales": "nvfp4",
                "BN": 256,
                "num_accum_stages": 2,
                "stage_stride_cols": 256,
            },
            "num_accum_stages",
            "tensor memory: 2 accumulators, 256 columns apart and 1 * 48 columns of scales, take "
            "560 columns, 512 available",
            "Set num_accum_stages: 1; or stage_stride_cols: auto.",
        ),
    ],
)
def test_messages(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    [problem] = problems_of(config_of(**keys))
    assert (problem.key, problem.message, problem.remedy) == (key, message, remedy)


@pytest.mark.parametrize(
    "keys",
    [
        {"num_accum_stages": 4, "BN": 128},  # all columns
        {"num_accum_stages": 4, "BN": 256, "BM": 64},  # of twice as many lanes
        {"num_accum_stages": 1, "stage_stride_cols": 512},
        {"dtype": "bf16", "BK": 256, "num_stages": 1},  # four panels along k
        {"dtype": "fp8_e4m3", "BK": 64, "a_major": "m", "b_major": "n"},
        {"dtype": "fp8_e5m2", "scales": "mxfp8", "a_major": "m", "b_major": "n"},
        {"dtype": "fp4_e2m1", "scales": "nvfp4", "BK": 128, "num_accum_stages": 4, "BN": 64},
        {"dtype": "fp8_e4m3", "scales": "mxfp8", "scale_order": "row_major", "BN": 64},
        {"residual": "none", "num_epi_stages": 4},  # a sweep may vary both
    ],
    ids=str,
)
def test_what_works_is_not_refused(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert problems_of(config_of(**keys)) == ()
