"""The texts that are expressions, and the refusals of others."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.expressions import exact
from fa4gen.expressions.parse import parse_condition
from fa4gen.expressions.tree import evaluate
from fa4gen.expressions.words import ExpressionError
from fa4gen.masks.expression import LANGUAGE
from tests.expressions.drawn import CONDITIONS, meaning

INDICES = st.integers(-40, 40)


@given(text=CONDITIONS, query=INDICES, key=st.integers(0, 40))
def test_a_condition_means_what_python_computes(text, query, key) -> None:
    try:
        _, tree = parse_condition(text, LANGUAGE)
    except ValueError as error:
        assume(not re.search("never holds|too long|32 bits", str(error)))
        raise
    assert evaluate(tree, {"query": query, "key": key}, exact) == meaning(text)(query, key)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("key <= qery", "'qery' is not known; did you mean query? (character 8 of"),
        ("key <= zz", "'zz' is not known; there are query, key, row, head, key_head, batch, min, "),
        ("key <", "is not an expression; write it like"),
        ("query - key", "'query - key' is a whole number, and a mask is a condition"),
        ("key and query", "'key' is a whole number, and a condition is needed (character 1"),
        ("(key < 3) + 1 > 2", "'key < 3' is a condition, and a whole number is needed"),
        ("key / 2 < query", "'key / 2' is not possible in a mask: / gives fractions; // rounds"),
        ("(key < 3) & (query > 2)", "write and for &"),
        ("(key < 3) | (query > 2)", "write or for |"),
        ("key < 3 if query else key", "write where(condition, first, second)"),
        ("key // query < 2", "'query' divides, and is not a number above 0"),
        ("abs(n[key]) < 3", "'abs(n[key])' may reach 2147483648, which 32 bits do not hold"),
        ("key % 0 < 2", "'0' is 0, and a divisor is a number above 0 (character 7"),
        ("key // (3 - 5) < 2", "'3 - 5' is -2, and a divisor is a number above 0"),
        ("key * key < query", "'key * key' may reach 72057594037927936, which 32 bits do not"),
        ("8 * query > key", "may reach"),
        ("key < 99999999999", "'99999999999' is more than 32 bits hold"),
        ("key < 0x10", "'0x10' is not a decimal number"),
        ("key < 1_0", "'1_0' is not a decimal number"),
        ("key < 1.5", "'1.5' is not a whole number"),
        ("key < True", "'True' is not a whole number"),
        ("key < 'a'", "is not a whole number"),
        ("key < 0", "'key < 0' never holds"),
        ("key < 3 and key > 2**8", "'2**8' is not possible in a mask"),
        ("key in query", "is not possible in a mask"),
        ("abs(key, 2) < 1", "abs takes 1 argument, got 2"),
        ("min(key) < 1", "min takes 2 arguments or more, got 1"),
        ("bit(key) == 1", "bit takes 2 arguments, got 1"),
        ("bit(key, 1, 2) == 1", "bit takes 2 arguments, got 3"),
        ("bit(key < 1, 2) == 1", "'key < 1' is a condition, and a whole number is needed"),
        ("where(key, 1, 2) < 1", "'key' is a whole number, and a condition is needed"),
        ("where(key < 2, key < 1, 2)", "'2' is a whole number, and a condition is needed"),
        ("min < 2", "min is a function: write min(...)"),
        ("__import__('os') < 2", "'__import__' is not known"),
        ("key.real < 2", "is not possible in a mask"),
        ("(lambda: key)() < 2", "is not possible in a mask"),
        ("key < 2 # all", "begins a comment, which is not possible in a mask"),
        ("key \u2264 query", "character 5 of 'key \u2264 query' is U+2264, which is not an ASCII"),
        ("(" * 190 + "key" + ")" * 189, "is not an expression"),
        ("key < 1" + " + 1" * 60, "is too long: at most 100"),
        ("key < " + "1" * 500, "is too long: 506 characters, at most 400"),
    ],
)  # fmt: skip
def test_what_is_refused(text, words) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_condition(text, LANGUAGE)


@given(st.text(alphabet="queryk <>=+-*/%()andortm0123456789,.&", max_size=40))
def test_any_text_is_a_condition_or_refused(text) -> None:
    try:
        _, tree = parse_condition(text, LANGUAGE)
    except ValueError:
        return
    assert evaluate(tree, {"query": 3, "key": 2}, exact) in (True, False)


def test_a_choice_between_conditions_is_one() -> None:
    _, tree = parse_condition("where(query < 5, key < 2, key <= query)", LANGUAGE)
    for query in range(9):
        for key in range(9):
            wanted = key < 2 if query < 5 else key <= query
            assert evaluate(tree, {"query": query, "key": key}, exact) == wanted


@pytest.mark.parametrize(
    ("text", "character"),
    [("key < 2 # all", 9), ("key \u2264 query", 5), ("\uff4bey < 2", 1), ("key < 2; 1", 8)],
)
def test_a_character_that_is_not_possible_is_pointed_at(text, character) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text, LANGUAGE)
    assert caught.value.character == character
