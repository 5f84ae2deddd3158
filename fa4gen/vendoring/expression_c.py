"""Masks and score functions that are expressions, as C for the self-test.

Each is a function of one query and key. Whole numbers are ``int64_t``, floats ``double``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fa4gen.expressions import c_text
from fa4gen.expressions.c_text import C, Rank
from fa4gen.expressions.places import INDICES, KEY, SCORE
from fa4gen.expressions.tree import Kind, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fa4gen.expressions.tensors import Tensor
    from fa4gen.expressions.tree import Node

HELPERS = {
    "smaller_of": "x < y ? x : y",
    "larger_of": "x > y ? x : y",
    "size_of": "x < 0 ? -x : x",
    "floor_divide": "x / y - (x % y != 0 && (x < 0) != (y < 0))",
    "floor_remainder": "x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0)",
}
"""Functions of conditions, over ``int64_t x``, and ``y`` but for the size."""
MOST_AXES = 4
"""Axes of a tensor, as ``given_at`` takes indices."""
_WORDS = {"min": "smaller_of", "max": "larger_of", "abs": "size_of"}
_REALS = {
    "real_minimum": "fmin",
    "real_maximum": "fmax",
    "real_absolute": "fabs",
    "exp2": "exp2",
    "log2": "log2",
    "tanh": "tanh",
}
_CALL = re.compile(r"\b(min|max|abs)\(")
_TRUTH = re.compile(r"\b(true|false)\b")


@dataclass(frozen=True)
class _Text:
    """The operations by name, see ``expressions.tree.evaluate``."""

    tensors: tuple[Tensor, ...]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of C of the same meaning, or ``c_text``'s."""
        if name in _REALS:
            function = _REALS[name]
            return lambda *arguments: C(f"{function}({', '.join(x.text for x in arguments)})")
        found: Callable[..., Any] = getattr(c_text, name.removeprefix("real_"))
        return found

    def real(self, value: float) -> C:
        """Return a double."""
        return C(repr(float(value)), Rank.ATOM if value >= 0 else Rank.SIGN)

    def to_real(self, one: C) -> C:
        """Return a whole number as a double."""
        return C(f"(double){one.within(Rank.ATOM)}", Rank.SIGN)

    def real_divide(self, left: C, right: C) -> C:
        """Return the quotient."""
        return C(f"{left.within(Rank.PRODUCT)} / {right.within(Rank.SIGN)}", Rank.PRODUCT)

    def logical_or(self, left: C, right: C) -> C:
        """Return c_text's disjunction, with brackets that compilers of C ask for."""
        return c_text.logical_or(_in_brackets(left), _in_brackets(right))

    def element(self, name: str, *indices: C) -> C:
        """Return an element of a tensor, which a function of the self-test reads."""
        number = next(i for i, tensor in enumerate(self.tensors) if tensor.name == name)
        places = [one.text for one in indices] + ["0"] * (MOST_AXES - len(indices))
        text = f"given_at(p, {number}, {', '.join(places)})"
        whole = self.tensors[number].kind is Kind.WHOLE
        return C(f"(int64_t){text}", Rank.SIGN) if whole else C(text)


def expression_in_c(tree: Node, tensors: tuple[Tensor, ...] = ()) -> str:
    """Return the C of an expression, with HELPERS as functions.

    Its names are those of ``INDICES``, ``score`` where it is one of a score function, and ``p``,
    the problem, whose ``tensors`` it reads.
    """
    values = {name: C(name) for name in (*INDICES, SCORE)}
    values |= {name: C(name, least=0) for name in INDICES if name not in ("query", "row")}
    values[KEY] = C(KEY, least=0)
    found: C = evaluate(tree, values, _Text(tensors))
    text = _CALL.sub(lambda match: f"{_WORDS[match[1]]}(", found.text)
    return _TRUTH.sub(lambda match: "1" if match[1] == "true" else "0", text)


def helpers_of(expressions: Iterable[str | None]) -> tuple[str, ...]:
    """Return the names of HELPERS that the expressions call."""
    text = " ".join(one or "" for one in expressions)
    return tuple(name for name in HELPERS if f"{name}(" in text)


def _in_brackets(one: C) -> C:
    if one.rank is not Rank.AND:
        return one
    return replace(one, text=f"({one.text})", rank=Rank.ATOM)
