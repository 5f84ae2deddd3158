"""Mutants of rings, panels, tiles and sums of a matrix product are refused; correct sums pass."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.verify.run import VerifyOptions, verify_kernel
from tests.verify.gemm.tiled_gemm import TiledBackend

pytestmark = pytest.mark.numbers

FLOAT32 = {"out_dtype": "fp32"}
MATRIX = {"residual": "matrix"}
ROW = {"residual": "row"}
FP8 = {"dtype": "fp8_e4m3"}
BLACKWELL = {"arch": "sm_100a"}
RELU = {"residual": "matrix", "activation": "max(x, 0)"}


def plan_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "BM": 128, "BN": 64}
    return build_plan(config_from_data({**data, "cta_group": 1, **keys}, "probe"))


def failing(keys: dict[str, Any], kernel: str, cases: str, compiled: Any) -> dict[str, set[str]]:
    """Return what failed in each of the cases, and that there were some."""
    verdict = verify_kernel(
        plan_of(**keys), compiled, TiledBackend(kernel), VerifyOptions(4, (cases,))
    )
    assert verdict.cases
    return {case.case.name: {failure.check for failure in case.failures} for case in verdict.cases}


# How tensor cores add, as far as it was measured, on data that strains it.
SUMS = [
    ({**FLOAT32, "dtype": "fp16"}, "fine_sum", "data/positive_odd"),
    ({**FLOAT32, **BLACKWELL}, "fine_sum", "data/cancelling_odd"),
    ({**FLOAT32, **FP8}, "coarse_sum", "data/cancelling_odd"),
    ({**MATRIX, **FP8}, "coarse_sum", "data/tiny_odd"),
]


@pytest.mark.parametrize(("keys", "sums", "cases"), SUMS)
def test_the_sums_of_tensor_cores_pass(compiled, keys, sums, cases) -> None:
    assert not any(failing(keys, sums, cases, compiled).values())


# mutant, config, a case that must fail by itself, the expected failure
MUTANTS = [
    ("coarse_sum", FLOAT32, "size/64", "numbers"),
    ("coarse_sum", {**FLOAT32, "dtype": "fp16", "cta_group": 2}, "size/128", "numbers"),
    ("coarse_sum", {**FLOAT32, **FP8, **BLACKWELL}, "size/64", "numbers"),
    ("stale_block", MATRIX, "odd/129x257x65", "numbers"),
    ("stale_block", {**FP8, "cta_group": 2}, "size/256", "numbers"),
    ("last_tile", {}, "odd/129x257x65", "unwritten"),
    ("last_tile", {**BLACKWELL, "cta_group": 2}, "batch/5", "unwritten"),
    ("last_column", {}, "size/64", "unwritten"),
    ("last_column", MATRIX, "residual/positions_77x1000", "unwritten"),
    ("c_of_the_tile_before", MATRIX, "residual/positions_77x1000", "numbers"),
    ("c_of_the_tile_before", {**MATRIX, **FLOAT32}, "residual/positions_batch", "numbers"),
    ("c_of_the_tile_before", ROW, "residual/positions_77x1000", "numbers"),
    ("panels_swapped", {**MATRIX, "BN": 128}, "residual/positions_*x128", "numbers"),
    ("panels_swapped", {**ROW, **FLOAT32}, "residual/positions_*x64", "numbers"),
    ("alpha_for_beta", MATRIX, "factor/negative", "numbers"),
    ("alpha_for_beta", ROW, "factor/alpha_0", "numbers"),
    ("activation_before_c", RELU, "size/64", "numbers"),
    ("cut_off", {}, "size/64", "numbers"),
    ("cut_off", MATRIX, "factor/negative", "numbers"),
    ("rounded_twice", FLOAT32, "size/64", "numbers"),
]


@pytest.mark.parametrize(("mutant", "keys", "cases", "check"), MUTANTS)
def test_a_mutant_is_reported(compiled, mutant, keys, cases, check) -> None:
    assert not any(failing(keys, "", cases, compiled).values())
    assert all(check in checks for checks in failing(keys, mutant, cases, compiled).values())
