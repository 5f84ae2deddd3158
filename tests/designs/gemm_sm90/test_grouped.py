"""Groups of rows in a product on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.gemm_sm90.test_limits import problems_of

ConfigOf = Callable[..., HopperGemmConfig]


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"most_groups": 9},
            "most_groups",
            "most_groups: 9, which is for products with groups",
            "Set most_groups: auto; or groups: offsets.",
        ),
        (
            {"groups": "offsets", "a_major": "m"},
            "a_major",
            "a group begins at any row, and where rows of A are contiguous TMA only begins at every"
            " 16 bytes",
            "Set a_major: k; or groups: masked; or groups: null.",
        ),
        (
            {"groups": "offsets", "residual": "column", "most_groups": 9},
            "residual",
            "where a C of one column is contiguous",
            "Set residual: none; or groups: masked; or groups: null and most_groups: auto.",
        ),
    ],
)
def test_what_does_not_go_with_groups_is_refused_with_ways_out(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    problem = next(one for one in problems_of(hopper_gemm(**keys)) if one.key == key)
    assert words in problem.message
    assert problem.remedy == remedy


@pytest.mark.parametrize(
    ("keys", "most"),
    [
        ({}, 512),
        ({"num_epi_stages": 2}, 128),  # four slots of A and B, and 2 KB
        ({"num_epi_stages": 2, "num_stages": 3}, 512),
        ({"most_groups": 77}, 77),
    ],
)
def test_the_list_of_groups_costs_no_slot_of_a_and_b(
    hopper_gemm: ConfigOf, keys: dict[str, Any], most: int
) -> None:
    plan = build_plan(hopper_gemm(groups="offsets", **keys))
    assert plan.most_groups == most
    assert plan.region("groups").bytes == 8 * (most + 1)
    assert plan.num_stages == build_plan(hopper_gemm(**keys | {"most_groups": "auto"})).num_stages


def test_a_plan_without_groups_has_no_list_of_them(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm())
    assert (plan.groups, plan.most_groups) == (None, 0)
    assert "groups" not in {region.name for region in plan.shared}


@pytest.mark.parametrize("groups", ["offsets", "masked"])
def test_the_kernel_takes_the_rows_of_groups(hopper_gemm: ConfigOf, groups: str) -> None:
    names = [row.name for row in build_plan(hopper_gemm(groups=groups)).parameters]
    assert {"offsets": "row_offsets", "masked": "row_counts"}[groups] in names
    assert "groups" in names
    assert not {"row_tiles", "num_tiles"} & {*names}
