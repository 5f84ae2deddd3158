"""Kernels for Blackwell, which mutants are made of, are clean under every schedule."""

from __future__ import annotations

from functools import cache

import pytest

from fa4gen.emulator import SCHEDULES
from tests.kernels.attention.sm100.mutants import ALWAYS, CONFIGS, MUTANTS
from tests.kernels.source_mutation import Kernel, kernel_of, verify

SEEDS = 20


@cache
def original(config: str) -> Kernel:
    return kernel_of(CONFIGS[config])


def check_original(config: str, case: str, seed: int) -> None:
    verdict, reports = verify(original(config), case, seed)
    failures = [str(failure) for row in verdict.cases for failure in row.failures]
    assert verdict.passed, failures
    assert [report.verdict.value for report in reports] == ["clean", "clean"]


def test_every_kernel_is_one_of_a_kind() -> None:
    plans = {name: original(name).plan for name in CONFIGS}
    over = plans["over"]
    assert (over.BM, over.num_qk_stages, over.output_staging) == (256, 2, "query")
    assert over.columns("probabilities_0").column == over.columns("scores_0").column
    assert plans["apart"].columns("probabilities_0").column > 0
    assert plans["apart"].output_staging == "own"
    assert plans["single_over"].columns("probabilities_0").column == 0
    assert plans["single"].columns("probabilities_0").column > 0
    assert {name for name, plan in plans.items() if plan.kv_ring == "fused"} == {
        "fused",
        "pair_query",
    }


IN_EVERY_RUN = {MUTANTS[name].config for name in ALWAYS}


@pytest.mark.compile
@pytest.mark.parametrize(
    "config",
    [c if c in IN_EVERY_RUN else pytest.param(c, marks=pytest.mark.seeds) for c in CONFIGS],
)
def test_the_kernel_without_it_is_clean(config: str) -> None:
    check_original(config, "ring/*", 0)


@pytest.mark.seeds
@pytest.mark.parametrize("config", CONFIGS)
def test_the_kernel_without_it_is_clean_under_many_seeds(config: str) -> None:
    for seed in range(1, SEEDS + 1):
        check_original(config, "ring/*", seed)


@pytest.mark.seeds
@pytest.mark.parametrize("config", CONFIGS)
def test_several_tiles_are_clean_under_all_policies(config: str) -> None:
    for seed in range(len(SCHEDULES)):
        check_original(config, "gqa/3", seed)
