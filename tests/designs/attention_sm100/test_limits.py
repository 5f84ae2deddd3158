"""Refusals, and that every suggested fix is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
from fa4gen.designs.attention_sm100.limits import DECIDED_TOGETHER, back_to_auto
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed, faults_of
from tests.designs.offers import check_offers, offers, problems_of

Strategy = st.SearchStrategy[BlackwellAttentionConfig]
ConfigOf = Callable[..., BlackwellAttentionConfig]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_offer_removes_its_problem_and_brings_no_other(
    any_config: Strategy, data: st.DataObject
) -> None:
    if not check_offers(data.draw(any_config)):
        reject()


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


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3"])
@pytest.mark.parametrize("value_depth", [64, 96, 128, 192, 256])
@pytest.mark.parametrize("depth", [64, 96, 128, 192, 256])
def test_what_is_left_to_the_plan_always_works(
    config_of: ConfigOf, depth: int, value_depth: int, dtype: str
) -> None:
    for cta_group in (1, 2):
        config = config_of(depth=depth, value_depth=value_depth, dtype=dtype, cta_group=cta_group)
        kinds = [fault.kind for fault in faults_of(config)]
        unsplittable = (dtype, value_depth, cta_group) == ("fp8_e4m3", 96, 2)
        assert kinds == (["half of the values"] if unsplittable else [])


def test_fewest_keys_go_back_to_auto_first(config_of: ConfigOf) -> None:
    ways = list(back_to_auto(config_of(BN=64, num_kv_stages=2, registers="auto")))
    assert ways == [
        {"num_kv_stages": "auto"},
        {"BN": "auto"},
        {"num_kv_stages": "auto", "BN": "auto"},
    ]
    assert set(DECIDED_TOGETHER) <= set(BlackwellAttentionConfig.model_fields)


@pytest.mark.parametrize(
    ("keys", "key", "message", "remedy"),
    [
        (
            {"BN": 160},
            "BN",
            "tensor memory: 2 * 160 columns for scores + 2 * 128 for outputs = 576, 512 available",
            "Set BN: 128; or BM: 128.",
        ),
        (
            {"depth": 256, "BM": 256},
            "BM",
            "tensor memory: 2 * 32 columns for scores + 2 * 256 for outputs = 576, 512 available",
            "Set BM: 128.",
        ),
        (
            {"depth": 64, "value_depth": 256, "BN": 160, "BM": 128},
            "BN",
            "tensor memory: 2 * 160 columns for scores + 1 * 256 for outputs = 576, 512 available",
            "Set BN: 128.",
        ),
        (
            {"BN": 128, "num_kv_stages": 3, "kv_ring": "separate"},
            "num_kv_stages",
            "shared memory: 2 * 32768 (query) + 3 * 32768 (key) + 3 * 32768 (value) + 2432 "
            "(barriers, scale, tile, tensor_memory, alignment) = 264576 bytes, 232448 available",
            "Set num_kv_stages: 2; or BN: 96; or BM: 128.",
        ),
        (
            {"BN": 128, "num_kv_stages": 6, "kv_ring": "fused"},
            "num_kv_stages",
            "shared memory: 2 * 32768 (query) + 6 * 32768 (kv) + 2368 (barriers, scale, tile, "
            "tensor_memory, alignment) = 264512 bytes, 232448 available",
            "Set num_kv_stages: 5; or BN: 96; or BM: 128.",
        ),
        (
            {"registers": {"softmax": 200, "correction": 80, "other": 48}},
            "registers",
            "registers: 128 * (2 * 200 for the softmax + 80 for the correction + 48 for the other "
            "warps) = 67584, 65536 available: setmaxnreg would wait for ever",
            "Set registers: auto.",
        ),
        (
            {"BM": 128, "registers": {"softmax": 240, "correction": 200, "other": 120}},
            "registers",
            "registers: 128 * (240 for the softmax + 200 for the correction + 120 for the "
            "other warps) = 71680, 64512 available: setmaxnreg would wait for ever",
            "Set registers: auto.",
        ),
        (
            {"depth": 64, "BN": 192, "registers": {"softmax": 192, "correction": 80, "other": 48}},
            "BN",
            "registers: a softmax thread keeps the 192 scores of a row and 2 of row state = 194, "
            "but has 192",
            "Set BN: auto; or registers: auto.",
        ),
        (
            {"depth": 64, "BN": 192, "registers": {"softmax": 128, "correction": 80, "other": 48}},
            "BN",
            "registers: a softmax thread keeps the 192 scores of a row and 2 of row state = 194, "
            "but has 128",
            "Set BN: auto; or registers: auto.",
        ),
        (
            {"registers": {"softmax": 32, "correction": 80, "other": 48}},
            "registers",
            "registers: a softmax thread keeps the 32 scores of a row and 2 of row state = 34, "
            "but has 32",
            "Set registers: auto.",
        ),
    ],
)
def test_the_arithmetic_of_a_refusal(
    config_of: ConfigOf, keys: dict[str, object], key: str, message: str, remedy: str
) -> None:
    [problem] = problems_of(config_of(**keys))
    assert (problem.key, problem.message, problem.remedy) == (key, message, remedy)


@pytest.mark.parametrize(
    "keys",
    [
        {"BN": 128},
        {"num_kv_stages": 2, "kv_ring": "separate"},
        {"num_kv_stages": 5, "kv_ring": "fused"},
        {"BM": 128, "BN": 160},
        {"BM": 128, "BN": 192, "registers": {"softmax": 224, "correction": 152, "other": 120}},
        {"depth": 64, "BN": 160},
        {"depth": 64, "BN": 160, "registers": {"softmax": 208, "correction": 56, "other": 40}},
        {"registers": {"softmax": 128, "correction": 80, "other": 48}},
        {"exp2_fma_share": 1.0, "mask": {"sliding_window": 9}, "softcap": 30.0},
        {"depth": 64, "BM": 128, "BN": 192, "registers": {
            "softmax": 240, "correction": 128, "other": 120}},
        {"depth": 192, "output_staging": "own"},
        {"BN": 96, "num_kv_stages": 6, "kv_ring": "fused"},
        {"registers": {"softmax": 192, "correction": 64, "other": 64}},
        {"registers": {"softmax": 144, "correction": 112, "other": 112}},
        {"BN": 128, "exp2_fma_share": 1.0, "mask": {"sliding_window": 9}},
        {"depth": 96, "BN": 160, "exp2_fma_share": 0.125, "mask": "causal"},
        {"registers": {"softmax": 136, "correction": 24, "other": 24}},
    ],
)  # fmt: skip
def test_what_a_compiler_decides_is_accepted(config_of: ConfigOf, keys: dict[str, object]) -> None:
    assert problems_of(config_of(**keys)) == ()


def test_a_pair_that_cannot_be_takes_its_stages_along(config_of: ConfigOf) -> None:
    [problem] = problems_of(
        config_of(dtype="fp8_e4m3", depth=96, cta_group=2, num_kv_stages=28, kv_ring="separate")
    )
    assert offers(problem) == [{"cta_group": 1, "num_kv_stages": "auto"}]


def test_several_keys_change_only_where_one_is_not_enough(config_of: ConfigOf) -> None:
    config = config_of(
        dtype="fp8_e4m3", depth=256, BM=256, BN=160, num_pv_stages=7,
        registers={"softmax": 104, "correction": 200, "other": 96},
    )  # fmt: skip
    tensor_memory = next(p for p in problems_of(config) if p.message.startswith("tensor memory"))
    [offer] = offers(tensor_memory)
    assert len(offer) > 1
    assert not {fault.kind for fault in faults_of(changed(config, offer))} & {"tensor memory"}
