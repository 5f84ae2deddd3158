"""Products with gathered rows for Hopper: variants are clean, mutants are reported by verify."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.resources import data_root
from fa4gen.verify.family import family_of
from tests.kernels.gemm.sm90.gathered_mutants import CONFIGS, MUTANTS
from tests.kernels.gemm.sm90.scaled_mutants import FINE, WIDE
from tests.kernels.gemm.sm90.test_scaled import check_clean, messages
from tests.kernels.source_mutation import kernel_in, mutated, verify

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
FP8: Keys = {"dtype": "fp8_e4m3"}
VARIANTS: dict[str, Keys] = {
    "fp8": {**FP8, "BM": 128},
    "fp16, ping_pong": {"dtype": "fp16", "ping_pong": True, "residual": "row"},
    "256 rows": {"BM": 256, "b_major": "n", "residual": "matrix"},
    "128 rows, a pair": {"BM": 128, "BN": 48, "cta_group": 2},
    "four share in turns": {"BM": 64, "BN": 48, "cta_group": 4},
    "the output in the ring": {"output_in_ring": True, "short_ends": True, "cta_group": 2},
    "swapped, 16 rows": {"BM": 16, "swap_operands": True, "activation": "silu(x)"},
    "split": {"split_k": 2, "residual": "column"},
    "one slot": {"num_stages": 1},
    "gated": {"groups": "offsets", "activation": "silu(gate) * up"},
    "masked, swapped": {"groups": "masked", "BM": 24, "swap_operands": True},
    "lines, a pair": {**FP8, "scales": FINE, "BM": 128, "cta_group": 2},
    "bytes, masked": {**FP8, "scales": {**WIDE, "dtype": "ue8m0"}, "groups": "masked"},
    "256 of k, split": {**FP8, "scales": WIDE, "BK": 256, "split_k": 2},
    "256 rows in turn": {**FP8, "scales": WIDE, "BM": 256},
    "gate, then up": {**FP8, "scales": WIDE, "BN": 256, "activation": "silu(gate) * up"},
    "swapped with scales": {**FP8, "scales": WIDE, "BM": 48, "swap_operands": True},
}
ALWAYS = (
    "the_index_is_a_row_off",
    "a_tile_has_the_index_of_the_tile_before",
    "the_index_is_read_past_its_end",
    "an_index_of_no_row_is_the_first",
    "every_batch_has_the_index_of_the_first",
    "a_group_has_the_index_of_the_first_row_on",
    "rows_are_not_swizzled",
    "the_last_chunk_is_copied_whole",
    "the_fence_is_missing",
    "lanes_arrive_before_their_copies",
    "scales_are_those_of_the_rows_of_the_output",
    "a_row_of_zeros_has_the_first_scale",
)
"""Made in every run; all of them with --many-seeds."""


def variant(keys: Keys) -> Kernel:
    common = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "rows": "gathered", "BM": 64,
              "BN": 64, "num_stages": 2}  # fmt: skip
    return kernel_in(json.dumps({**common, **keys}))


def test_every_order_of_products_waits_for_gathered_rows() -> None:
    folder = data_root("templates") / "gemm_sm90" / "sums"
    texts = [path.read_text() for path in folder.glob("*.cuh.j2")]
    assert sum("rows_of_a.wait_block()" in text for text in texts) >= 3
    assert not [text for text in texts if "input.wait_producer()" in text]


@pytest.mark.compile
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean(name: str) -> None:
    kernel = variant(VARIANTS[name])
    more = ("scales/blocks_apart",) if kernel.plan.scales else ()
    more = (*more, "groups/uneven", "groups/nan_neighbours") if kernel.plan.groups else more
    check_clean(kernel, "index/*", "depth/*", *more)


@pytest.mark.seeds
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean_in_every_case(name: str) -> None:
    kernel = variant(VARIANTS[name])
    for seed in range(2):
        for case in family_of(kernel.plan).emulated_cases():
            check_clean(kernel, case.name, seed=seed)


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
    assert verdict.num_cases
    assert not verdict.passed, f"{name} passes"
    assert mutant.says in messages(verdict)
