"""The interval of an expression over a rectangle: never less than its values in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.expressions import exact
from fa4gen.expressions.arrays import Arrays
from fa4gen.expressions.intervals import Interval, Intervals, Truth
from fa4gen.expressions.parse import parse_condition
from fa4gen.expressions.tree import evaluate
from fa4gen.masks.expression import LANGUAGE
from tests.expressions.drawn import CONDITIONS


def parsed(text):
    try:
        return parse_condition(text, LANGUAGE)[1]
    except ValueError:
        assume(False)


@given(
    text=CONDITIONS,
    query=st.integers(-20, 20),
    key=st.integers(0, 20),
    rows=st.integers(1, 9),
    keys=st.integers(1, 9),
)
def test_no_rectangle_is_promised_too_much(text, query, key, rows, keys) -> None:
    tree = parsed(text)
    rectangle = {
        "query": Interval(query, query + rows - 1),
        "key": Interval(key, key + keys - 1),
    }
    promised = evaluate(tree, rectangle, Intervals(exact))
    queries, columns = np.arange(query, query + rows)[:, None], np.arange(key, key + keys)
    holds = evaluate(tree, {"query": queries, "key": columns}, Arrays(np))
    holds = np.broadcast_to(holds, (rows, keys))
    if promised.certain:
        assert holds.all()
    if not promised.possible:
        assert not holds.any()


@given(text=CONDITIONS, query=st.integers(-20, 20), key=st.integers(0, 20))
def test_a_point_is_decided(text, query, key) -> None:
    tree = parsed(text)
    point = {"query": Interval(query, query), "key": Interval(key, key)}
    holds = evaluate(tree, {"query": query, "key": key}, exact)
    assert evaluate(tree, point, Intervals(exact)) == Truth(holds, holds)


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("key <= query", True),
        ("query - key < 20", True),
        ("query - key < 19", False),
        ("abs(query - key) <= 19", True),
        ("query // 40 == key // 40", True),
        ("query // 16 == key // 16", False),
        ("key % 32 < 10", True),
        ("key % 5 < 5", True),
        ("key % 4 < 3", False),
        ("not (key > query)", True),
        ("key > 100 or key < 10", True),
        ("where(query < 30, key < 50, key < 1)", True),
    ],
)
def test_common_masks_are_recognised_where_they_hold(text, certain) -> None:
    rectangle = {"query": Interval(10, 19), "key": Interval(0, 9)}
    assert evaluate(parsed(text), rectangle, Intervals(exact)).certain is certain
