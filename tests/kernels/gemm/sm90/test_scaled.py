"""Scaled matrix products for Hopper: variants are clean in verify's cases, mutants are reported."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.errors import ConfigError
from fa4gen.verify.family import family_of
from tests.kernels.gemm.emulation import noting
from tests.kernels.gemm.sm90.scaled_mutants import CONFIGS, FINE, MUTANTS, WIDE
from tests.kernels.source_mutation import kernel_in, mutated, verify

if TYPE_CHECKING:
    from fa4gen.verify.verdict import Verdict
    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
MOST_WORK = 60
"""The largest cost of a case of a random kernel, in blocks of k or so."""
BYTES = {**WIDE, "dtype": "ue8m0"}
VARIANTS: dict[str, Keys] = {
    "BN 112, bytes, activation": {"scales": BYTES, "BN": 112, "activation": "silu(x)"},
    "BN 160, in turn": {"scales": WIDE, "BN": 160, "ping_pong": True},
    "ping_pong": {"scales": FINE, "BN": 64, "ping_pong": True, "out_dtype": "fp32"},
    "swapped, 16 rows": {"scales": WIDE, "BM": 16, "swap_operands": True, "residual": "matrix"},
    "swapped, 256 of k, split": {"scales": FINE, "swap_operands": True, "BK": 256, "split_k": 2},
    "swapped, a pair": {"scales": BYTES, "BM": 48, "swap_operands": True, "cta_group": 2},
    "split, 256 of k": {"scales": BYTES, "BN": 96, "BK": 256, "split_k": 2},
    "a grid of blocks": {"scales": WIDE, "BN": 96, "cta_group": 8, "residual": "row"},
    "192 rows": {"scales": FINE, "BM": 192, "BN": 48, "residual": "column"},
    "one slot": {"scales": FINE, "num_stages": 1, "cta_group": 2, "BN": 64},
    "fp16": {"scales": WIDE, "out_dtype": "fp16", "residual": "matrix", "cta_group": 2},
    "256 rows": {"scales": WIDE, "BM": 256, "cta_group": 2, "residual": "matrix"},
    "256 rows, lines": {"scales": FINE, "BM": 256, "BN": 64, "output_in_ring": True},
    "swapped, 256 columns": {"scales": BYTES, "BN": 256, "BK": 128, "swap_operands": True},
    "weights that stream": {"scales": BYTES, "evict_first": "b", "BN": 32, "cta_group": 2},
    "weights that stream, lines": {"scales": FINE, "evict_first": "both", "split_k": 2},
    "the output in the ring": {"scales": FINE, "output_in_ring": True, "short_ends": True},
}
ALWAYS = (
    "a_scale_of_a_is_not_advanced",
    "products_get_the_scales_of_the_next_block",
    "the_second_half_of_a_split_begins_with_the_first_scales",
    "a_stage_of_256_has_one_scale",
    "scales_past_the_last_block_are_loaded",
    "a_scale_is_that_of_the_next_row",
    "the_lower_rows_of_a_product_have_the_scales_of_the_upper",
    "a_and_b_are_exchanged",
    "the_shuffle_is_a_lane_off",
    "rows_past_the_end_are_looked_up",
    "the_first_cta_of_a_pair_gives_its_rows_to_both",
    "a_block_of_columns_is_rounded",
    "the_second_block_of_columns_begins_late",
    "the_last_of_an_even_number_of_blocks_is_left_out",
    "the_lower_rows_of_a_warpgroup_have_the_scales_of_the_next_block",
    "a_slot_is_released_before_its_products_are_over",
    "a_product_of_scales_is_cut",
    "every_batch_has_the_scales_of_the_first",
    "the_next_tile_has_the_scales_of_this_one",
    "a_nan_scale_of_a_counts_as_zero",
    "the_lowest_byte_is_zero",
)
"""Made in every run; all of them with --many-seeds."""


def variant(keys: Keys) -> Kernel:
    common = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3", "BM": 64, "num_stages": 2}
    return kernel_in(json.dumps({**common, **keys}))


def messages(verdict: Verdict) -> str:
    failures = [failure for case in verdict.cases for failure in case.failures]
    return "\n".join(f"{failure.check}: {failure.message}" for failure in failures)


def check_clean(kernel: Kernel, *cases: str, seed: int = 0) -> None:
    for case in cases:
        verdict, _ = verify(kernel, case, seed)
        assert verdict.num_cases
        assert verdict.passed, messages(verdict)


@pytest.mark.compile
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean(name: str) -> None:
    check_clean(variant(VARIANTS[name]), "scales/*", "batch/shared", "depth/*")


@pytest.mark.seeds
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean_in_more_cases(name: str) -> None:
    kernel = variant(VARIANTS[name])
    there = [case.name for case in family_of(kernel.plan).emulated_cases()]
    for seed in range(2):
        check_clean(kernel, *there, seed=seed)


def any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    return {
        "scales": {**some(WIDE, FINE), "dtype": some("fp32", "fp32", "ue8m0")},
        "BM": some(16, 40, 64, 128, 192, 256), "BN": some(64, 128, 16 * random.randint(1, 12)),
        "BK": some("auto", 128, 256), "swap_operands": some(False, False, True),
        "split_k": some(1, 1, 2), "cta_group": some(1, 1, 2, 4, 8), "ping_pong": some(False, True),
        "share": some("auto", "auto", "a", "both"), "multiply_ahead": some("auto", "auto", False),
        "residual": some("none", "none", "matrix", "row", "column"), "num_stages": some(1, 2, 3),
        "out_dtype": some("bf16", "fp16", "fp32"), "short_ends": some(False, True),
        "num_consumer_warpgroups": some("auto", "auto", 1, 2, 3),
    }  # fmt: skip


def check_any(seed: int) -> bool:
    """Check a kernel drawn by ``seed`` on three cases; False where there is none."""
    random = Random(seed)
    keys = any_keys(random)
    try:
        kernel = variant(keys)
    except ConfigError:
        return False
    family = family_of(kernel.plan)
    cases = [case for case in family.emulated_cases() if family.cost(case) < MOST_WORK]
    drawn = random.sample([case.name for case in cases], 2)
    with noting(f"drawn by check_any({seed}): {keys}"):
        check_clean(kernel, *drawn, "scales/blocks_apart", seed=seed)
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
