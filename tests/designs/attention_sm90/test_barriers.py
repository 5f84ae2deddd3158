"""The barrier table against the kernel that is rendered from it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.shared.attention_model import AttentionPlan
from fa4gen.render.render import render

PlanOf = Callable[..., AttentionPlan]

ARRIVE = re.compile(r"mbarrier_arrive(_remote)?_slot_if<(\w+)>\(.*threadIdx\.x % (\d+) == 0\);")


@pytest.mark.parametrize("epilogue", ["direct", "tma_store"])
@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("warpgroups", [1, 3])
def test_as_many_arrive_in_the_code_as_the_table_says(
    epilogue: str, cta_group: int, warpgroups: int
) -> None:
    keys = {
        "kernel": "attention",
        "arch": "sm_90a",
        "dtype": "bf16",
        "depth": 64,
        "epilogue": epilogue,
        "cta_group": cta_group,
        "num_consumer_warpgroups": warpgroups,
        "scheduler": "static",
    }
    loaded = load_mapping(keys, "arrivals")
    plan = build_plan(loaded.config)
    arrivals: dict[str, int] = {}
    for _, constant, one_of in ARRIVE.findall(render(plan, loaded).source):
        of_a_warpgroup = 128 // int(one_of)
        # A query slot belongs to one warpgroup; the other slots are released by all.
        releasing = 1 if constant == "kQueryEmpty" else warpgroups
        arrivals[constant] = arrivals.get(constant, 0) + of_a_warpgroup * releasing
    assert arrivals == {
        row.constant: row.arrivals for row in plan.barriers if row.name.endswith("_empty")
    }


def test_the_words_of_a_pair(plan_of: PlanOf) -> None:
    pair = plan_of(cta_group=2, scheduler="dynamic")
    assert pair.barrier("key_full").arrived_by.endswith("half of them from the peer")
    assert pair.barrier("key_empty").cta == "pair"
    assert pair.barrier("tile_empty").cta == "leader"
    assert pair.barrier("tile_full").waited_by == "every consumer, the peer's loader"
    alone = plan_of()
    assert {row.cta for row in alone.barriers} == {"own"}
    assert "peer" not in "".join(row.arrived_by + row.waited_by for row in alone.barriers)
    static = plan_of(cta_group=2, scheduler="static")
    assert static.barrier("tile_empty").cta == "own"
