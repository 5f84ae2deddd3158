"""Refusals, and that every suggested fix is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from tests.designs.offers import check_offers, offers, problems_of

Strategy = st.SearchStrategy[HopperAttentionConfig]
ConfigOf = Callable[..., HopperAttentionConfig]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_offer_removes_its_problem_and_brings_no_other(
    any_config: Strategy, data: st.DataObject
) -> None:
    if not check_offers(data.draw(any_config)):
        reject()


@pytest.mark.parametrize("registers", [{}, *({"producer": 56, "consumer": n} for n in (80, 152))])
@pytest.mark.parametrize("more", [{}, {"BN": 16}, {"num_kv_stages": 2}], ids=str)
def test_offers_where_chunks_in_flight_take_turns(
    registers: dict[str, int], more: dict[str, object], config_of: ConfigOf
) -> None:
    """Random configs found an offer here once that did not remove its problem."""
    assert check_offers(
        config_of(
            depth=192,
            mask="causal",
            softcap=1.0,
            BM=192,
            num_pv_chunks_in_flight=7,
            ping_pong=True,
            **({"registers": registers} if registers else {}),
            **more,
        )
    )


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_who_follows_the_first_offers_ends_with_a_plan(
    any_config: Strategy, data: st.DataObject
) -> None:
    config = data.draw(any_config)
    for _ in range(len(problems_of(config))):
        problems = problems_of(config)
        if problems:
            config = changed(config, offers(problems[0])[0])
    assert build_plan(config)


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"num_kv_stages": 4},
            "num_kv_stages",
            "shared memory: 3 * 16384 (query) + 4 * 24576 (key) + 4 * 24576 (value) + "
            "1264 (barriers, tile, alignment) = 247024 bytes, 232448 available",
            "Set num_kv_stages: 3; or BN: 80; or BM: 128.",
        ),
        (
            {"depth": 96, "BM": 64, "BN": 240, "num_kv_stages": 4},
            "num_kv_stages",
            "shared memory: 12288 (query) + 4 * 46080 (key) + 4 * 46080 (value) + "
            "1232 (barriers, tile, alignment) = 382160 bytes, 232448 available",
            "Set num_kv_stages: 2; or BN: 128.",
        ),
        (
            {"depth": 192, "value_depth": 128, "num_kv_stages": 3},
            "num_kv_stages",
            "shared memory: 3 * 24576 (query) + 3 * 36864 (key) + 3 * 24576 (value) + "
            "1232 (barriers, tile, alignment) = 259280 bytes, 232448 available",
            "Set num_kv_stages: 2; or BN: 80; or BM: 64.",
        ),
        (
            {"registers": {"producer": 32, "consumer": 168}},
            "registers",
            "registers: 128 * (32 + 3 * 168) = 68608 for all roles, but the launch has 65536",
            "Set registers: {producer: 32, consumer: 160}; or registers: auto.",
        ),
        (
            {"registers": {"producer": 136, "consumer": 120}},
            "registers",
            "registers: the launch gives every thread 128, of which the producer can only give up "
            "some (got 136) and a consumer only take more (got 120)",
            "Set registers: {producer: 128, consumer: 128}; or registers: auto.",
        ),
        (
            {"BN": 176, "num_pv_chunks_in_flight": 2},
            "BN",
            "registers: a consumer thread holds 128 / 2 of output + 176 / 2 of scores + 4 * 2 of "
            "probabilities in flight + 4 of row state = 164, but has 160",
            "Set BN: auto; or num_pv_chunks_in_flight: auto.",
        ),
        (
            {"depth": 256, "BN": 48, "BM": 192},
            "BM",
            "registers: the wgmma of P.V, 64 x 256 (depth), takes 256 / 2 + 30 = 158, but ptxas "
            "compiles it for the 128 that each of 512 threads has at launch",
            "Set BM: 128.",
        ),
    ],
)
def test_the_arithmetic_of_a_refusal(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    problems = problems_of(config_of(**keys))
    assert (key, message, remedy) in [(p.key, p.message, p.remedy) for p in problems]
    assert len(problems) == 1 or "wgmma" in message


@pytest.mark.parametrize(
    "keys",
    [
        {"num_kv_stages": 3},
        {"depth": 256, "BM": 128, "BN": 96, "num_pv_chunks_in_flight": 1},
        {"BN": 112, "BM": 192, "overlap": False},
        {"depth": 64, "BN": 176, "BM": 192, "overlap": False},
        {"registers": {"producer": 24, "consumer": 160}},
        {"BN": 96, "num_pv_chunks_in_flight": 3},
        {"depth": 64, "BN": 144, "BM": 192, "mask": {"sliding_window": 1024}},
        {"depth": 192, "BM": 192},
        {"depth": 256, "cta_group": 2, "mask": {"sliding_window": 100}},
        {"depth": 192, "softcap": 30.0, "mask": {"sliding_window": 9}, "overlap_epilogue": True},
    ],
)
def test_what_compiles_is_accepted(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert problems_of(config_of(**keys)) == ()


def test_the_narrowest_block_is_offered_too(config_of: ConfigOf) -> None:
    [problem] = problems_of(config_of(num_kv_stages=16))
    assert offers(problem) == [{"num_kv_stages": 3}, {"BN": 16}]


def test_several_keys_change_only_where_one_is_not_enough(config_of: ConfigOf) -> None:
    config = config_of(depth=256, BN=208, num_kv_stages=16, num_pv_chunks_in_flight=0)
    problem = problems_of(config)[0]
    assert offers(problem) == [{"num_kv_stages": 2, "BN": 80}]
