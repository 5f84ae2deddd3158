from __future__ import annotations

import pytest

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.verify.cases import MULTIPROCESSORS as EMULATED
from fa4gen.verify.gemm.cases import default_cases, emulated_cases, large_cases
from fa4gen.verify.gemm.input_kinds import KINDS

PLANS = [
    {},
    {"residual": "matrix", "cta_group": 2, "BM": 128, "BN": 256},
    {"residual": "row", "arch": "sm_100a", "cta_group": 2, "scheduler": "dynamic"},
    {"residual": "matrix", "arch": "sm_100a", "dtype": "fp8_e4m3", "out_dtype": "fp32"},
]


@pytest.fixture(params=PLANS, ids=str)
def plan(request, make_plan):
    return make_plan(**request.param)


def test_names_are_unique_and_cases_are_legal(plan) -> None:
    for cases in (default_cases(plan), emulated_cases(plan), large_cases()):
        assert len({case.name for case in cases}) == len(cases)
        for case in cases:
            assert min(case.m, case.n, case.k) >= 0
            assert case.data in KINDS
            assert not (case.shared and case.batch is None)
            assert not (case.in_place and (plan.residual != "matrix" or case.shared))
            assert not (case.nan_in_c and case.beta)


def test_sizes_go_around_the_tile_and_the_stage(plan) -> None:
    cases = default_cases(plan)
    rows = plan.cta_group * plan.BM
    for extents, edge in (
        ({case.m for case in cases}, rows),
        ({case.n for case in cases}, plan.BN),
        ({case.k for case in cases}, plan.BK),
        ({case.k for case in cases}, plan.num_stages * plan.BK),
    ):
        assert {edge - 1, edge, edge + 1} <= extents
    assert {1, 0} <= {case.m for case in cases} & {case.n for case in cases}
    assert {0, 1} <= {case.k for case in cases}
    assert max(case.k for case in cases) > 4096


def tiles_per_cta(plan, case, multiprocessors: int) -> float:
    size = GemmSize(case.batch or 1, case.m, case.n, case.k)
    tiles = plan_gemm_schedule(plan, size, multiprocessors).num_tiles
    return tiles * plan.cta_group / multiprocessors


def test_ctas_take_several_tiles(plan) -> None:
    many = [case for case in default_cases(plan) if case.name.startswith("tiles/")]
    multiprocessors = ARCHITECTURES[plan.arch].most_multiprocessors
    assert all(tiles_per_cta(plan, case, multiprocessors) > 2 for case in many)
    emulated = [case for case in emulated_cases(plan) if case.name == "tiles/many"]
    assert all(tiles_per_cta(plan, case, EMULATED) >= 3 for case in emulated)


def test_a_residual_has_cases_of_its_own(make_plan) -> None:
    def names(residual: str) -> set[str]:
        return {case.name for case in default_cases(make_plan(residual=residual))}

    assert {"factor/beta_0_nan", "residual/positions_batch"} <= names("row") - names("none")
    assert {"residual/in_place", "residual/in_place_batch"} <= names("matrix") - names("row")


def test_the_emulators_cases_are_little_work(plan) -> None:
    blocks = sum(
        plan_gemm_schedule(
            plan, GemmSize(case.batch or 1, case.m, case.n, case.k), EMULATED
        ).num_tiles
        * plan.cta_group
        * -(-case.k // plan.BK)
        for case in emulated_cases(plan)
    )
    assert blocks < 130  # of some 10 ms, twice


def test_a_case_in_words(make_plan) -> None:
    cases = {case.name: case for case in default_cases(make_plan(residual="matrix"))}
    text = str(cases["batch/shared_c"])
    assert text == "batch/shared_c: batch 4, m 130, n 136, k 100, normal, shared c"
    assert str(cases["factor/beta_0_nan"]).endswith(", normal, NaN in c, beta 0")
    case = cases["batch/shared_c"]
    assert len(case.row()) == len(case.COLUMNS)
    assert case.data_items()["k"] == 100
