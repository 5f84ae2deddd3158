from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.expectations import Expectations, listing, shown, similar
from fa4gen.config.load import config_adapter, config_schema

VALID: dict[str, Any] = {
    "kernel": "attention", "name": "x", "arch": "sm_90a", "dtype": "bf16", "depth": 128,
}  # fmt: skip
NUMBERS = ("depth", "cta_group", "BM", "BN", "num_kv_stages", "softcap", "rescale_threshold")


@pytest.fixture(scope="module")
def expected() -> Expectations:
    return Expectations(config_schema(), VALID)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("depth", "64, 96, 128, 192 or 256"),
        ("mask", "none, causal or {sliding_window: ...}"),
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
        ("depth", 10**30, [256]),
        ("BN", 17, [16]),
        ("BN", 24, [16, 32]),
        ("BN", -5, [16]),
        ("rescale_threshold", 11.5, [10]),
        ("softcap", 0, [0.0001]),
        ("mask", "Causl", ["causal"]),
        ("mask", "zzz", []),
        ("kernel", "atention", []),  # there is no choice to guess from
        ("depth", True, []),
        ("depth", None, []),
        ("rescale_threshold", float("nan"), []),
        ("BN", float("inf"), [256]),
    ],
)
def test_nearest(expected: Expectations, key: str, value: object, nearest: list[object]) -> None:
    assert expected.nearest((key,), value) == nearest


@given(st.sampled_from(NUMBERS), st.floats() | st.integers())
def test_whatever_is_called_nearest_is_accepted(key: str, value: float) -> None:
    for near in Expectations(config_schema(), VALID).nearest((key,), value):
        config_adapter().validate_python({**VALID, key: near})


def test_a_number_in_quotes_is_told_from_a_word(expected: Expectations) -> None:
    assert expected.unquoted(("depth",), "128") == 128
    assert expected.unquoted(("overlap",), "yes") is True
    assert expected.unquoted(("depth",), "100") is None
    assert expected.unquoted(("depth",), "true") is None


def test_similar_sets_letter_case_aside() -> None:
    assert similar("bm", ["BN", "BM", "depth"]) == ["BM"]
    assert similar("quux", ["BN", "depth"]) == []


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
