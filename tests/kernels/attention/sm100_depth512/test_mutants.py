"""Mutants of the kernel of depth 512 on Blackwell are reported with kind, place and role."""

from __future__ import annotations

import pytest

from tests.emulator.mutations.mutant import Edit
from tests.kernels.attention.sm100_depth512.mutants import (
    MORE_KEYS,
    MUTANTS,
    Found,
    depth512,
    edited,
    failure,
)
from tests.kernels.source_mutation import verify

FEW = 1
SEEDS = 12
ALWAYS = (
    "probabilities_not_signalled",
    "factor_released_early",
    "value_released_halfway",
    "tensor_memory_freed_early",
    "probabilities_not_released",
)
"""Made in every run; all of them with --many-seeds."""
BY_MUTANT = pytest.mark.parametrize("name", MUTANTS)


@pytest.mark.compile
@pytest.mark.parametrize("name", ALWAYS)
def test_mutants_are_reported(name: str) -> None:
    assert [failure(MUTANTS[name], seed) for seed in range(FEW)] == [""] * FEW


@pytest.mark.seeds
@BY_MUTANT
def test_mutants_are_reported_under_many_seeds(name: str) -> None:
    assert [failure(MUTANTS[name], seed) for seed in range(SEEDS)] == [""] * SEEDS


@pytest.mark.compile
@pytest.mark.parametrize(
    ("config", "case"),
    [
        # test_clean.py has the kernel that every mutant of a run comes from; this one rescales
        ("rescaling", MORE_KEYS),
        *(
            pytest.param(config, case, marks=pytest.mark.seeds)
            for config, case in sorted({(m.config, m.case) for m in MUTANTS.values()})
            if (config, case) != ("rescaling", MORE_KEYS)
        ),
    ],
)
def test_the_kernels_without_them_are_clean(config: str, case: str) -> None:
    for seed in range(FEW):
        verdict, _ = verify(depth512(config), case, seed)
        assert verdict.passed, str(verdict.cases)


@BY_MUTANT
def test_a_mutant_fits_the_source_and_names_its_place(name: str) -> None:
    mutant = MUTANTS[name]
    assert edited(depth512(mutant.config), mutant.edits) != depth512(mutant.config)
    assert mutant.found
    assert all(found != Found("", "", "") for found in mutant.found)


@pytest.mark.compile
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(i, marks=pytest.mark.seeds) for i in range(1, 8))]
)
def test_the_wait_for_a_free_buffer_of_scores_is_implied(seed: int) -> None:
    """The products that overwrite scores follow P.V of their block, which has waited for PO_lo.

    The document has the wait, and so has the kernel; without it, nothing may go wrong.
    """
    kernel = edited(depth512("causal"), (Edit("    scores.acquire();\n"),))
    verdict, _ = verify(kernel, "data/rising", seed)
    assert verdict.passed, str(verdict.cases)
