"""Mutants of synchronisation are reported with kind, place and role, whatever the schedule."""

from __future__ import annotations

from typing import Final

import pytest

from fa4gen.emulator import SCHEDULES
from tests.kernels.attention.sm90_depth512 import mutants as sm90_512
from tests.kernels.attention.sm100 import mutants as sm100
from tests.kernels.attention.sm100_depth512 import mutants as sm100_512
from tests.kernels.source_mutation import failure, kernel_of, mutated

DESIGNS: Final = {"sm90 512": sm90_512, "sm100": sm100, "sm100 512": sm100_512}
EACH: Final = [(design, name) for design, of in DESIGNS.items() for name in of.MUTANTS]


def seeds_of(design: str, name: str) -> range:
    """Return the seeds of many under which a mutant is run."""
    if design == "sm90 512":
        return range(1, 2)
    if design == "sm100 512":
        return range(12)
    return range(20 if name in sm100.WRONG_VERSIONS else 2 * len(SCHEDULES))


def failures_of(design: str, name: str, seeds: range) -> list[str]:
    """Return what is not as expected, seed by seed."""
    mutant = DESIGNS[design].MUTANTS[name]
    kernel = mutated(kernel_of(DESIGNS[design].CONFIGS[mutant.config]), mutant)
    found = {seed: failure(mutant, kernel, seed) for seed in seeds}
    return [f"seed {seed}: {wrong}" for seed, wrong in found.items() if wrong]


@pytest.mark.parametrize(("design", "name"), EACH)
def test_the_mutant_can_still_be_made(design: str, name: str) -> None:
    mutant = DESIGNS[design].MUTANTS[name]
    kernel = kernel_of(DESIGNS[design].CONFIGS[mutant.config])
    assert mutated(kernel, mutant) != kernel
    assert mutant.found
    assert all(one.kind and (one.at or one.says or one.who) for one in mutant.found)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("design", "name"), [(design, name) for design, of in DESIGNS.items() for name in of.ALWAYS]
)
def test_a_mutant_is_reported(design: str, name: str) -> None:
    assert failures_of(design, name, seeds_of(design, name)[:1]) == []


@pytest.mark.seeds
@pytest.mark.parametrize(("design", "name"), EACH)
def test_a_mutant_is_reported_whatever_the_schedule(design: str, name: str) -> None:
    assert failures_of(design, name, seeds_of(design, name)) == []
