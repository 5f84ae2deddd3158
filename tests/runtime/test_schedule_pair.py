"""Tiles that a pair of CTAs computes together: each takes two of the grid's CTAs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.runtime.schedule import ProblemSize, plan_schedule

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan


def pair_plan(**keys: Any) -> AttentionPlan:
    base = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 512, "cta_group": 2}
    return build_plan(load_mapping({**base, **keys}, "pair").config)


@pytest.mark.parametrize(
    ("rows", "heads", "tiles", "grid"),
    [(1, 1, 1, 2), (128, 1, 1, 2), (129, 1, 2, 4), (128, 66, 1, 132), (2048, 32, 16, 132)],
)
def test_a_tile_takes_two_ctas(rows: int, heads: int, tiles: int, grid: int) -> None:
    schedule = plan_schedule(pair_plan(), ProblemSize(1, heads, 1, rows, rows), 132)
    assert (schedule.tiles_per_head, schedule.num_tiles) == (tiles, tiles * heads)
    assert schedule.grid == grid


def test_an_odd_multiprocessor_stays_idle() -> None:
    assert plan_schedule(pair_plan(), ProblemSize(1, 64, 1, 1024, 1024), 131).grid == 130


def test_a_single_multiprocessor_still_gets_a_pair() -> None:
    assert plan_schedule(pair_plan(), ProblemSize(1, 64, 1, 1024, 1024), 1).grid == 2


def test_groups_of_heads_fit_l2_where_tiles_differ_in_length() -> None:
    size = ProblemSize(8, 4, 1, 2048, 2048)
    assert plan_schedule(pair_plan(mask="causal"), size, 132).heads_per_group == 8
    assert plan_schedule(pair_plan(), size, 132).heads_per_group == 1
