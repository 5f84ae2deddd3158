"""The values of annotations."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import pytest

from fa4gen.strict import Auto, Fault, Field, Read, Strict
from fa4gen.strict.kinds import kind_of


class One(Strict):
    extent: Annotated[int, Field(ge=1)]


class Other(Strict):
    window: int | One


class Pair(Strict):
    left: int
    right: int = 0


def read(annotation: Any, value: Any) -> tuple[Any, list[Fault]]:
    faults: list[Fault] = []
    kept = kind_of(annotation).read(value, (), faults)
    return kept, faults


@pytest.mark.parametrize(
    ("python", "limits", "taken", "refused"),
    [
        (int, {}, [0, -1, 10**400], [True, 1.0, "1", None, [1]]),
        (int, {"ge": 24, "le": 256, "multiple_of": 8}, [24, 256], [23, 16, 25, 264, 24.0]),
        (float, {}, [0.5, 1, -0.0, math.inf, math.nan], [True, "0.5", None, 10**400]),
        (float, {"ge": 0, "le": 1, "multiple_of": 0.125}, [0, 0.125, 1.0], [0.1, 1.125, math.nan]),
        (str, {}, ["", "a\n"], [1, None, ["a"]]),
        (str, {"min_length": 1, "max_length": 3}, ["a", "a b"], ["", "abcd"]),
        (str, {"pattern": r"^[a-z][a-z0-9_]*$"}, ["a", "a_9"], ["A", "9", "a\n", "a-b"]),
        (str, {"pattern": r"[^A-Za-z0-9_]"}, ["a < b", "\n"], ["ab_9", ""]),
        (bool, {}, [True, False], [0, 1, "true", None]),
        (None, {}, [None], [0, False, "", "null"]),
    ],
)
def test_scalars(python: Any, limits: dict[str, Any], taken: list[Any], refused: list[Any]) -> None:
    annotation = Annotated[python, Field(**limits)]
    for value in taken:
        kept, faults = read(annotation, value)
        assert faults == []
        assert kept == value or kept != kept
        assert type(kept) is (float if python is float else type(value))
    for value in refused:
        assert read(annotation, value)[1] == [Fault((), "value")], value


def test_limits_are_met_by_no_nan_and_by_what_is_on_them() -> None:
    limits = Field(ge=1, le=2)
    assert [limits.takes(n) for n in (0.999, 1, 2, 2.001, float("nan"))] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize("value", [64, 128, "auto"])
def test_words_and_numbers(value: object) -> None:
    assert read(Literal[64, 128] | Auto, value) == (value, [])


@pytest.mark.parametrize("value", [64.0, True, 1, "64", "Auto", None, [64], {"auto": 1}])
def test_what_only_looks_like_a_word_or_number(value: object) -> None:
    assert read(Literal[1, 64] | Auto, value)[1] == (
        [] if value == 1 and value is not True else [Fault((), "value")]
    )


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"extent": 1}, []),
        ({"extent": 0}, [Fault(("extent",), "value")]),
        ({"window": 5}, []),
        ({"window": {"extent": 1}}, []),
        ({"window": {"extent": 0}}, [Fault(("window", "extent"), "value")]),
        ({"window": "none"}, [Fault(("window",), "value")]),
        ({"windo": 5}, [Fault(("window",), "missing"), Fault(("windo",), "unknown")]),
        ({"extent": 1, "window": 1}, [Fault(("window",), "unknown")]),
        ({"height": 1}, [Fault((), "value")]),
        ({}, [Fault((), "value")]),
        ("none", []),
        ("all", [Fault((), "value")]),
        ("a b", []),
        ("a  b", [Fault((), "rule", "two blanks")]),
        (5, [Fault((), "value")]),
    ],
)
def test_mappings_are_told_apart_by_their_key(value: object, faults: list[Fault]) -> None:
    def without_two_blanks(text: str) -> str:
        if "  " in text:
            raise ValueError("two blanks")
        return text

    text = Annotated[str, Field(pattern=" "), Read(without_two_blanks)]
    assert read(Literal["none"] | One | Other | text, value)[1] == faults


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"left": 1}, []),
        ({"lef": 1}, [Fault(("left",), "missing"), Fault(("lef",), "unknown")]),
        ({}, [Fault(("left",), "missing")]),
        ("left", [Fault((), "value")]),
    ],
)
def test_a_mapping_of_several_keys_is_the_one_there_is(value: object, faults: list[Fault]) -> None:
    assert read(Pair | Auto, value)[1] == faults


def test_what_a_function_reads_is_kept() -> None:
    assert read(Annotated[str, Read(str.strip)] | None, " a ") == ("a", [])
    assert read(Annotated[str, Read(str.strip)] | None, None) == (None, [])


def test_a_list_is_kept_as_a_tuple() -> None:
    assert read(tuple[int, ...], [1, 2]) == ((1, 2), [])
    assert read(tuple[int, ...], [1, "2"])[1] == [Fault((1,), "value")]
    assert read(tuple[int, ...], "12")[1] == [Fault((), "value")]


@pytest.mark.parametrize("annotation", [dict[int, str], tuple[int, str], object, list[int]])
def test_an_annotation_that_nobody_checks_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError, match="add a kind"):
        kind_of(annotation)


def test_free_names_have_values_of_one_kind() -> None:
    kind = kind_of(dict[str, int])
    faults: list[Fault] = []
    read = kind.read({"a": 1, "b": 2}, ("top",), faults)
    assert read == {"a": 1, "b": 2}
    assert hash(read) == hash(kind.read({"a": 1, "b": 2}, (), faults))
    assert not faults
    kind.read({"a": 1, "b": "x"}, ("top",), faults)
    kind.read([1], ("top",), faults)
    kind.read({1: 1}, ("top",), faults)
    assert [(fault.path, fault.kind) for fault in faults] == [
        (("top", "b"), "value"), (("top",), "value"), (("top",), "value"),
    ]  # fmt: skip
