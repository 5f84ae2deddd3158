"""Mutants of the shipped kernels that show only when a long ring has wrapped, or wrapped twice.

Without the case that goes round every ring twice they are not seen: the other cases use the
last slots of a long ring once.
"""

from __future__ import annotations

import pytest

from fa4gen.emulator import SCHEDULES
from tests.kernels.source_mutation import Change, Mutant, mutated, shipped, verify

GEMM, ATTENTION = "gemm_fp16_short_residual", "fa4_d64_causal_fp8"
SHORT = {
    "last_slot_taken_without_a_wait": ("depth/*", "tiles/many"),
    "last_block_taken_without_a_wait": ("ring/*", "tiles/many"),
    "parity_of_blocks_flips_once": ("ring/*", "tiles/many"),
}
"""The longest of the other cases, which do not show the error."""
MUTANTS = {
    "last_slot_taken_without_a_wait": Mutant(
        GEMM, "the loader does not wait until the last of 8 slots is free",
        (Change(
            r"mbarrier_wait\(empty<part>\(\), state.phase\)",
            r"if (num_slots != 8 || state.index != 7) \g<0>",
        ),), (),
    ),
    "parity_flips_once": Mutant(
        GEMM, "the loader's parity is right in the first two rounds only",
        (Change(
            r"producer_step\(\) \{ producer_state.step\(\);",
            r"\g<0> if (num_stages == 8 && !producer_state.index) producer_state.phase = 0;",
        ),), (),
    ),
    "last_block_taken_without_a_wait": Mutant(
        ATTENTION, "the loader does not wait until the last of 11 slots is free",
        (Change(
            r"mbarrier_wait\(empty<part>\(\), state.phase\)",
            r"if (num_slots != 11 || state.index != 10) \g<0>",
        ),), (),
    ),
    "parity_of_blocks_flips_once": Mutant(
        ATTENTION, "the loader's parity is right in the first two rounds only",
        (Change(
            r"void commit_step\(\) \{ pipeline.state.step\(\);",
            r"\g<0> if (!pipeline.state.index) pipeline.state.phase = 0;",
        ),), (),
    ),
}  # fmt: skip
ALWAYS = [name for name, mutant in MUTANTS.items() if mutant.config == GEMM]
"""Made in every run; all of them with --many-seeds."""
KINDS = {"race", "proxy-war", "phase-lap", "deadlock", "transaction-bytes", "over-arrival"}


def check_told(name: str, seed: int) -> None:
    """On the case for rings verify reports what is wrong, under every schedule."""
    mutant = MUTANTS[name]
    verdict, reports = verify(mutated(shipped(mutant.config), mutant), "rings/*", seed)
    assert not verdict.passed, f"{name} passes under seed {seed}"
    wrong = [report for report in reports if report.verdict.value == "error"]
    assert wrong
    assert {finding.kind for finding in wrong[0].findings} & KINDS, str(wrong[0])


def test_the_rings_are_long() -> None:
    assert shipped(GEMM).plan.num_stages == 8
    assert shipped(ATTENTION).plan.num_kv_stages == 11


@pytest.mark.compile
@pytest.mark.parametrize("name", ALWAYS)
def test_a_mutant_after_a_wrap_is_reported(name: str) -> None:
    check_told(name, 0)


@pytest.mark.compile
def test_the_kernel_without_it_is_clean_and_goes_round() -> None:
    verdict, _ = verify(shipped(GEMM), "rings/*", 0)
    assert verdict.passed
    assert verdict.exercise is not None
    assert not verdict.exercise.rings_left


@pytest.mark.seeds
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_after_a_wrap_is_reported_whatever_the_schedule(name: str) -> None:
    for seed in range(2 * len(SCHEDULES)):
        check_told(name, seed)


@pytest.mark.seeds
@pytest.mark.parametrize("name", SHORT)
def test_other_cases_are_too_short_for_it(name: str) -> None:
    mutant = MUTANTS[name]
    kernel = mutated(shipped(mutant.config), mutant)
    for case in SHORT[name]:
        verdict, _ = verify(kernel, case, 0)
        assert verdict.passed, case
        assert verdict.exercise is not None
        assert verdict.exercise.rings_left, case
