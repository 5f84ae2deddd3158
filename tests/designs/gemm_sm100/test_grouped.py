"""Groups of rows on Blackwell: what is refused with them, and what the plan holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

ATOMS = {"dtype": "fp8_e4m3", "scales": "mxfp8"}


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        (
            {"groups": "offsets", "scheduler": "dynamic"},
            "scheduler: dynamic, but with groups: offsets the launch does not know how many tiles "
            "there are",
            "Set scheduler: static; or groups: null.",
        ),
        (
            {"groups": "k_offsets"},
            "groups: k_offsets, but sums over the rows of groups are made for Hopper",
            "Set groups: null.",
        ),
        (
            {"most_groups": 9},
            "most_groups: 9, which is for products with groups",
            "Set most_groups: auto; or groups: offsets.",
        ),
        (
            {"groups": "offsets", "a_major": "m"},
            "a_major: m, but with groups: offsets a group begins at any row, and where rows of A "
            "are contiguous TMA only begins at every 16 bytes",
            "Set a_major: k; or groups: masked; or groups: null.",
        ),
    ],
)
def test_a_refusal_says_what_helps(
    config_of: Callable[..., Any], keys: dict[str, Any], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_plan(config_of(**keys))
    (problem,) = caught.value.problems
    assert (problem.message, problem.remedy) == (message, remedy)


@pytest.mark.parametrize(
    ("keys", "listed"),
    [
        ({"groups": "offsets"}, False),
        ({"groups": "offsets", **ATOMS, "cta_group": 1}, False),
        ({"groups": "offsets", **ATOMS, "cta_group": 2}, True),
        ({"groups": "offsets", **ATOMS, "scale_order": "row_major"}, False),
        ({"groups": "masked", **ATOMS, "cta_group": 2}, False),
        ({"groups": "offsets", "output_scales": "mxfp8", "output_scale_order": "arranged"}, True),
    ],
)
def test_atoms_before_a_group_are_listed_where_a_tile_has_several(
    plan_of: Callable[..., Any], keys: dict[str, Any], listed: bool
) -> None:
    plan = plan_of(**keys)
    sizes = {region.name: region.bytes for region in plan.shared}
    assert sizes["groups"] == 8 * (plan.most_groups + 1)
    assert sizes.get("group_atoms") == (4 * plan.most_groups if listed else None)


def test_the_list_of_groups_costs_no_slot_of_a_and_b(plan_of: Callable[..., Any]) -> None:
    assert plan_of(groups="masked").num_stages == plan_of().num_stages
