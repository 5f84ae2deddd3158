"""Kernels of depth 512 on Blackwell are clean and correct under every schedule."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.mutations.mutant import Edit
from tests.kernels.attention.sm100_depth512.mutants import MORE_KEYS, MUTANTS, depth512, edited
from tests.kernels.source_mutation import kernel_of, verify

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

SEEDS = 20
CONFIGS: dict[str, dict[str, Any]] = {
    "causal": {"mask": "causal"},
    "window": {"mask": {"sliding_window": 100}},
    "dynamic": {"mask": "causal", "scheduler": "dynamic"},
    "two_sided": {"mask": {"sliding_window": {"left": 30, "right": 9}}, "dtype": "fp16"},
    "capped": {"dtype": "fp16", "softcap": 20.0, "lse": False},
    "rescaling": {"rescale_threshold": 0.0},
    "polynomial": {"exp2_fma_share": 0.5},
    "two_slots": {"num_kv_stages": 2},
    "three_slots": {"num_kv_stages": 3, "arch": "sm_103a"},
    "fp8": {"dtype": "fp8_e4m3", "mask": "causal"},
    "fp8_to_fp16": {"dtype": "fp8_e4m3", "out_dtype": "fp16", "num_kv_stages": 3},
}
EDGES = {
    "size/1": "a single row and key: the second CTA has no rows",
    "tile/65x255": "the second CTA has one row; the keys end inside a part",
    "tile/63x513": "the second CTA has no rows; one key in the last of three blocks",
    "more_queries/97x17": "the second CTA ends inside its tile; fewer keys than a part has",
}
MANY = (*EDGES, "data/rising")
ONE_SLOT: dict[str, Any] = {"num_kv_stages": 1}


@cache
def kernel(config: str) -> Kernel:
    return kernel_of({"depth": 512, "cta_group": 2, **(CONFIGS | {"one_slot": ONE_SLOT})[config]})


def check(config: str, case: str, seed: int) -> None:
    """Verify launches twice: with ``seed`` and with another, under the same policy."""
    verdict, reports = verify(kernel(config), case, seed)
    assert verdict.num_cases == 1
    assert verdict.passed, [str(failure) for row in verdict.cases for failure in row.failures]
    assert {report.schedule for report in reports} == {SCHEDULES[seed % len(SCHEDULES)]}
    assert {report.verdict.value for report in reports} == {"clean"}


@pytest.mark.compile
@pytest.mark.parametrize(
    ("config", "case"),
    [
        (config, case)
        for i, config in enumerate(CONFIGS)
        for j, case in enumerate(EDGES)
        if (i + j) % len(EDGES) == 0  # a part of them: each takes seconds
    ],
)
def test_edges_of_a_tile(config: str, case: str) -> None:
    check(config, case, seed=[*CONFIGS].index(config) + [*EDGES].index(case))


@pytest.mark.compile
@pytest.mark.parametrize("config", ["dynamic"])
def test_several_tiles_of_a_pair(config: str) -> None:
    check(config, "tiles/many", seed=[*CONFIGS].index(config))


@pytest.mark.seeds
@pytest.mark.parametrize("case", MANY)
@pytest.mark.parametrize("config", ["causal", "window"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_seeds(schedule: str, config: str, case: str) -> None:
    """A run of verify has two seeds."""
    for number in range(SEEDS // 2):
        check(config, case, SCHEDULES.index(schedule) + number * len(SCHEDULES))


@pytest.mark.compile
@pytest.mark.parametrize(
    ("config", "case"),
    [
        # test_edges_of_a_tile has the kernel that every mutant of a run comes from; this one
        # rescales
        ("rescaling", MORE_KEYS),
        *(
            pytest.param(config, case, marks=pytest.mark.seeds)
            for config, case in sorted({(m.config, m.case) for m in MUTANTS.values()})
            if (config, case) != ("rescaling", MORE_KEYS)
        ),
    ],
)
def test_the_kernels_without_mutations_are_clean(config: str, case: str) -> None:
    check(config, case, 0)


@pytest.mark.compile
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(i, marks=pytest.mark.seeds) for i in range(1, 8))]
)
def test_the_wait_for_a_free_buffer_of_scores_is_implied(seed: int) -> None:
    """The products that overwrite scores follow P.V of their block, which has waited for PO_lo.

    The document has the wait, and so has the kernel; without it, nothing may go wrong.
    """
    without = edited(depth512("causal"), (Edit("    scores.acquire();\n"),))
    verdict, _ = verify(without, "data/rising", seed)
    assert verdict.passed, str(verdict.cases)


@pytest.mark.compile
def test_a_single_slot() -> None:
    """Loads and products alternate; neither CTA of the pair may wait for ever."""
    check("one_slot", "tile/65x255", 0)
