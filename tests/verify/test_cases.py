from __future__ import annotations

import pytest

from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.verify.cases import (
    MULTIPROCESSORS,
    default_cases,
    emulated_cases,
    large_cases,
)
from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.exercise import Wanted
from fa4gen.verify.family import family_of
from fa4gen.verify.input_kinds import CUT_KINDS, KINDS

PLANS = [
    {"mask": "none"},
    {"mask": "causal", "depth": 128, "cta_group": 2},
    {"mask": {"sliding_window": 5}, "dtype": "fp16"},
    {"mask": {"sliding_window": {"left": 1000, "right": 300}}, "depth": 256},
    {"mask": {"sliding_window": 100_000}},
    {"dtype": "fp8_e4m3"},
    {"arch": "sm_100a", "dtype": "fp8_e4m3"},
    {"arch": "sm_100a", "depth": 128, "cta_group": 2, "mask": "causal"},
    {"arch": "sm_103a", "depth": 192, "value_depth": 128},
]
AFFORDABLE = 1.6e8
"""Scores of all cases together; NumPy takes some 50 ns for each."""


@pytest.fixture(params=PLANS, ids=str)
def plan(request, make_plan):
    return make_plan(**request.param)


def test_cases_are_well_formed_and_have_names_of_their_own(plan) -> None:
    cases = default_cases(plan)
    assert len({case.name for case in cases}) == len(cases)
    for case in (*cases, *large_cases()):
        assert case.data in KINDS
        assert case.query_heads % case.key_heads == 0
        assert min(case.batch, case.query_rows, case.key_rows) >= 0
        assert case.layout != "packed" or case.query_rows == case.key_rows
        assert case.name in str(case)


@pytest.mark.parametrize("keys", [{}, {"pack_heads": True, "key_lengths": True}], ids=str)
def test_no_case_has_more_rows_than_the_mask_tells_apart(make_plan, keys) -> None:
    family = family_of(make_plan(mask="tree", depth=128, **keys))
    everything = Wanted(True, True, True, True, True, True)
    cases = (
        *family.default_cases(), *family.emulated_cases(), *family.large_cases(),
        *family.further_cases(everything), family.steady_work(4, 2).case,
    )  # fmt: skip
    assert max(max((rows for rows, _ in one.sequences), default=0) for one in cases) == 32
    assert max(one.query_rows for one in cases) == 32
    assert all(one.query_rows == one.key_rows for one in cases if one.layout == "packed")
    assert len({one.name for one in family.default_cases()}) == len(family.default_cases())


def test_what_the_cases_cover(plan) -> None:
    cases = default_cases(plan)
    lengths = {(case.query_rows, case.key_rows) for case in cases}
    for m in (plan.BM - 1, plan.BM, plan.BM + 1):
        for n in (plan.BN - 1, plan.BN, plan.BN + 1):
            assert (m, n) in lengths
    assert {77, 193, 333, 1000, 1111} <= {m for m, n in lengths if m == n}
    assert {case.query_heads // case.key_heads for case in cases} >= {1, 2, 3, 4, 5, 7, 8}
    assert {case.layout for case in cases} == {"bshd", "bhsd", "transposed", "padded", "packed"}
    left_out = {"far_apart"}  # for keys that CTAs share
    if CutSums.of(plan) is None:
        left_out |= CUT_KINDS.keys()
    assert {case.data for case in cases} == set(KINDS) - left_out
    assert any(m > n > 0 for m, n in lengths)
    assert any(1 == m < n for m, n in lengths)
    assert any(m == 0 for m, n in lengths)
    assert any(n == 0 < m for m, n in lengths)
    assert any(n == 1 < m for m, n in lengths)
    assert any(case.batch == 0 for case in cases)
    assert any(case.softmax_scale is not None for case in cases)
    tiles = [
        case.batch * case.query_heads * -(-case.query_rows // plan.BM) // plan.cta_group
        for case in cases
    ]
    assert sum(count > 3 * 132 for count in tiles) >= 2


def test_numpy_can_afford_the_cases(plan) -> None:
    scores = [c.batch * c.query_heads * c.query_rows * c.key_rows for c in default_cases(plan)]
    assert sum(scores) < AFFORDABLE


def test_windows_are_crossed(make_plan) -> None:
    cases = default_cases(make_plan(mask={"sliding_window": {"left": 100, "right": 30}}))
    square = {case.query_rows for case in cases if case.query_rows == case.key_rows}
    assert {130, 131, 132} <= square
    assert max(square) > 4 * 131
    assert not any(case.name.startswith("window/") for case in default_cases(make_plan()))


def test_calls_without_scales_are_made_of_kernels_with_them(make_plan) -> None:
    fp8 = make_plan(arch="sm_100a", dtype="fp8_e4m3")
    every = ("query", "key", "value")
    assert {case.descales for case in default_cases(fp8)} == {(), ("key",), every}
    assert {case.descales for case in emulated_cases(fp8)} == {(), every}
    for cases in (default_cases, emulated_cases):
        assert {case.descales for case in cases(make_plan(arch="sm_100a"))} == {every}


def test_lengths_around_each_of_two_query_tiles(make_plan) -> None:
    plan = make_plan(arch="sm_100a")
    assert plan.BM == 256
    assert {127, 128, 129, 255, 256, 257} <= {case.query_rows for case in default_cases(plan)}


@pytest.mark.parametrize("cta_group", [1, 2])
def test_ctas_of_the_emulator_take_several_tiles_in_turn(make_plan, cta_group) -> None:
    plan = make_plan(arch="sm_100a", depth=128, cta_group=cta_group)
    case = next(case for case in emulated_cases(plan) if case.name == "tiles/many")
    size = ProblemSize(case.batch, case.query_heads, 2, case.query_rows, case.key_rows)
    schedule = plan_schedule(plan, size, MULTIPROCESSORS)
    assert schedule.num_tiles == 3 * schedule.grid
