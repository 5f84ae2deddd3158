"""Gated matrix products for Blackwell: variants are clean in verify's cases, mutants reported."""

from __future__ import annotations

from typing import Any

from tests.kernels.gemm.reported import MutantTests, VariantTests
from tests.kernels.gemm.sm90.gated_mutants import CLAMPED, SWIGLU
from tests.kernels.gemm.sm100.gated_mutants import CONFIGS, MUTANTS

Keys = dict[str, Any]
TURNS = {"gate_layout": "interleaved"}
FP8 = {"dtype": "fp8_e4m3"}
FP4 = {"dtype": "fp4_e2m1"}
VARIANTS: dict[str, Keys] = {
    "pair in turn": {**TURNS, "BN": 64},
    "64 rows, floats, bias": {"cta_group": 1, "BM": 64, "BN": 128, "out_dtype": "fp32",
                              "residual": "row"},
    "pair, bias": {"BN": 128, "residual": "row"},
    "pair in turn, clamped, floats, bias": {**TURNS, "activation": CLAMPED, "residual": "row",
                                            "BN": 64, "out_dtype": "fp32"},
    "matrix": {"BN": 64, "residual": "matrix"},
    "column, floats": {"BN": 64, "residual": "column", "out_dtype": "fp32"},
    "both transposed": {"a_major": "m", "b_major": "n", "BN": 128},
    "192 columns, dynamic": {"BN": 192, "scheduler": "dynamic"},
    "fp8, bias": {**FP8, "BN": 64, "residual": "row"},
    "nvfp4": {**FP4, "scales": "nvfp4", "cta_group": 1},
    "mxfp4 pair, bias": {**FP4, "scales": "mxfp4", "residual": "row"},
    "nvfp4 pair, row-major scales": {**FP4, "scales": "nvfp4", "scale_order": "row_major"},
    "exact": {"dtype": "fp16", "activation": "max(gate, 0) * up", "out_dtype": "fp32", "BN": 64},
}  # fmt: skip
ALWAYS = (
    "gate_and_up_are_exchanged",
    "up_is_a_column_off",
    "both_ctas_of_a_pair_bring_gate",
    "up_has_the_bias_of_gate",
    "up_has_the_scales_of_gate",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_100a", "dtype": "bf16", "activation": SWIGLU, "num_stages": 2}


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("size/*", "depth/0", "batch/shared")


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS
