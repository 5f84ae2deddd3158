from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.attention_config import AttentionKeys
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

ConfigOf = Callable[..., AttentionKeys]
DEPTH = {"depth": 512, "cta_group": 2}
BIAS = {"bias": {"dtype": "fp32", "shape": ["batch", "rows"]}}
SLOPE = {"slope": {"dtype": "fp32", "shape": ["query_heads"]}}


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        ({"cta_group": 1}, "cta_group: 1 is not possible; it must be 2", "At depth 512"),
        ({"BM": 64}, "depth 512 needs BM: 128, got 64", "Set BM: auto, or"),
        ({"BN": 64}, "depth 512 needs BN: 128, got 64", "Set BN: auto, or"),
        ({"num_kv_stages": 2}, "depth 512 needs num_kv_stages: 8, got 2", "num_kv_stages: auto"),
        ({"overlap": False}, "depth 512 needs overlap: true, got false", "Set overlap: true, or"),
        ({"ping_pong": True}, "depth 512 needs ping_pong: false, got true", "ping_pong: auto"),
        (
            {"overlap_epilogue": False},
            "depth 512 needs overlap_epilogue: true, got false",
            "overlap_epilogue: auto",
        ),
        ({"epilogue": "tma_store"}, "depth 512 needs epilogue: direct", "Set epilogue: auto, or"),
        (
            {"num_pv_chunks_in_flight": 2},
            "depth 512 needs num_pv_chunks_in_flight: 0, got 2",
            "num_pv_chunks_in_flight: auto",
        ),
        (
            {"registers": {"producer": 40, "consumer": 240}},
            "128 * (40 + 2 * 240) = 66560 for all roles, but the launch has 64512",
            "Set registers: {producer: 40, consumer: 232}; or registers: auto.",
        ),
        (
            {"registers": {"producer": 24, "consumer": 160}},
            "a consumer only take more (got 160)",
            "or registers: auto.",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_suggested_fix(
    config_of: ConfigOf, keys: dict[str, object], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        build_plan(config_of(**{**DEPTH, **keys}))
    [problem, *_] = raised.value.problems
    assert problem.key == next(iter(keys))
    assert message in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    "keys",
    [
        {"BM": 128, "BN": 128, "num_kv_stages": 8},
        {"ping_pong": False, "overlap_epilogue": True, "epilogue": "direct"},
        {"num_pv_chunks_in_flight": 0, "rescale_threshold": 0.0},
        {"registers": {"producer": 40, "consumer": 232}},
        {"mask": {"chunked": 4096}, "softcap": 9.0},
        {"mask": {"sliding_window": 64}, "key_lengths": True, "sinks": True},
        {"score": "score + bias[batch, query]", "parameters": BIAS, "sinks": True},
        {"score": "score - slope[head] * abs(query - key)", "parameters": SLOPE},
    ],
)
def test_the_values_that_work_may_be_written_down(
    plan_of: Callable[..., AttentionPlan], keys: dict[str, object]
) -> None:
    assert plan_of(**DEPTH, **keys).depth == 512


def test_several_faults_are_told_at_once(config_of: ConfigOf) -> None:
    with pytest.raises(ConfigError) as raised:
        build_plan(config_of(depth=512, BN=64, ping_pong=True))
    assert {problem.key for problem in raised.value.problems} == {"cta_group", "BN", "ping_pong"}
