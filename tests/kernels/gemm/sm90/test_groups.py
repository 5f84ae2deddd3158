"""Products of groups for Hopper: variants are clean in verify's cases, mutants are reported.

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
from tests.kernels.gemm.reported import DrawnTests, MutantTests, VariantTests, product
from tests.kernels.gemm.sm90.grouped_mutants import CONFIGS, MUTANTS
from tests.kernels.source_mutation import (
    RecordingBackend,
    compiled_of,
)

if TYPE_CHECKING:
    from random import Random

    from fa4gen.verify.gemm.inputs import GemmInputs
    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
WIDE = {"a": "1x128", "b": "128x128"}
FP8 = {"dtype": "fp8_e4m3", "scales": WIDE}
VARIANTS: dict[str, Keys] = {
    "in turn, residual": {"ping_pong": True, "residual": "matrix", "dtype": "fp16"},
    "a pair of rows, bias": {"cta_group": 2, "residual": "row"},
    "a pair of columns": {"cta_group": 2, "share": "a", "groups": "masked", "residual": "column"},
    "a grid": {"cta_group": 8, "BN": 32, "residual": "row", "activation": "silu(x)"},
    "swapped, 16 rows": {"swap_operands": True, "BM": 16, "residual": "matrix"},
    "swapped, scales": {**FP8, "swap_operands": True, "BM": 24, "groups": "masked"},
    "split": {"split_k": 2},
    "lines, bytes": {**FP8, "scales": {"a": "1x128", "b": "1x128", "dtype": "ue8m0"}, "BN": 96},
    "scales, in turn": {**FP8, "BN": 160, "ping_pong": True, "groups": "masked"},
    "the output in the ring": {"output_in_ring": True, "short_ends": True, "groups": "masked"},
    "rows contiguous": {"groups": "masked", "a_major": "m", "b_major": "n", "out_dtype": "fp32"},
    "fp8": {"dtype": "fp8_e5m2", "b_dtype": "fp8_e4m3", "residual": "row"},
}
FIRST = (
    "an_offset_is_off_by_one",
    "the_last_tile_of_a_group_is_left_out",
    "groups_past_a_lane_begin_again",
    "the_counts_of_the_group_before_are_read",
    "a_row_more_counts",
    "counts_are_read_before_they_are_there",
    "a_tile_is_given_to_the_group_before",
    "a_warp_looks_at_the_first_groups_alone",
    "tail_rows_of_the_neighbour_are_written",
    "the_tail_loses_a_row",
    "the_weights_of_the_group_before_are_read",
    "a_group_is_stored_as_the_first",
    "a_group_has_the_bias_of_the_first",
    "the_scales_of_b_are_those_of_the_first_group",
    "the_scales_of_a_are_those_of_the_first_rows",
)
"""Mutants of every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_90a", "dtype": "bf16", "BM": 64, "BN": 64, "groups": "offsets"}


def variant(keys: Keys) -> Kernel:
    return product({**COMMON, **keys})


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("groups/*",)


def any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    types = some({"dtype": "bf16"}, {"dtype": "fp16"}, {"dtype": "fp8_e4m3"}, FP8)
    return {
        **types, "groups": some("offsets", "masked"), "most_groups": some("auto", 4096),
        "BM": some(16, 40, 64, 128, 192, 256), "BN": some(64, 128, 16 * random.randint(1, 12)),
        "swap_operands": some(False, False, True), "split_k": some(1, 1, 2),
        "cta_group": some(1, 1, 2, 4, 8), "ping_pong": some(False, True),
        "share": some("auto", "auto", "a", "both"), "short_ends": some(False, True),
        "residual": some("none", "none", "matrix", "row", "column"), "num_stages": some(1, 2, 3),
        "out_dtype": some("bf16", "fp16", "fp32"), "output_in_ring": some(False, False, True),
        "num_consumer_warpgroups": some("auto", "auto", 1, 2, 3),
    }  # fmt: skip


class TestDrawn(DrawnTests):
    common = COMMON
    always = ("groups/uneven",)

    def keys(self, random: Random) -> Keys:
        return any_keys(random)


