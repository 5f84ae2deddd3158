"""Mistakes of real kernels, made on purpose: each has to be reported, at its place, always."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.mutations.harness import MUTANTS, original, run
from tests.emulator.mutations.kernels import KERNELS
from tests.emulator.mutations.mutant import CLASSES

SEEDS = 20
FEW = 1

BY_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
BY_MUTANT = pytest.mark.parametrize(
    "mutant", MUTANTS, ids=[f"{mutant.kernel}-{mutant.name}" for mutant in MUTANTS]
)


def check_original(kernel: Any, seed: int, schedule: str) -> None:
    data = kernel.data(seed)
    report = kernel.launch(original(kernel), data, seed=seed, schedule=schedule)
    assert report.verdict.value == "clean", str(report)
    assert kernel.is_right(data)


@pytest.mark.compile
@BY_KERNEL
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kernels_are_clean_and_right(kernel, schedule) -> None:
    check_original(kernel, 0, schedule)


@pytest.mark.compile
@BY_MUTANT
def test_mutants_are_reported(mutant) -> None:
    assert run(mutant, FEW) == []


@pytest.mark.seeds
@BY_KERNEL
def test_kernels_under_many_seeds(kernel) -> None:
    for seed in range(SEEDS):
        check_original(kernel, seed, SCHEDULES[seed % len(SCHEDULES)])


@pytest.mark.seeds
@BY_MUTANT
def test_mutants_under_many_seeds(mutant) -> None:
    assert run(mutant, SEEDS) == []


def test_names_are_unique() -> None:
    names = [(mutant.kernel, mutant.name) for mutant in MUTANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_every_class_has_a_mutant(arch) -> None:
    groups = {mutant.group for mutant in MUTANTS if KERNELS[mutant.kernel].arch == arch}
    only_blackwell = {"TF", "TD"}  # there is no tensor memory before
    minimal = {"GR", "GF"}  # kernels of tests/emulator/classes only
    assert groups == set(CLASSES) - minimal - (only_blackwell if arch == "sm_90a" else set())
