from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fa4gen.config.expectations import Expectations, similar
from fa4gen.config.load import config_schema
from fa4gen.designs.registry import DESIGNS, MODELS, validated
from fa4gen.strict import Fault, ModelError
from fa4gen.yaml_words import listing, shown

VALID: dict[str, Any] = {
    "kernel": "attention", "name": "x", "arch": "sm_90a", "dtype": "bf16", "depth": 128,
}  # fmt: skip
NUMBERS = ("depth", "cta_group", "BM", "BN", "num_kv_stages", "softcap", "rescale_threshold")
ARCHITECTURES = sorted({arch for design in DESIGNS for arch in design.archs})
BASES = [VALID, {"kernel": "gemm", "name": "x", "dtype": "bf16"}]
FIELDS = sorted({key for model in MODELS for key in model.load().model_fields} - {"name", "arch"})
SCALARS = st.sampled_from(
    ["auto", "none", "bf16", "fp", "fp8", "direct", "tma", "static", "fused", "row", "k", "gemm",
     True, 0, 1, 64, 256]
) | st.integers(-1, 300)  # fmt: skip


@pytest.fixture(scope="module")
def expected() -> Expectations:
    return Expectations(config_schema(), VALID)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("depth", "64, 96, 128, 192, 256, 512 or 576"),
        (
            "mask",
            "none, causal, documents, prefix, tree, {sliding_window: ...}, {chunked: ...}, "
            "{dilated: ...} or a condition such as "
            "'key <= query' (400 characters at most)",
        ),
        ("BM", "64, 128, 192 or auto"),
        ("BN", "a multiple of 16 from 16 to 256 or auto"),
        ("softcap", "a number from 0.0001 to 10000.0 or null"),
        ("ping_pong", "true, false or auto"),
        ("kernel", "attention"),
    ],
)
def test_words(expected: Expectations, key: str, words: str) -> None:
    assert expected.words((key,)) == words


def test_words_inside_a_union() -> None:
    expected = Expectations(config_schema(), {"mask": {"sliding_window": {"left": -1}}})

    words = expected.words(("mask", "sliding_window", "left"))
    assert words == "a whole number from 0 to 1073741824"
    assert expected.keys(("mask", "sliding_window")) == ["left", "right"]


@pytest.mark.parametrize(
    ("key", "value", "nearest"),
    [
        ("depth", 100, [96]),
        ("depth", 80, [64, 96]),
        ("depth", 10**30, [576]),
        ("BN", 17, [16]),
        ("BN", 24, [16, 32]),
        ("BN", -5, [16]),
        ("rescale_threshold", 11.5, [10]),
        ("softcap", 0, [0.0001]),
        ("mask", "Causl", ["causal"]),
        ("mask", "zzz", []),
        ("kernel", "atention", []),  # a single allowed word: nothing to suggest
        ("depth", True, []),
        ("depth", None, []),
        ("rescale_threshold", float("nan"), []),
        ("BN", float("inf"), [256]),
    ],
)
def test_nearest(expected: Expectations, key: str, value: object, nearest: list[object]) -> None:
    assert expected.nearest((key,), value) == nearest


@given(
    st.sampled_from(BASES),
    st.sampled_from(ARCHITECTURES),
    st.sampled_from(NUMBERS),
    st.floats() | st.integers(),
)
def test_whatever_is_called_nearest_is_accepted(
    base: dict[str, Any], arch: str, key: str, value: float
) -> None:
    data = {**base, "arch": arch}
    for near in Expectations(config_schema(), data).nearest((key,), value):
        assert own_faults({**data, key: near}, key) == []


def own_faults(data: dict[str, Any], key: str) -> list[Fault]:
    """Return the faults of a key's own value; combinations of keys are another question."""
    try:
        validated(data)
    except ModelError as error:
        return [fault for fault in error.faults if fault.path[:1] == (key,)]
    return []


