"""The barrier table against the kernel that is rendered from it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.render.render import render

PlanOf = Callable[..., AttentionPlan]

RELEASE = re.compile(r"void release\(const SlotRing& ring\) const \{.*?\n  \}", re.DOTALL)
ARRIVE = re.compile(r"(\S+)\.release(?:_remote)?_if\(threadIdx\.x % (\d+) == 0\);")


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
        "BM": 64 * warpgroups,
        "scheduler": "static",
    }
    loaded = load_mapping(keys, "arrivals")
    plan = build_plan(loaded.config)
    source = render(plan, loaded).source
    (release,) = RELEASE.findall(source)
    assert "release(keys());" in source
    assert "release(values());" in source
    arrivals = dict.fromkeys(("kQueryEmpty", "kKeyEmpty", "kValueEmpty", "kTileEmpty"), 0)
    for ring, one_of in ARRIVE.findall(source.replace(release, "")):
        # A query slot belongs to one warpgroup; the other slots are released by all.
        name, releasing = ("kQueryEmpty", 1) if ring == "queries()" else ("kTileEmpty", warpgroups)
        arrivals[name] += 128 // int(one_of) * releasing
    for _, one_of in ARRIVE.findall(release):
        for name in ("kKeyEmpty", "kValueEmpty"):
            arrivals[name] += 128 // int(one_of) * warpgroups
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
