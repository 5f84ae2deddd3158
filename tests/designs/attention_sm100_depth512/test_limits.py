"""Refusals, and that every suggested fix is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.config.load import load_mapping
from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed, faults_of
from fa4gen.errors import ConfigError
from tests.designs.offers import check_offers, offers, problems_of

Strategy = st.SearchStrategy[BlackwellPairAttentionConfig]
ConfigOf = Callable[..., BlackwellPairAttentionConfig]


@settings(max_examples=75)
@given(st.data())
def test_every_offer_removes_its_problem_and_brings_no_other(
    any_config: Strategy, data: st.DataObject
) -> None:
    if not check_offers(data.draw(any_config)):
        reject()


@settings(max_examples=75)
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


@settings(max_examples=50)
@given(st.data())
def test_what_is_left_to_the_plan_always_works(free_config: Strategy, data: st.DataObject) -> None:
    assert faults_of(data.draw(free_config)) == []


def test_a_single_cta_is_refused_by_default(config_of: ConfigOf) -> None:
    keys = config_of().data(only_given=True)
    del keys["cta_group"]
    with pytest.raises(ConfigError) as caught:
        load_mapping(keys, "any")
    [problem] = caught.value.problems
    assert problem.message == "the key cta_group is missing"
    assert problem.remedy.startswith("Add cta_group: 2. At depth 512 ")


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"dtype": "fp8_e4m3", "num_kv_stages": 12},
            "num_kv_stages",
            "num_kv_stages: one warp initialises the barriers, a lane each, and 10 + 2 * 12 = 34 "
            "are more than its 32 lanes",
            "Set num_kv_stages: 11.",
        ),
        (
            {"num_kv_stages": 12},
            "num_kv_stages",
            "num_kv_stages: one warp initialises the barriers, a lane each, and 10 + 2 * 12 = 34 "
            "are more than its 32 lanes",
            "Set num_kv_stages: 4.",
        ),
        (
            {"num_kv_stages": 5},
            "num_kv_stages",
            "shared memory: 65536 (query) + 32768 (probabilities) + 5 * 32768 (kv) + 2816 "
            "(barriers, scale, exchange, tile, tensor_memory, alignment) = 264960 bytes, "
            "232448 available",
            "Set num_kv_stages: 4.",
        ),
        (
            {"registers": {"softmax": 216, "correction": 192, "other": 104}},
            "registers",
            "registers: 128 * (216 for the softmax + 192 for the correction + 104 for the other "
            "warps) = 65536, 64512 available: setmaxnreg would wait for ever",
            "Set registers: auto.",
        ),
        (
            {"registers": {"softmax": 128, "correction": 128, "other": 64}},
            "registers",
            "registers: a softmax thread keeps 128 scores and 2 of row state = 130, but has 128",
            "Set registers: auto.",
        ),
        (
            {"dtype": "fp8_e4m3", "rescale_threshold": 8.9},
            "rescale_threshold",
            "rescale_threshold: probabilities up to 2^8.9 do not fit fp8_e4m3, whose largest "
            "number is 448",
            "Set rescale_threshold: 8.0; or rescale_threshold: auto.",
        ),
    ],
)
def test_the_arithmetic_of_a_refusal(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    config = config_of(**keys)
    [problem] = problems_of(config)
    assert (problem.key, problem.message, problem.remedy) == (key, message, remedy)
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == ()


@pytest.mark.parametrize(
    "keys",
    [
        {"num_kv_stages": 1},
        {"num_kv_stages": 4},
        {"dtype": "fp8_e4m3", "num_kv_stages": 11},
        {"dtype": "fp8_e4m3", "rescale_threshold": 8.8},
        {"rescale_threshold": 9.0},
        {"registers": {"softmax": 216, "correction": 192, "other": 96}},
        {"registers": {"softmax": 184, "correction": 144, "other": 144}},
        {"registers": {"softmax": 136, "correction": 24, "other": 24}},
        {"exp2_fma_share": 1.0},
        {"exp2_fma_share": 0.5, "mask": "key % 2 == 0 and key <= query"},
        {"exp2_fma_share": 0.375, "mask": "key % 2 == 0 and key <= query"},
        {"exp2_fma_share": 1.0, "mask": "key % 4 == 0"},
        {"exp2_fma_share": 1.0, "mask": {"dilated": 2}},
    ],
    ids=str,
)
def test_what_a_compiler_decides_is_accepted(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert problems_of(config_of(**keys)) == ()


def test_all_broken_rules_come_at_once(config_of: ConfigOf) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(cta_group=1, BN=128, num_qk_stages=12, dtype="fp8_e4m3")
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"cta_group", "BN", "num_qk_stages"}
    problems = problems_of(config_of(num_kv_stages=12, rescale_threshold=9.0, dtype="fp8_e4m3"))
    assert [problem.key for problem in problems] == ["num_kv_stages", "rescale_threshold"]