@example(VALID, "sm_90a", "page_size", 64)
@example(VALID, "sm_100a", "packed_rows", 16)
@given(st.sampled_from(BASES), st.sampled_from(ARCHITECTURES), st.sampled_from(FIELDS), SCALARS)
def test_whatever_is_called_accepted_is(
    base: dict[str, Any], arch: str, key: str, value: object
) -> None:
    data = {**base, "arch": arch}
    accepted = Expectations(config_schema(), data).accepted((key,), value)
    if accepted is not None:
        assert own_faults({**data, key: accepted}, key) == []
    else:
        with pytest.raises(ModelError):
            validated({**data, key: value})


@pytest.mark.parametrize(
    ("data", "keys", "strangers"),
    [
        ({"arch": "sm_90a"}, {"ping_pong", "depth", "residual"}, {"kv_ring"}),
        ({"arch": "sm_103a", "kernel": "attntion"}, {"kv_ring", "residual"}, {"ping_pong"}),
        ({"arch": "sm_90", "kernel": "attention"}, {"ping_pong", "kv_ring"}, {"residual"}),
        ({"arch": "sm_90a", "kernel": "gemm"}, {"ping_pong"}, {"num_accum_stages", "depth"}),
        ({"kernel": "gemm"}, {"ping_pong", "num_accum_stages"}, {"depth"}),
        ({}, {"ping_pong", "kv_ring", "residual"}, set()),
    ],
)
def test_the_keys_are_those_of_family_and_architecture_where_they_are_reported(
    data: dict[str, Any], keys: set[str], strangers: set[str]
) -> None:
    known = set(Expectations(config_schema(), data).keys(()))
    assert keys <= known
    assert not strangers & known


def test_what_models_hold_alike_is_reported_once() -> None:
    expected = Expectations(config_schema(), {})
    assert expected.words(("arch",)) == "sm_90a, sm_100a, sm_103a or sm_100f"
    assert expected.words(("depth",)) == "64, 96, 128, 192, 256, 512, 576, 32, 80, 112 or 160"
    assert expected.words(("registers",)) == (
        "{producer: ..., consumer: ...}, auto or {softmax: ..., correction: ..., other: ...}"
    )
    assert expected.words(("residual",)) == "none, matrix, row or column"


def test_a_family_that_is_not_told_is_a_choice() -> None:
    expected = Expectations(config_schema(), {"arch": "sm_90a", "kernel": "atention"})
    assert expected.words(("kernel",)) == "attention, gemm or merge"
    assert expected.example(("kernel",)) == ""
    assert expected.nearest(("kernel",), "atention") == ["attention"]
    assert expected.nearest(("kernel",), "Gem") == ["gemm"]
    assert expected.nearest(("kernel",), "zzz") == []


def test_a_number_in_quotes_is_reported_from_a_word(expected: Expectations) -> None:
    assert expected.unquoted(("depth",), "128") == 128
    assert expected.unquoted(("overlap",), "yes") is True
    assert expected.unquoted(("depth",), "100") is None
    assert expected.unquoted(("depth",), "true") is None


def test_similar_sets_letter_case_aside() -> None:
    assert similar("bm", ["BN", "BM", "depth"]) == ["BM"]
    assert similar("quux", ["BN", "depth"]) == []


def test_similar_completes_a_word_that_only_one_begins_with() -> None:
    assert similar("fp8", ["bf16", "fp16", "fp8_e4m3"]) == ["fp8_e4m3"]
    assert similar("FP8", ["bf16", "fp16", "fp8_e4m3"]) == ["fp8_e4m3"]
    assert similar("fp", ["bf16", "fp16", "fp8_e4m3"]) == ["fp16"]
    assert similar("BM", ["BM_of_all", "BM"]) == ["BM"]
    assert similar("x", ["x_and_much_more"]) == []


def test_listing() -> None:
    assert [listing(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a or b",
        "a, b or c",
    ]


def test_shown_is_yaml_that_reads_back() -> None:
    assert shown("causal") == "causal"
    assert shown("128") == '"128"'
    assert shown("") == '""'
    assert shown({"a": [True, None]}) == "{a: [true, null]}"
    assert len(shown("x" * 500)) == 60
