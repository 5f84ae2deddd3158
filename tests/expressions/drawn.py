"""Conditions on query and key, drawn as text; what they mean is what Python computes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = st.integers(0, 9).map(str)
LEAVES = st.sampled_from(["query", "key", "query", "key"]) | SMALL
MOST_LEAVES = 7


def _numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from(["+", "-"]), inner)
    return st.one_of(
        pair.map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(SMALL, inner).map(lambda parts: f"{parts[0]} * {parts[1]}"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(
            lambda parts: f"({parts[0]}) {parts[1]} {parts[2]}"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        st.tuples(inner, inner).map(lambda parts: f"bit({parts[0]}, {parts[1]})"),
        inner.map(lambda one: f"abs({one})"),
        inner.map(lambda one: f"-({one})"),
    )


NUMBERS = st.recursive(LEAVES, _numbers, max_leaves=MOST_LEAVES)
COMPARED = st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS).map(
    " ".join
)


def _conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, NUMBERS, NUMBERS, SMALL).map(
            lambda parts: f"where({parts[0]}, {parts[1]}, {parts[2]}) > {parts[3]}"
        ),
    )


CONDITIONS = st.recursive(COMPARED, _conditions, max_leaves=4)


def meaning(text: str) -> Callable[[int, int], Any]:
    """Return the condition as Python has it, of a query and a key."""
    names: dict[str, Any] = {
        "where": lambda condition, one, other: one if condition else other,
        "bit": lambda one, index: one >> max(0, min(index, 31)) & 1,
    }
    names |= {"min": min, "max": max, "abs": abs}
    function: Callable[[int, int], Any] = eval(f"lambda query, key: ({text})", names)
    return function
