"""Slips in the kernel of depth 512 on Blackwell are told: their kind, the place and the role."""

from __future__ import annotations

import pytest

from tests.emulator.mutations.mutant import Edit
from tests.kernels.attention.sm100_depth512.mutants import (
    CONFIGS,
    SLIPS,
    Told,
    complaint,
    depth512,
    edited,
)
from tests.kernels.source_mutation import verify

FEW = 1
SEEDS = 12
ALWAYS = (
    "probabilities_not_told",
    "factor_released_early",
    "value_released_halfway",
    "tensor_memory_freed_early",
    "probabilities_not_released",
)
"""Made in every run; all of them with --many-seeds."""
BY_SLIP = pytest.mark.parametrize("name", SLIPS)


@pytest.mark.compile
@pytest.mark.parametrize("name", ALWAYS)
def test_slips_are_told(name: str) -> None:
    assert [complaint(SLIPS[name], seed) for seed in range(FEW)] == [""] * FEW


@pytest.mark.seeds
@BY_SLIP
def test_slips_are_told_under_many_seeds(name: str) -> None:
    assert [complaint(SLIPS[name], seed) for seed in range(SEEDS)] == [""] * SEEDS


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("case", ["size/1", "more_keys/5x768"])
def test_the_kernels_without_them_are_clean(config: str, case: str) -> None:
    for seed in range(FEW):
        verdict, _ = verify(depth512(config), case, seed)
        assert verdict.passed, str(verdict.cases)


@BY_SLIP
def test_a_slip_fits_the_source_and_says_where(name: str) -> None:
    slip = SLIPS[name]
    assert edited(depth512(slip.config), slip.edits) != depth512(slip.config)
    assert slip.told
    assert all(told != Told("", "", "") for told in slip.told)


@pytest.mark.compile
def test_the_wait_for_a_free_buffer_of_scores_is_implied() -> None:
    """The products that overwrite scores follow P.V of their block, which has waited for PO_lo.

    The document has the wait, and so has the kernel; without it, nothing may go wrong.
    """
    kernel = edited(depth512("causal"), (Edit("    scores.acquire();\n"),))
    for seed in range(4):
        verdict, _ = verify(kernel, "data/rising", seed)
        assert verdict.passed, str(verdict.cases)
