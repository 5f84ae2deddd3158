"""Mutants of matrix products: the emulator must report each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.kernels.gemm.emulation import Problem, emulate, gemm_kernel, is_told
from tests.kernels.gemm.sm90 import mutants as sm90
from tests.kernels.gemm.sm100 import mutants as sm100
from tests.kernels.source_mutation import mutated

if TYPE_CHECKING:
    from tests.kernels.gemm.sm100.mutants import GemmMutant
    from tests.kernels.source_mutation import Kernel

SEEDS = 20
ALWAYS: Final = {
    "sm90": [
        *sm90.UPSTREAM,
        *sm90.NARROW,
        *sm90.SWAPPED,
        *sm90.SPLIT,
        *sm90.FOURS,
        *sm90.GRIDS,
        *sm90.IN_TURN,
        *sm90.RING,
        "slot_released_before_its_products",
        "slot_released_by_31_lanes",
        "stored_panel_overwritten",
        "written_without_proxy_fence",
        "turns_not_waited_for",
        "left_while_the_peer_loads",
    ],
    "sm100": [
        *(name for name in sm100.UPSTREAM if not name.endswith(("_row", "_short"))),
        "residual_never_freed",
        "sums_given_back_before_their_loads_are_complete",
        "sums_given_back_before_they_are_read",
        "staged_without_proxy_fence",
        "sums_given_back_without_fence",
        "arrival_of_the_peer_dropped",
        "answer_given_back_by_one_lane",
    ],
}
"""Made in every run; all of them with --many-seeds."""
DESIGNS: Final = {"sm90": sm90, "sm100": sm100}
EACH: Final = [(design, name) for design, of in DESIGNS.items() for name in of.MUTANTS]


def original(design: str, config: str) -> Kernel:
    return gemm_kernel(DESIGNS[design].CONFIGS[config])


def made(design: str, name: str) -> tuple[GemmMutant, Kernel]:
    mutant = DESIGNS[design].MUTANTS[name]
    return mutant, mutated(original(design, mutant.config), mutant)


def failures_of(design: str, name: str, seeds: range) -> list[str]:
    """Seeds under which the mutant is not reported as expected."""
    mutant, kernel = made(design, name)
    outcomes = {seed: emulate(kernel, mutant.problem, seed) for seed in seeds}
    missed = {
        seed: outcome.failure or "passed"
        for seed, outcome in outcomes.items()
        if not is_told(outcome, mutant.found, kernel)
    }
    return [f"seed {seed}: {said}" for seed, said in missed.items()]


@pytest.mark.parametrize(("design", "name"), EACH)
def test_the_mutant_can_still_be_made(design: str, name: str) -> None:
    mutant, kernel = made(design, name)
    assert kernel != original(design, mutant.config)


def problem_of(design: str, config: str) -> Problem:
    """Return the problem on which the kernel without an error has to be clean."""
    if design == "sm100":
        return sm100.TILES
    return next(mutant.problem for mutant in sm90.MUTANTS.values() if mutant.config == config)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("design", "config"), [(design, one) for design, of in DESIGNS.items() for one in of.CONFIGS]
)
def test_the_kernel_without_it_is_clean(design: str, config: str) -> None:
    assert emulate(original(design, config), problem_of(design, config), 0).failure == ""


@pytest.mark.compile
@pytest.mark.parametrize(
    ("design", "name"), [(design, name) for design, names in ALWAYS.items() for name in names]
)
def test_a_mutant_is_reported(design: str, name: str) -> None:
    assert failures_of(design, name, range(1)) == []


@pytest.mark.seeds
@pytest.mark.parametrize(("design", "name"), EACH)
def test_a_mutant_is_reported_whatever_the_schedule(design: str, name: str) -> None:
    assert failures_of(design, name, range(SEEDS)) == []
