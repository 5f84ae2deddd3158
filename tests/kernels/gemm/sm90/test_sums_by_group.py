"""Sums over groups along k for Hopper: variants are clean in verify's cases, mutants are reported.

What a group gives does not depend on its neighbours by a bit.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_out
from tests.kernels.gemm.sm90.reported import check_clean, messages
from tests.kernels.gemm.sm90.sums_by_group_mutants import CONFIGS, MUTANTS, SMALL
from tests.kernels.source_mutation import (
    RecordingBackend,
    compiled_of,
    kernel_in,
    mutated,
    verify,
)

if TYPE_CHECKING:
    from fa4gen.verify.gemm.inputs import GemmInputs
    from tests.kernels.source_mutation import Kernel

VARIANTS: dict[str, dict[str, Any]] = {
    "accumulating": {"residual": "matrix", "out_dtype": "fp32"},
    "fp16, one slot": {"dtype": "fp16", "num_stages": 1},
    "wide, a bias": {"BM": 192, "BN": 128, "residual": "row"},
    "deep, an activation": {"BK": 128, "activation": "relu(x)", "short_ends": True},
}
FIRST = (
    "the_first_row_of_the_neighbour_is_added",
    "the_last_row_is_left_out",
    "the_last_block_is_left_out",
    "consumers_count_the_blocks_of_the_next_tile",
    "the_sums_of_a_group_without_rows_are_those_before",
)
"""Mutants of every run; all of them with --many-seeds."""


def variant(keys: dict[str, Any]) -> Kernel:
    return kernel_in(json.dumps({**SMALL, **keys}))


@pytest.mark.compile
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean(name: str) -> None:
    check_clean(variant(VARIANTS[name]), "groups/*")


@pytest.mark.seeds
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_clean_in_more_cases(name: str) -> None:
    kernel = variant(VARIANTS[name])
    there = [case.name for case in family_of(kernel.plan).emulated_cases()]
    check_clean(kernel, *there, seed=1)


def bits_of(kernel: Kernel, case: GemmCase, inputs: GemmInputs) -> Any:
    """Return the bits of the output, a matrix a group."""
    emulated = RecordingBackend(kernel.plan.arch, 0).load(kernel.plan, compiled_of(kernel))
    memory = place(case, inputs, kernel.plan)
    return read_out(memory, emulated.run(memory)).view(np.uint32)


def case_of(counts: tuple[int, ...], apart: tuple[int, int]) -> GemmCase:
    return GemmCase("some", 72, 40, max(counts), len(counts), counts=counts, apart=apart)


@pytest.mark.compile
def test_a_group_is_the_same_whatever_its_neighbours() -> None:
    kernel = variant({})
    rng = np.random.default_rng(5)
    alone = case_of((69,), (0, 0))
    inputs = make_inputs(alone, kernel.plan, rng)
    (expected,) = bits_of(kernel, alone, inputs)
    for counts, apart, value in (
        ((7, 69, 130), (1, 2), None),
        ((0, 64, 69, 0, 3), (3, 5), np.nan),
        ((69, 1), (9, 0), np.inf),
    ):
        case, group = case_of(counts, apart), counts.index(69)
        others = replace(make_inputs(case, kernel.plan, rng), alpha=inputs.alpha)
        if value is not None:
            others.a[...] = others.b[...] = value
        rows = others.parts[group].depth
        others.a[:, :, rows], others.b[:, rows] = inputs.a, inputs.b
        assert np.array_equal(bits_of(kernel, case, others)[group], expected)


@pytest.mark.compile
def test_offsets_that_are_wrong_lead_nowhere_else() -> None:
    """The kernel ends, and gives zeros for groups that end before they begin."""
    kernel = variant({})
    case = case_of((20, 30, 9, 7, 4), (0, 0))
    inputs = make_inputs(case, kernel.plan, np.random.default_rng(0))
    memory = place(case, inputs, kernel.plan)
    offsets = np.array((5, 3, 900, 40, -7, -1), np.int32)
    memory.views["row_offsets"].bits(memory.buffers["row_offsets"])[...] = offsets.view(np.uint32)
    emulated = RecordingBackend(kernel.plan.arch, 0).load(kernel.plan, compiled_of(kernel))
    out = read_out(memory, emulated.run(memory))
    assert not out[[0, 2, 3, 4]].any()
    assert out[1].all()


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_can_still_be_made(name: str) -> None:
    kernel = kernel_in(json.dumps(CONFIGS[MUTANTS[name].config]))
    assert mutated(kernel, MUTANTS[name]) != kernel


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_what_is_not_mutated_is_clean(config: str) -> None:
    cases = {mutant.case for mutant in MUTANTS.values() if mutant.config == config}
    check_clean(kernel_in(json.dumps(CONFIGS[config])), *sorted(cases))


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.seeds]) for name in MUTANTS],
)
def test_a_mutant_is_reported_by_verify(name: str) -> None:
    mutant = MUTANTS[name]
    kernel = mutated(kernel_in(json.dumps(CONFIGS[mutant.config])), mutant)
    verdict, _ = verify(kernel, mutant.case, 0)
    assert verdict.num_cases == 1
    assert not verdict.passed, f"{name} passes"
    assert mutant.says in messages(verdict)
