"""Mutants of the matrix product for Blackwell: the emulator must report each."""

from __future__ import annotations

from functools import cache

import pytest

from tests.kernels.gemm.emulation import emulate, gemm_kernel, is_told
from tests.kernels.gemm.sm100.mutants import CONFIGS, MUTANTS, TILES, UPSTREAM
from tests.kernels.source_mutation import Kernel, mutated

SEEDS = 20
ALWAYS = [
    *(name for name in UPSTREAM if not name.endswith(("_row", "_short"))),
    "residual_never_freed",
    "sums_given_back_before_their_loads_are_complete",
    "sums_given_back_before_they_are_read",
    "staged_without_proxy_fence",
    "sums_given_back_without_fence",
    "arrival_of_the_peer_dropped",
    "answer_given_back_by_one_lane",
]
"""Made in every run; all of them with --many-seeds."""


@cache
def original(config: str) -> Kernel:
    return gemm_kernel(CONFIGS[config])


def failures_of(name: str, seeds: range) -> list[str]:
    """Seeds under which the mutant is not reported as expected."""
    mutant = MUTANTS[name]
    kernel = mutated(original(mutant.config), mutant)
    outcomes = {seed: emulate(kernel, mutant.problem, seed) for seed in seeds}
    missed = {
        seed: outcome.failure or "passed"
        for seed, outcome in outcomes.items()
        if not is_told(outcome, mutant.found, kernel)
    }
    return [f"seed {seed}: {said}" for seed, said in missed.items()]


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_can_still_be_made(name: str) -> None:
    mutant = MUTANTS[name]
    kernel = original(mutant.config)
    changed = mutated(kernel, mutant)
    assert changed != kernel


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_the_kernel_without_it_is_clean(config: str) -> None:
    assert emulate(original(config), TILES, 0).failure == ""


@pytest.mark.compile
@pytest.mark.parametrize("name", ALWAYS)
def test_a_mutant_is_reported(name: str) -> None:
    assert failures_of(name, range(1)) == []


@pytest.mark.seeds
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_reported_whatever_the_schedule(name: str) -> None:
    assert failures_of(name, range(SEEDS)) == []
