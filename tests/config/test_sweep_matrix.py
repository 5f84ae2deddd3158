from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.sweep_matrix import include, matches, product, same

VALUES = st.sampled_from([1, 2, True, "x", "y", None, {"w": 1}])
KEYS = st.sampled_from(["a", "b", "c", "d"])
MATRICES = st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=3), max_size=3)
ENTRIES = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), max_size=4)


def values(matrix: dict[str, list[Any]], *entries: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(c.values) for c in include(product(matrix), matrix, entries)]


def test_the_last_key_changes_fastest() -> None:
    assert values({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]


def test_the_example_of_the_github_documentation() -> None:
    matrix = {"fruit": ["apple", "pear"], "animal": ["cat", "dog"]}

    result = values(
        matrix,
        {"color": "green"},
        {"color": "pink", "animal": "cat"},
        {"fruit": "apple", "shape": "circle"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    )

    assert result == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_without_a_matrix_every_entry_is_a_case() -> None:
    assert values({}, {"a": 1}, {"a": 1, "b": 2}) == [{"a": 1}, {"a": 1, "b": 2}]


def test_sources_say_where_a_value_stands() -> None:
    [first, second] = include(product({"a": [1]}), ["a"], [{"b": 2}, {"a": 3}])

    assert first.sources == {"a": ("matrix", "a", 0), "b": ("include", 0, "b")}
    assert first.origin == ("matrix",)
    assert second.sources == {"a": ("include", 1, "a")}
    assert second.origin == ("include", 1)


@given(MATRICES, ENTRIES)
def test_no_entry_changes_what_the_matrix_says(
    matrix: dict[str, list[Any]], entries: list[dict[str, Any]]
) -> None:
    plain = product(matrix)
    combined = include(plain, matrix, entries)

    assert len(plain) == (0 if not matrix else _size(matrix))
    for before, after in zip(plain, combined, strict=False):
        assert {key: after.values[key] for key in matrix} == dict(before.values)
    assert all(combination.values.keys() == combination.sources.keys() for combination in combined)


@given(MATRICES, ENTRIES)
def test_every_entry_is_somewhere(
    matrix: dict[str, list[Any]], entries: list[dict[str, Any]]
) -> None:
    combined = include(product(matrix), matrix, entries)

    for entry in entries[-1:]:  # what earlier ones add, a later one may replace
        assert any(matches(combination.values, entry) for combination in combined)


def test_numbers_are_the_same_whatever_their_type_but_true_is_no_number() -> None:
    assert same(8, 8.0)
    assert same({"a": [1]}, {"a": [1.0]})
    assert not same(1, True)
    assert not same([1], [1, 2])
    assert not same({"a": 1}, {"b": 1})
    assert not same("1", 1)


def _size(matrix: dict[str, list[Any]]) -> int:
    size = 1
    for choices in matrix.values():
        size *= len(choices)
    return size