# ---- isolation ----


def with_group(inputs: GemmInputs, of: GemmInputs, here: int, there: int) -> GemmInputs:
    """Return inputs whose group ``here`` is the group ``there`` of others."""
    own, other = inputs.parts[here], of.parts[there]
    assert own.rows == other.rows

    def rows(part: Any) -> Any:
        return part.batch, slice(part.first, part.first + part.rows)

    inputs.a[rows(own)] = of.a[rows(other)]
    inputs.b[own.b] = of.b[other.b]
    if inputs.c is not None and of.c is not None:
        inputs.c[own.b] = of.c[other.b]
    if inputs.scales:
        inputs.scales[0][rows(own)] = of.scales[0][rows(other)]
        inputs.scales[1][own.b] = of.scales[1][other.b]
    return inputs


def bits_of(kernel: Kernel, case: GemmCase, inputs: GemmInputs, group: int) -> bytes:
    """Return the bits of a group's output."""
    emulated = RecordingBackend(kernel.plan.arch, 0).load(kernel.plan, compiled_of(kernel))
    memory = place(case, inputs, kernel.plan)
    out = read_out(memory, emulated.run(memory))
    part = inputs.parts[group]
    begin = part.place[1]
    return np.ascontiguousarray(out[0, begin : begin + part.rows]).tobytes()


def case_of(name: str, counts: tuple[int, ...], apart: tuple[int, int]) -> GemmCase:
    return GemmCase(name, max(counts), 72, 200, len(counts), counts=counts, apart=apart)


@pytest.mark.compile
@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("keys", [{"residual": "row"}, FP8], ids=["bf16", "scales"])
def test_a_group_is_the_same_whatever_its_neighbours(groups: str, keys: Keys) -> None:
    kernel = variant({**keys, "groups": groups})
    rng = np.random.default_rng(5)
    alone = case_of("alone", (69,), (0, 0))
    inputs = make_inputs(alone, kernel.plan, rng)
    expected = bits_of(kernel, alone, inputs, 0)
    assert len(set(expected)) > 9
    for counts, apart, value in (
        ((7, 69, 130), (1, 2), None),
        ((0, 64, 69, 0, 3), (3, 5), np.nan),
        ((69, 1), (9, 0), np.inf),
    ):
        case, group = case_of("among others", counts, apart), counts.index(69)
        others = make_inputs(case, kernel.plan, rng)
        if value is not None:
            others.a[...] = others.b[...] = value
            for scales in others.scales:
                scales[...] = value
        filled = with_group(replace(others, alpha=inputs.alpha), inputs, group, 0)
        assert bits_of(kernel, case, filled, group) == expected


@pytest.mark.compile
@pytest.mark.parametrize(
    ("groups", "wrong"),
    [("offsets", (5, 3, 900, 40, -7, -1)), ("masked", (5, -3, 900, 40, 0))],
)
def test_counts_that_are_wrong_lead_nowhere_else(groups: str, wrong: tuple[int, ...]) -> None:
    """The kernel ends, and writes nothing outside of the output."""
    kernel = variant({"groups": groups})
    case = case_of("wrong", (20, 30, 9, 7, 4), (0, 0))
    inputs = make_inputs(case, kernel.plan, np.random.default_rng(0))
    memory = place(case, inputs, kernel.plan)
    name = {"offsets": "row_offsets", "masked": "row_counts"}[groups]
    bits = memory.views[name].bits(memory.buffers[name])
    bits[...] = np.array(wrong, np.int32).view(np.uint32)
    emulated = RecordingBackend(kernel.plan.arch, 0).load(kernel.plan, compiled_of(kernel))
    after = emulated.run(memory)
    mask = np.ones(memory.buffers["out"].size, np.bool_)
    view = memory.views["out"]
    rows = np.ndarray((*view.shape, 2), np.bool_, mask.data, view.offset, (*view.strides, 1))
    rows[...] = False
    assert np.array_equal(memory.buffers["out"][mask], after["out"][mask])


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = FIRST
