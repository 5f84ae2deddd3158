"""Sums over groups along k in a product on Hopper: what is refused, and what helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.gemm_sm90.test_limits import problems_of

ConfigOf = Callable[..., HopperGemmConfig]
ALONG_K = {"groups": "k_offsets", "a_major": "m", "b_major": "n"}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"a_major": "k"},
            "a_major",
            "a_major: k, but with groups: k_offsets a group begins anywhere along k",
            "Set a_major: m; or groups: null.",
        ),
        ({"b_major": "k"}, "b_major", "b_major: k, but", "Set b_major: n; or groups: null."),
        ({"cta_group": 2}, "cta_group", "reach one CTA", "Set cta_group: 1; or groups: null."),
        ({"split_k": 2}, "split_k", "no k to divide", "Set split_k: 1; or groups: null."),
        ({"ping_pong": True}, "ping_pong", "ping_pong: true, but with groups: k_offsets a "
         "warpgroup would have to count", "Set ping_pong: false; or groups: null."),
        ({"evict_first": "b"}, "evict_first", "no policy for L2",
         "Set evict_first: none; or groups: null."),
        ({"output_in_ring": True, "num_epi_stages": 2}, "output_in_ring", "fills no slot",
         "Set output_in_ring: false; or groups: null."),
        ({"activation": "silu(gate) * up"}, "activation", "those of one matrix",
         "Set activation: null; or groups: null."),
        ({"most_groups": 9}, "most_groups", "any number of them", "Set most_groups: auto"),
        (
            {"dtype": "fp8_e4m3", "a_major": "k", "b_major": "k"},
            "dtype",
            "dtype: fp8_e4m3, but with groups: k_offsets m and n are contiguous, and wgmma takes "
            "fp8 operands only with k contiguous",
            "groups: null",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_with_groups_along_k_is_refused_with_ways_out(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    problem = next(one for one in problems_of(hopper_gemm(**ALONG_K | keys)) if one.key == key)
    assert words in problem.message
    assert remedy in problem.remedy


def test_the_kernel_takes_offsets_and_counts_of_tiles_but_no_list(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**ALONG_K))
    names = {row.name for row in plan.parameters}
    assert {"row_offsets", "row_tiles", "num_tiles"} <= names
    assert "groups" not in names | {region.name for region in plan.shared}
    assert (plan.groups, plan.sums_by_group, plan.most_groups) == (None, True, 0)
