"""Mutants of the matrix product for Hopper: the emulator must report each."""

from __future__ import annotations

from functools import cache

import pytest

from tests.kernels.gemm.emulation import emulate, gemm_kernel, is_told
from tests.kernels.gemm.sm90.mutants import (
    CONFIGS,
    FOURS,
    GRIDS,
    IN_TURN,
    MUTANTS,
    NARROW,
    RING,
    SPLIT,
    SWAPPED,
    UPSTREAM,
)
from tests.kernels.source_mutation import Kernel, mutated

SEEDS = 20
ALWAYS = [
    *UPSTREAM,
    *NARROW,
    *SWAPPED,
    *SPLIT,
    *FOURS,
    *GRIDS,
    *IN_TURN,
    *RING,
    "slot_released_before_its_products",
    "slot_released_by_31_lanes",
    "stored_panel_overwritten",
    "written_without_proxy_fence",
    "turns_not_waited_for",
    "left_while_the_peer_loads",
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
    kernel = original(MUTANTS[name].config)
    assert mutated(kernel, MUTANTS[name]) != kernel


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_the_kernel_itself_is_clean(config: str) -> None:
    problem = next(mutant.problem for mutant in MUTANTS.values() if mutant.config == config)
    assert emulate(original(config), problem, 0).failure == ""


@pytest.mark.compile
@pytest.mark.parametrize("name", ALWAYS)
def test_a_mutant_is_reported(name: str) -> None:
    assert failures_of(name, range(1)) == []


@pytest.mark.seeds
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_reported_whatever_the_schedule(name: str) -> None:
    assert failures_of(name, range(SEEDS)) == []
