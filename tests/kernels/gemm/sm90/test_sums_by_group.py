"""Sums over groups along k for Hopper: variants are clean in verify's cases, mutants are reported.

What a group gives does not depend on its neighbours by a bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_out
from tests.kernels.gemm.reported import MutantTests, VariantTests, product
from tests.kernels.gemm.sm90.sums_by_group_mutants import CONFIGS, MUTANTS, SMALL
from tests.kernels.source_mutation import (
    RecordingBackend,
    compiled_of,
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
    return product({**SMALL, **keys})


class TestVariants(VariantTests):
    common = SMALL
    variants = VARIANTS
    cases = ("groups/*",)


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


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = FIRST
