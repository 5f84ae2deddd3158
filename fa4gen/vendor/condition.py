"""A condition that is a mask, as C for the self-test, which asks it of each query and key."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fa4gen.expressions import c_text
from fa4gen.expressions.c_text import C, Rank
from fa4gen.expressions.tree import evaluate
from fa4gen.masks.hull import KEY, QUERY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.masks.expression import ExpressionMask

HELPERS = {
    "smaller_of": "x < y ? x : y",
    "larger_of": "x > y ? x : y",
    "size_of": "x < 0 ? -x : x",
    "floor_divide": "x / y - (x % y != 0 && (x < 0) != (y < 0))",
    "floor_remainder": "x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0)",
}
"""Functions of conditions, over ``int64_t x``, and ``y`` but for the size."""
_WORDS = {"min": "smaller_of", "max": "larger_of", "abs": "size_of"}
_CALL = re.compile(r"\b(min|max|abs)\(")
_TRUTH = re.compile(r"\b(true|false)\b")


def condition_in_c(mask: ExpressionMask) -> str:
    """Return the whole condition over ``int64_t query, key``, with HELPERS as functions."""
    operations = SimpleNamespace(**vars(c_text))
    operations.logical_or = _logical_or
    values = {QUERY: C("query"), KEY: C("key", least=0)}
    found: C = evaluate(mask.tree, values, operations)
    text = _CALL.sub(lambda match: f"{_WORDS[match[1]]}(", found.text)
    return _TRUTH.sub(lambda match: "1" if match[1] == "true" else "0", text)


def helpers_of(conditions: Iterable[str | None]) -> tuple[str, ...]:
    """Return the names of HELPERS that the conditions call."""
    text = " ".join(one or "" for one in conditions)
    return tuple(name for name in HELPERS if f"{name}(" in text)


def _logical_or(left: C, right: C) -> C:
    """As c_text's, with brackets that compilers of C ask for."""
    return c_text.logical_or(_in_brackets(left), _in_brackets(right))


def _in_brackets(one: C) -> C:
    if one.rank is not Rank.AND:
        return one
    return replace(one, text=f"({one.text})", rank=Rank.ATOM)
