from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.errors import ConfigError

ConfigOf = Callable[..., HopperAttentionConfig]
PlanOf = Callable[..., AttentionPlan]


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"ping_pong": True, "BM": 64},
            "ping_pong",
            "ping_pong needs two consumer warpgroups or more to take turns, got 1",
            "Set ping_pong: false; or BM: 128.",
        ),
        (
            {"epilogue": "tma_store", "overlap_epilogue": True},
            "overlap_epilogue",
            "epilogue: tma_store stages the output in the query slot, which overlap_epilogue has "
            "filled with the next query by then",
            "Set overlap_epilogue: false; or epilogue: direct.",
        ),
        (
            {"depth": 64, "value_depth": 128, "epilogue": "tma_store"},
            "value_depth",
            "epilogue: tma_store stages the output in the query slot, whose 64 columns do not hold "
            "the 128 of value_depth",
            "Set epilogue: direct; or value_depth: auto.",
        ),
        (
            {"overlap": False, "num_pv_chunks_in_flight": 2},
            "num_pv_chunks_in_flight",
            "num_pv_chunks_in_flight: 2 needs overlap: without it, all of P.V is waited for before "
            "the next Q.K",
            "Set overlap: true; or num_pv_chunks_in_flight: 0.",
        ),
        (
            {"BN": 32, "num_pv_chunks_in_flight": 3},
            "num_pv_chunks_in_flight",
            "num_pv_chunks_in_flight: 3, but a block of BN = 32 keys has 32 / 16 = 2 chunks of P.V",
            "Set num_pv_chunks_in_flight: 2; or BN: 48.",
        ),
        (
            {"tile_heads": 4, "cta_group": 2},
            "tile_heads",
            "tile_heads: 4 is for dense batches, masks by the ends of what a row sees, and single "
            "CTAs so far, not with cta_group: 2",
            "Set tile_heads: 1; or cta_group: 1.",
        ),
        (
            {"tile_heads": 2, "batching": "ragged", "mask": "query % 2 == key % 2"},
            "tile_heads",
            "tile_heads: 2 is for dense batches, masks by the ends of what a row sees, and single "
            "CTAs so far, not with batching: ragged, mask: query % 2 == key % 2",
            "Set tile_heads: 1.",
        ),
        (
            {"tile_heads": 8, "score": "score - 0.5 * (query - key)"},
            "tile_heads",
            "tile_heads: 8 is for dense batches, masks by the ends of what a row sees, and single "
            "CTAs so far, not with score: score - 0.5 * (query - key)",
            "Set tile_heads: 1.",
        ),
    ],
)
def test_keys_that_do_not_go_together(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_plan(config_of(**keys))
    [problem] = caught.value.problems
    assert (problem.key, problem.message, problem.remedy) == (key, message, remedy)


def test_all_broken_rules_come_at_once(config_of: ConfigOf) -> None:
    config = config_of(
        BM=64,
        ping_pong=True,
        epilogue="tma_store",
        overlap_epilogue=True,
        overlap=False,
        num_pv_chunks_in_flight=1,
    )
    with pytest.raises(ConfigError) as caught:
        build_plan(config)
    assert [problem.key for problem in caught.value.problems] == [
        "ping_pong",
        "overlap_epilogue",
        "num_pv_chunks_in_flight",
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {"ping_pong": True, "BM": 128},
        {"ping_pong": True, "cta_group": 2, "scheduler": "dynamic"},
        {"epilogue": "tma_store"},
        {"overlap": False, "num_pv_chunks_in_flight": 0},
        {"BN": 32, "num_pv_chunks_in_flight": 2},
        {"depth": 256, "cta_group": 2, "BN": 64, "overlap_epilogue": True},
    ],
)
def test_keys_that_do(plan_of: PlanOf, keys: dict[str, object]) -> None:
    plan = plan_of(**keys)
    assert {key: getattr(plan, key) for key in keys} == keys
