"""What is refused, and that every suggested fix is one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.config.schema import AttentionConfig
from fa4gen.designs.attention_sm90.plan import find_faults
from fa4gen.designs.build import build_plan
from fa4gen.designs.shared.refusal import changed
from fa4gen.errors import ConfigError, Problem

Strategy = st.SearchStrategy[AttentionConfig]
ConfigOf = Callable[..., AttentionConfig]

PAIR = re.compile(r"(\w+): (\{[^}]*\}|\w+)")


def problems_of(config: AttentionConfig) -> tuple[Problem, ...]:
    try:
        build_plan(config)
    except ConfigError as error:
        return error.problems
    return ()


def offers(problem: Problem) -> list[dict[str, object]]:
    """The alternatives of a remedy, as the YAML that it tells to write."""
    text = problem.remedy.removeprefix("Set ").removesuffix(".")
    return [
        {key: yaml.safe_load(value) for key, value in PAIR.findall(words)}
        for words in text.split("; or ")
    ]


def check_offers(config: AttentionConfig) -> bool:
    """Every offer removes its problem and brings no other; whether there are problems."""
    problems = problems_of(config)
    faults = find_faults(config)
    kinds = {fault.kind for fault in faults}
    assert len(kinds) == len(faults) == len(problems)
    for problem, fault in zip(problems, faults, strict=True):
        assert problem.message == fault.message
        assert problem.key in AttentionConfig.model_fields
        assert problem.key in config.model_fields_set
        for offer in offers(problem):
            assert offer
            after = find_faults(changed(config, offer))
            assert {left.kind for left in after} <= kinds - {fault.kind}, offer
    return bool(problems)


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
            num_consumer_warpgroups=3,
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
            "shared memory: 3 * 16384 for queries + 4 * 2 * 24576 for stages of keys and values "
            "+ 1264 for barriers, tiles and alignment = 247024 bytes, 232448 available",
            "Set num_kv_stages: 3; or BN: 80; or num_consumer_warpgroups: 2.",
        ),
        (
            {"depth": 96, "BM": 64, "BN": 240, "num_kv_stages": 4},
            "num_kv_stages",
            "shared memory: 1 * 12288 for queries + 4 * 2 * 46080 for stages of keys and values "
            "+ 1232 for barriers, tiles and alignment = 382160 bytes, 232448 available",
            "Set num_kv_stages: 2; or BN: 128.",
        ),
        (
            {"depth": 192, "value_depth": 128, "num_kv_stages": 3},
            "num_kv_stages",
            "shared memory: 3 * 24576 for queries + 3 * (36864 + 24576) for stages of keys and "
            "values + 1232 for barriers, tiles and alignment = 259280 bytes, 232448 available",
            "Set num_kv_stages: 2; or BN: 80; or num_consumer_warpgroups: 1.",
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
            "probabilities in flight + 54 of row state, masks, conversions and addresses = 214, "
            "but has 160",
            "Set BN: 96; or num_consumer_warpgroups: 2.",
        ),
        (
            {"BN": 96, "num_pv_chunks_in_flight": 4},
            "BN",
            "registers: a consumer thread holds 128 / 2 of output + 96 / 2 of scores + 4 * 4 of "
            "probabilities in flight + 36 of row state, masks, conversions and addresses = 164, "
            "but has 160",
            "Set BN: 80; or num_pv_chunks_in_flight: 3; or num_consumer_warpgroups: 2.",
        ),
        (
            {
                "cta_group": 2,
                "num_consumer_warpgroups": 2,
                "registers": {"producer": 24, "consumer": 240},
            },
            "registers",
            "registers: the loader needs 32 registers, but has 24",
            "Set registers: {producer: 32, consumer: 232}; or registers: auto.",
        ),
        (
            {"BN": 112},
            "BN",
            "registers: a consumer thread holds 128 / 2 of output + 112 / 2 of scores + 42 of its "
            "softmax, row state, masks and addresses = 162, but has 160",
            "Set BN: 96; or overlap: false; or num_consumer_warpgroups: 2.",
        ),
        (
            {"depth": 64, "BN": 208, "BM": 192},
            "BN",
            "registers: the wgmma of Q.K, 64 x 208 (BN), takes 208 / 2 + 26 = 130, but ptxas "
            "compiles it for the 128 that each of 512 threads has at launch",
            "Set BN: 144; or BM: 128.",
        ),
        (
            {"depth": 256, "num_consumer_warpgroups": 3},
            "num_consumer_warpgroups",
            "registers: the wgmma of P.V, 64 x 256 (depth), takes 256 / 2 + 30 = 158, but ptxas "
            "compiles it for the 128 that each of 512 threads has at launch",
            "Set num_consumer_warpgroups: 2.",
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
        {"depth": 192, "num_consumer_warpgroups": 3},
        {"depth": 256, "cta_group": 2, "mask": {"sliding_window": 100}},
        {"depth": 192, "softcap": 30.0, "mask": {"sliding_window": 9}, "overlap_epilogue": True},
    ],
)
def test_what_compiles_is_accepted(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert problems_of(config_of(**keys)) == ()


WINDOW = {"sliding_window": 1024}
ALIBI = {
    "parameters": {"slope": {"dtype": "fp32", "shape": ["query_heads"]}},
    "score": "score - slope[head] * abs(query - key)",
}
NARROW = {"depth": 192, "value_depth": 96, "BM": 128, "overlap_epilogue": True, "mask": WINDOW}


@pytest.mark.parametrize(
    ("clean", "spills"),
    [
        ({"depth": 64, "BM": 192, "BN": 144}, {"BN": 160}),
        ({"depth": 96, "BM": 128, "BN": 240, "mask": WINDOW}, {"cta_group": 2}),
        ({"depth": 96, "BM": 192, "BN": 128}, {"BN": 144}),
        ({"depth": 96, "BM": 192, "BN": 128}, {"num_pv_chunks_in_flight": 0}),
        ({"BM": 128, "BN": 208, "cta_group": 2}, {"BN": 224, "cta_group": 1}),
        ({"BM": 128, "BN": 224, "mask": "causal"}, {"mask": WINDOW}),
        ({"depth": 192, "BM": 128, "BN": 144, "cta_group": 2, "mask": "causal"}, {"BN": 160}),
        ({"depth": 192, "BM": 128, "BN": 160}, {"cta_group": 2}),
        ({"depth": 256, "BM": 128, "BN": 96, "mask": WINDOW}, {"cta_group": 2}),
        ({"mask": "causal", "BN": 96}, ALIBI),  # spilled 68 bytes
        ({**NARROW, "cta_group": 2, "BN": 160}, {"BN": 208}),
        ({"depth": 256, "value_depth": 64, "BM": 128, "BN": 208, "cta_group": 2}, {"BN": 240}),
        (
            {"registers": {"producer": 56, "consumer": 152}, "mask": WINDOW, "BN": 96},
            {"epilogue": "tma_store"},
        ),
    ],
    ids=str,
)
def test_tiles_at_the_edge_of_the_registers(
    config_of: ConfigOf, clean: dict[str, object], spills: dict[str, object]
) -> None:
    assert problems_of(config_of(**clean)) == ()
    problem = problems_of(config_of(**{**clean, **spills}))[0]
    assert problem.message.startswith("registers: a consumer thread holds")
    assert any("BN" in offer for offer in offers(problem))


@pytest.mark.parametrize(
    "keys",
    [
        {"mask": {"chunked": 4096}, **ALIBI},
        {
            "registers": {"producer": 56, "consumer": 152},
            "mask": {"chunked": 6194},
            "epilogue": "tma_store",
        },
    ],
)
def test_auto_takes_a_block_that_compiles(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert build_plan(config_of(**keys)).BN == 80


def test_auto_takes_a_narrower_block_where_no_chunk_is_in_flight(config_of: ConfigOf) -> None:
    assert build_plan(config_of(depth=96)).BN == 128
    assert build_plan(config_of(depth=96, num_pv_chunks_in_flight=0)).BN == 112


def test_a_block_too_wide_for_the_chunks_asked_for_takes_them_along(config_of: ConfigOf) -> None:
    problems = problems_of(config_of(depth=256, BN=256, num_pv_chunks_in_flight=16))
    assert [offers(problem)[0] for problem in problems] == [
        {"BN": 80, "num_pv_chunks_in_flight": 5}
    ] * 2


def test_the_narrowest_block_is_offered_too(config_of: ConfigOf) -> None:
    [problem] = problems_of(config_of(num_kv_stages=16))
    assert offers(problem) == [{"num_kv_stages": 3}, {"BN": 16}]


def test_chunks_that_a_rule_refuses_take_no_registers(config_of: ConfigOf) -> None:
    [problem] = problems_of(config_of(BN=96, overlap=False, num_pv_chunks_in_flight=4))
    assert "needs overlap" in problem.message
    # With overlap they would: it is offered only with fewer chunks.
    assert offers(problem) == [
        {"overlap": True, "num_pv_chunks_in_flight": "auto"},
        {"num_pv_chunks_in_flight": 0},
    ]


def test_several_keys_change_only_where_one_is_not_enough(config_of: ConfigOf) -> None:
    config = config_of(depth=256, BN=208, num_kv_stages=16, num_pv_chunks_in_flight=0)
    problem = problems_of(config)[0]
    assert offers(problem) == [{"num_kv_stages": 2, "BN": 80}]


def test_a_block_may_be_offered_where_the_one_decided_is_the_narrowest(
    config_of: ConfigOf,
) -> None:
    config = config_of(
        depth=256,
        mask={"sliding_window": 1024},
        num_consumer_warpgroups=3,
        num_pv_chunks_in_flight=6,
        ping_pong=True,
        registers={"producer": 56, "consumer": 80},
    )
    remedies = [problem.remedy for problem in problems_of(config)]
    assert "Set registers: auto, num_consumer_warpgroups: 2 and BN: 64." in remedies


def test_a_remedy_is_offered_with_those_of_what_it_brings(config_of: ConfigOf) -> None:
    """Without the staged output the next tile's queries overlap, for which the block is too wide.

    A random config found no offer here once.
    """
    config = config_of(
        depth=64,
        value_depth=192,
        mask={"sliding_window": 1},
        BN=160,
        epilogue="tma_store",
    )
    assert check_offers(config)
    [problem] = problems_of(config)
    assert "64 columns do not hold the 192 of value_depth" in problem.message
    assert offers(problem) == [{"epilogue": "direct", "BN": 144}]
    assert build_plan(changed(config, offers(problem)[0]))
