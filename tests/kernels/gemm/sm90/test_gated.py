"""Gated matrix products for Hopper: variants are clean in verify's cases, mutants are reported."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from fa4gen.errors import ConfigError
from fa4gen.verify.family import family_of
from tests.kernels.gemm.emulation import noting
from tests.kernels.gemm.sm90.gated_mutants import CLAMPED, CONFIGS, FINE, MUTANTS, SWIGLU, WIDE
from tests.kernels.gemm.sm90.test_scaled import MOST_WORK, any_keys, check_clean, messages
from tests.kernels.source_mutation import kernel_in, mutated, verify

Keys = dict[str, Any]
TURNS = {"gate_layout": "interleaved"}
FP8 = {"dtype": "fp8_e4m3"}
FEW = {"swap_operands": True, "BM": 16}
VARIANTS: dict[str, Keys] = {
    "in turn, clamped, bias": {**TURNS, "activation": CLAMPED, "residual": "row", "BN": 160},
    "gelu, narrow panel, matrix": {"activation": "gelu(gate) * up", "BN": 96, "residual": "matrix"},
    "both transposed, bias": {"a_major": "m", "b_major": "n", "BN": 128, "residual": "row"},
    "pair": {"cta_group": 2, "BN": 96, **TURNS},
    "four": {"cta_group": 4, "share": "both"},
    "eight": {"cta_group": 8, **FP8},
    "across, bias": {"cta_group": 2, "share": "a", "residual": "row"},
    "split, bias": {"split_k": 2, "residual": "row"},
    "ping_pong, floats, matrix": {"ping_pong": True, "out_dtype": "fp32", "residual": "matrix"},
    "192 rows, floats, bias": {"BM": 192, "out_dtype": "fp32", "residual": "row", **TURNS},
    "the output in the ring": {"output_in_ring": True, "short_ends": True},
    "few rows, column, split": {**FEW, "BN": 128, "residual": "column", "split_k": 2},
    "few rows, bias": {**FEW, "BM": 24, "BN": 256, "residual": "row"},
    "few rows, pair, matrix": {**FEW, "BM": 48, "BN": 128, "residual": "matrix", "cta_group": 2},
    "blocks, pair, bias": {**FP8, "scales": WIDE, "BN": 128, "residual": "row", "cta_group": 2},
    "blocks in turn": {**FP8, **TURNS, "scales": WIDE},
    "lines in turn": {**FP8, **TURNS, "scales": FINE, "BN": 128},
    "few rows, blocks": {**FP8, **FEW, "scales": WIDE, "BN": 256},
    "few rows, lines in turn": {**FP8, **FEW, **TURNS, "scales": FINE, "BN": 128},
    "exact": {"dtype": "fp16", "activation": "max(gate, 0) * up", "out_dtype": "fp32"},
    "groups": {"groups": "offsets", "residual": "matrix"},
}
ALWAYS = (
    "gate_and_up_are_exchanged",
    "up_is_that_of_another_column",
    "a_matrix_is_added_to_gate",
    "half_of_the_last_columns_are_dropped",
    "the_second_half_is_loaded_from_the_next_column",
    "panels_of_up_go_on_behind_those_of_gate",
    "the_second_warpgroup_multiplies_gate_by_the_first",
    "up_has_the_bias_of_gate",
    "the_second_bias_in_turn_is_the_first",
    "up_has_the_scale_of_gate",
    "scales_in_turn_are_taken_as_halves",
)
"""Made in every run; all of them with --many-seeds."""


def variant(keys: Keys) -> Any:
    common = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "activation": SWIGLU, "BM": 64,
              "BN": 64, "num_stages": 2}  # fmt: skip
    return kernel_in(json.dumps({**common, **keys}))


@pytest.mark.compile
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean(name: str) -> None:
    check_clean(variant(VARIANTS[name]), "size/*", "batch/shared", "depth/0", "factor/*")


@pytest.mark.seeds
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean_in_more_cases(name: str) -> None:
    kernel = variant(VARIANTS[name])
    there = [case.name for case in family_of(kernel.plan).emulated_cases()]
    for seed in range(2):
        check_clean(kernel, *there, seed=seed)


def check_any(seed: int) -> bool:
    """Check a kernel drawn by ``seed`` on three cases; False where there is none."""
    random = Random(seed)
    keys = any_keys(random)
    keys |= {"activation": random.choice((SWIGLU, SWIGLU, CLAMPED, "gelu(gate) * up")),
             "gate_layout": random.choice(("halves", "interleaved")),
             "b_major": random.choice(("k", "k", "n"))}  # fmt: skip
    if random.random() < 0.5:
        del keys["scales"]
        keys["dtype"] = random.choice(("bf16", "fp16"))
    else:
        keys["dtype"] = "fp8_e4m3"
    try:
        kernel = variant(keys)
    except ConfigError:
        return False
    family = family_of(kernel.plan)
    cases = [case for case in family.emulated_cases() if family.cost(case) < MOST_WORK]
    with noting(f"drawn by check_any({seed}): {keys}"):
        check_clean(kernel, *random.sample([case.name for case in cases], 3), seed=seed)
    return True


@pytest.mark.compile
def test_whatever_is_planned_is_clean(first_seed: int) -> None:
    assert any(check_any(first_seed + attempt) for attempt in range(1000))


@pytest.mark.seeds
@pytest.mark.parametrize("seed", range(100))
def test_whatever_is_planned_is_clean_under_many_seeds(seed: int) -> None:
    check_any(seed)


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
