"""Cases of groups of rows: where rows lie, what is NaN, what must stay, what the reference is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.verify.buffers import GUARD_PATTERN
from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.group_cases import in_groups
from fa4gen.verify.gemm.groups import Groups
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.memory import place, read_out
from fa4gen.verify.gemm.reference import GemmProblem, compute
from fa4gen.verify.inputs import make_rng
from fa4gen.verify.rounding import POISON_BITS

COUNTS, APART = (3, 0, 8, 1), (2, 5)
CASE = GemmCase("c", 8, 24, 40, len(COUNTS), counts=COUNTS, apart=APART)


def plan_of(**keys):
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", **keys}
    return build_plan(config_from_data(data, "probe"))


def drawn(plan, case=CASE):
    inputs = make_inputs(case, plan, make_rng(1, "c"))
    return inputs, place(case, inputs, plan)


def test_offsets_follow_one_another_and_masked_groups_begin_anew() -> None:
    offsets, masked = Groups("offsets", COUNTS, APART), Groups("masked", COUNTS, APART)
    assert (offsets.matrices, offsets.rows) == (1, 19)
    assert (masked.matrices, masked.rows) == (4, 13)
    name, rows = offsets.argument
    assert (name, rows.tolist()) == ("row_offsets", [2, 5, 5, 13, 14])
    name, rows = masked.argument
    assert (name, rows.tolist()) == ("row_counts", [3, 0, 8, 1])
    assert [(part.batch, part.first) for part in offsets.parts()] == [
        (0, 2),
        (0, 5),
        (0, 5),
        (0, 13),
    ]
    assert [(part.batch, part.first) for part in masked.parts()] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    for groups in (offsets, masked):
        assert (~groups.rows_of_none()).sum() == sum(COUNTS)
    assert [offsets.row_of(row) for row in (0, 3, 11)] == [(0, 2), (0, 5), (0, 13)]
    assert [masked.row_of(row) for row in (2, 3, 11)] == [(0, 2), (2, 0), (3, 0)]


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("residual", ["row", "matrix"])
def test_rows_of_no_group_are_nan_and_must_stay(groups: str, residual: str) -> None:
    plan = plan_of(groups=groups, residual=residual)
    inputs, memory = drawn(plan)
    assert inputs.groups is not None
    none = inputs.groups.rows_of_none()
    assert np.isnan(inputs.a[none]).all()
    assert np.isfinite(inputs.a[~none]).all()
    assert inputs.c is not None
    if residual == "matrix":
        assert (np.isnan(inputs.c).all(axis=-1) == none).all()
    else:
        assert inputs.c.shape == (len(COUNTS), CASE.n)
    view = memory.views["out"]
    bits = view.bits(memory.buffers["out"]).reshape(*none.shape, CASE.n)
    assert (bits[none] == GUARD_PATTERN * 0x101).all()
    assert (bits[~none] == POISON_BITS["bf16"]).all()
    outside = np.ndarray(
        (*view.shape, 2), np.bool_, memory.outside("out").data, view.offset, (*view.strides, 1)
    ).reshape(*none.shape, -1)
    assert outside[none].all()
    assert not outside[~none].any()


@pytest.mark.parametrize("groups", ["offsets", "masked"])
def test_the_reference_is_each_groups_product(groups: str) -> None:
    plan = plan_of(
        groups=groups, dtype="fp8_e4m3", scales={"a": "1x128", "b": "128x128"}, residual="row"
    )
    inputs, memory = drawn(plan, replace(CASE, k=200, n=160))
    result = compute(GemmProblem.of(plan), inputs)
    assert result.exact.shape == (1, sum(COUNTS), 160) == read_out(memory, memory.buffers).shape
    of_a, of_b = inputs.scales
    for part in inputs.parts:
        rows = slice(part.first, part.first + part.rows)
        scale_a = np.repeat(of_a[part.batch, rows], 128, axis=1)[:, :200]
        scale_b = np.repeat(np.repeat(of_b[part.b], 128, axis=0), 128, axis=1)[:200, :160]
        product = (inputs.a[part.batch, rows] * scale_a).astype(float) @ (
            inputs.b[part.b] * scale_b
        )
        assert inputs.c is not None
        expected = inputs.alpha * product + inputs.beta * inputs.c[part.b]
        begin = part.place[1]
        np.testing.assert_allclose(result.exact[0, begin : begin + part.rows], expected, atol=1e-3)


def test_an_element_of_the_result_is_named_by_its_place_in_the_output() -> None:
    _, memory = drawn(plan_of(groups="offsets"))
    assert memory.place_of("out", memory.index_of((0, 3, 7))) == "out[row 5, column 7]"
    _, memory = drawn(plan_of(groups="masked"))
    assert memory.place_of("out", memory.index_of((0, 3, 7))) == "out[batch 2, row 0, column 7]"


def test_plain_cases_become_groups_and_no_more_than_a_call_may_have() -> None:
    plan = plan_of(groups="offsets", most_groups=3)
    alone, several, own = in_groups(
        plan,
        (GemmCase("a", 9, 8, 8), GemmCase("b", 9, 8, 8, 5, shared=("b",)), CASE),
    )
    assert (alone.counts, alone.batch) == ((9,), 1)
    assert (several.counts, several.batch, several.shared) == ((9, 5, 9), 3, ())
    assert (own.counts, own.batch, own.m) == ((0, 8, 1), 3, 8)
    assert in_groups(plan_of(), (CASE,)) == (CASE,)


@pytest.mark.parametrize("groups", ["offsets", "masked"])
def test_the_emulators_cases_have_empty_groups_many_and_poisoned_neighbours(groups: str) -> None:
    cases = {case.name: case for case in family_of(plan_of(groups=groups)).emulated_cases()}
    assert all(case.counts for case in cases.values())
    assert 0 in cases["groups/uneven"].counts
    assert len(cases["groups/many"].counts) > 64
    assert len(cases["groups/mostly_empty"].counts) > 256
    assert {case.data for case in cases.values()} >= {"nan_groups", "inf_groups", "counting"}
    assert sum(cases["groups/none_has_rows"].counts) == 0


def test_poisoned_groups_have_nan_in_a_and_b_and_their_neighbours_do_not() -> None:
    inputs, _ = drawn(plan_of(groups="offsets"), replace(CASE, data="nan_groups"))
    result = compute(GemmProblem.of(plan_of(groups="offsets")), inputs)
    for part in inputs.parts:
        begin = part.place[1]
        found = np.isnan(result.exact[0, begin : begin + part.rows])
        assert found.all() if part.b % 2 else not found.any()
        assert np.isnan(inputs.b[part.b]).any() == bool(part.b % 2)
