"""The barrier table, its words, and its header."""

from __future__ import annotations

from collections.abc import Callable

from fa4gen.designs.attention_sm100.model import FA4Config

PlanOf = Callable[..., FA4Config]

KEYS = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}


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
