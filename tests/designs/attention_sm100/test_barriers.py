"""The barrier table, its words, and its header."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.build import build_plan
from fa4gen.render.render import render

PlanOf = Callable[..., FA4Config]

CONSTANT = re.compile(r"\b(k\w+) = (\d+),")
KEYS = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}


@pytest.mark.parametrize(
    "keys",
    [{}, {"cta_group": 2}, {"depth": 256}, {"dtype": "fp8_e4m3"}, {"kv_ring": "separate"}],
    ids=str,
)
def test_the_header_is_the_table(keys: dict[str, object]) -> None:
    loaded = load_mapping({**KEYS, **keys}, "header")
    plan = build_plan(loaded.config)
    header = render(plan, loaded).headers["header_barriers.h"]
    constants = {name: int(value) for name, value in CONSTANT.findall(header)}
    for row in plan.barriers:
        assert constants.pop(row.constant) == row.offset
        assert constants.pop(f"{row.constant}Slots", 1) == row.slots
        assert constants.pop(f"{row.constant}Arrivals") == row.arrivals
    for place in plan.tensor_memory:
        name = "k" + "".join(word.capitalize() for word in place.name.split("_"))
        assert constants.pop(f"{name}Column") == place.column
    assert constants.pop("kTensorMemoryColumns") == plan.tensor_memory_columns
    assert constants == {}
    assert f"// {sum(row.slots for row in plan.barriers)} barriers of eight bytes." in header


def test_the_rows_of_the_published_kernel(plan_of: PlanOf) -> None:
    plan = plan_of(kv_ring="separate")
    assert [(row.name, row.slots, row.arrivals) for row in plan.barriers] == [
        ("query_full", 4, 1),  # two tiles in two parts of the depth
        ("query_empty", 2, 1),
        ("key_full", 4, 1),  # two stages in two parts
        ("key_empty", 4, 1),
        ("value_full", 2, 1),
        ("value_empty", 2, 1),
        ("scores_full", 2, 1),
        ("probabilities_full", 4, 128),
        ("scale_full", 2, 128),
        ("scale_empty", 2, 128),
        ("output_full", 2, 1),
        ("output_ready", 2, 128),
        ("tile_full", 2, 1),
        ("tile_empty", 2, 13),
    ]


def test_scores_over_probabilities_have_the_mma_warp_wait_for_its_own_products(
    plan_of: PlanOf,
) -> None:
    over = plan_of().barrier("output_full").waited_by
    assert over == "the correction; the MMA warp, before scores go where P was read"
    assert plan_of(depth=64).barrier("output_full").waited_by == "the correction"


def test_the_words_of_a_pair(plan_of: PlanOf) -> None:
    pair = plan_of(cta_group=2, scheduler="dynamic")
    assert pair.barrier("key_full").arrived_by.endswith("half of them the peer's")
    assert pair.barrier("key_full").cta == "leader"
    assert pair.barrier("key_empty").arrive_how == "multicast_commit"
    assert pair.barrier("probabilities_full").arrivals == 256
    assert pair.barrier("scale_full").arrivals == 128
    assert pair.barrier("tile_full").cta == "pair"
    assert (pair.barrier("tile_empty").cta, pair.barrier("tile_empty").arrivals) == ("leader", 27)
    alone = plan_of()
    assert {row.cta for row in alone.barriers} == {"own"}
    words = "".join(row.arrived_by + row.waited_by for row in alone.barriers)
    assert "peer" not in words
    assert "both" not in words
    static = plan_of(cta_group=2, scheduler="static").barrier("tile_empty")
    assert (static.cta, static.arrivals) == ("own", 13)
