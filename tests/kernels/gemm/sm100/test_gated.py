"""Gated matrix products for Blackwell: variants are clean in verify's cases, mutants reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fa4gen.verify.family import family_of
from tests.kernels.gemm.sm90.gated_mutants import CLAMPED, SWIGLU
from tests.kernels.gemm.sm90.test_scaled import check_clean, messages
from tests.kernels.gemm.sm100.gated_mutants import CONFIGS, MUTANTS
from tests.kernels.source_mutation import kernel_in, mutated, verify

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


def variant(keys: Keys) -> Any:
    common = {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", "activation": SWIGLU,
              "num_stages": 2}  # fmt: skip
    return kernel_in(json.dumps({**common, **keys}))


@pytest.mark.compile
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean(name: str) -> None:
    check_clean(variant(VARIANTS[name]), "size/*", "depth/0", "batch/shared")


@pytest.mark.seeds
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean_in_more_cases(name: str) -> None:
    kernel = variant(VARIANTS[name])
    there = [case.name for case in family_of(kernel.plan).emulated_cases()]
    check_clean(kernel, *there)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_can_still_be_made(name: str) -> None:
    kernel = kernel_in(json.dumps(CONFIGS[MUTANTS[name].config]))
    assert mutated(kernel, MUTANTS[name]) != kernel


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_what_is_not_mutated_is_clean(config: str) -> None:
    cases = {mutant.case for mutant in MUTANTS.values() if mutant.config == config}
    check_clean(kernel_in(json.dumps(CONFIGS[config])), *sorted(cases))


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.seeds]) for name in MUTANTS],
)
def test_a_mutant_is_reported_by_verify(name: str) -> None:
    mutant = MUTANTS[name]
    kernel = mutated(kernel_in(json.dumps(CONFIGS[mutant.config])), mutant)
    verdict, _ = verify(kernel, mutant.case, 0)
    assert verdict.num_cases == 1
    assert not verdict.passed, f"{name} passes"
    assert mutant.says in messages(verdict)
