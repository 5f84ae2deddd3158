from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.yaml_scalars import meaning_of


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("128", 128),
        ("-3", -3),
        ("+7", 7),
        ("0", 0),
        ("0x40", 64),
        ("0o17", 15),
        ("007", 7),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("3.0e1", 30.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("causal", "causal"),
        ("y", "y"),
        ("1.2.3", "1.2.3"),
        ("0b11", "0b11"),
        ("2024-01-01", "2024-01-01"),
        ("1" * 50, "1" * 50),
    ],
)
def test_a_word_that_both_versions_read_alike_or_that_is_plainly_meant(
    word: str, value: object
) -> None:
    meaning = meaning_of(word)

    assert meaning.value == value
    assert type(meaning.value) is type(value)
    assert not meaning.refusal
    assert not meaning.note


@pytest.mark.parametrize("word", ["on", "Yes", "OFF", "no"])
def test_an_old_truth_value_is_taken_with_a_note(word: str) -> None:
    meaning = meaning_of(word)

    assert meaning.value is (word.lower() in ("on", "yes"))
    assert meaning.note.startswith(f"YAML reads {word} as {str(meaning.value).lower()}")


@pytest.mark.parametrize(
    ("word", "reading", "remedy"),
    [
        ("017", "octal in YAML 1.1 (15) and decimal in YAML 1.2 (17)", "15 or 17"),
        ("-017", "(-15)", "-15 or -17"),
        ("0128", "text in YAML 1.1 and the number 128", "Write 128."),
        ("1_000", "text in YAML 1.2", "Write 1000."),
        ("1:30", "base 60", '"1:30" in quotes'),
    ],
)
def test_a_number_that_the_versions_read_differently_is_refused(
    word: str, reading: str, remedy: str
) -> None:
    meaning = meaning_of(word)

    assert reading in meaning.refusal
    assert remedy in meaning.remedy


@given(st.from_regex(r"[-+0-9a-fox_.:e]{1,8}", fullmatch=True))
def test_a_number_taken_in_silence_is_never_another_number_to_yaml_1_1(word: str) -> None:
    meaning = meaning_of(word)
    try:
        old = yaml.safe_load(f"- {word}")[0]
    except (yaml.YAMLError, ValueError):  # of 0x_, by PyYAML
        return

    if not meaning.refusal and type(meaning.value) in (int, float) and type(old) in (int, float):
        assert old == meaning.value or math.isnan(old)
