"""Activations: expressions over the number x that a matrix product gives before it is rounded.

A gated activation is one over two such numbers, ``gate`` and ``up``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from fa4gen.epilogues.gate import GATED, names_a_gate
from fa4gen.expressions import float32
from fa4gen.expressions.arrays import RealArrays, error_function
from fa4gen.expressions.c_text import C, Rank
from fa4gen.expressions.cuda_text import FUNCTIONS, CudaText
from fa4gen.expressions.language import Language
from fa4gen.expressions.parse import parse
from fa4gen.expressions.real_intervals import Range
from fa4gen.expressions.tree import Kind, Operation, Real, Variable, evaluate, parts, variables_in
from fa4gen.expressions.words import OF_ACTIVATIONS, OF_GATES, ExpressionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.tree import Node

VARIABLE = "x"


def _of(name: str, *arguments: Node | float) -> Operation:
    return Operation(name, tuple(Real(one) if isinstance(one, float) else one for one in arguments))


_X = Variable(VARIABLE, Kind.REAL)
_1_PLUS_EXP = _of("real_add", 1.0, _of("exp", _of("real_negative", _X)))
MACROS: Mapping[str, Node] = {
    "relu": _of("real_where", _of("real_less_equal", _X, 0.0), 0.0, _X),  # NaN stays
    "gelu": _of(
        "real_multiply",
        _of("real_multiply", 0.5, _X),
        _of("real_add", 1.0, _of("erf", _of("real_multiply", _X, math.sqrt(0.5)))),
    ),
    "silu": _of("real_divide", _X, _1_PLUS_EXP),
    "sigmoid": _of("real_divide", 1.0, _1_PLUS_EXP),
}
LANGUAGE = Language(
    "an activation",
    "max(x, 0)",
    {VARIABLE: Range(-math.inf, math.inf)},
    result=Kind.REAL,
    of_floats=OF_ACTIVATIONS,
    macros=MACROS,
    only_floats=True,
)
GATED_LANGUAGE = replace(
    LANGUAGE,
    what="a gated activation",
    example="silu(gate) * up",
    variables=dict.fromkeys(GATED, Range(-math.inf, math.inf)),
    of_floats=OF_GATES,
    macros={
        "relu": MACROS["relu"],
        "gelu": MACROS["gelu"],
        "silu": _of("real_multiply", _X, _of("sigmoid", _X)),
    },
)
"""Sigmoid is an operation of its own: a gate has few instructions for an element of the output."""
_TRIED = (-4096.0, -64.0, -3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.5, 7.0, 64.0, 4096.0)
"""Values of its variables, for some of which an activation has to give a number."""
_CHOICES = ("real_minimum", "real_maximum", "real_absolute", "real_negative", "real_where")
"""Operations on floats that return one of their operands, or its negative."""


@dataclass(frozen=True)
class Activation:
    """An activation that was checked; compare by its text."""

    text: str

    @cached_property
    def tree(self) -> Node:
        """The expression."""
        return parse(self.text, _language_of(self.text))[1]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its numbers: x, or gate and up."""
        return tuple(_language_of(self.text).variables)

    def cuda(self) -> str:
        """Return C++ for it over floats, by built-in functions alone: nothing is included.

        Divisions are ``__fdividef``, which is within two units of the last place and gives 0 for
        divisors above 2**126 (CUDA programming guide, "Intrinsic functions").
        """
        found: C = evaluate(self.tree, {name: C(name) for name in self.variables}, _Text())
        return found.text

    @property
    def rounds(self) -> bool:
        """Whether its results may be other numbers than +-x, |x| and its float32 constants."""
        return any(
            (isinstance(node, Real) and float32.rounded(node.value) != node.value)
            or (
                isinstance(node, Operation) and node.kind is Kind.REAL and node.name not in _CHOICES
            )
            for node in parts(self.tree)
        )

    def evaluate(self, x: Any, xp: Any) -> Any:
        """Compute it on an array, in the array's type; ``xp`` is numpy or cupy."""
        return self._computed({VARIABLE: x}, xp)

    def evaluate_gated(self, gate: Any, up: Any, xp: Any) -> Any:
        """Compute a gated one on two arrays of one type."""
        return self._computed(dict(zip(GATED, (gate, up), strict=True)), xp)

    def _computed(self, values: Mapping[str, Any], xp: Any) -> Any:
        import numpy as np  # not with the module: rendering does without

        dtype = str(next(iter(values.values())).dtype)
        with np.errstate(all="ignore"):
            return evaluate(self.tree, values, _Arrays(xp, dtype=dtype))


def parse_activation(text: str) -> Activation:
    """Check an activation; ExpressionError has the error, its place and the alternatives."""
    language = _language_of(text)
    names = tuple(language.variables)
    text, tree = parse(text, language)
    absent = [name for name in names if name not in variables_in(tree)]
    if absent:
        raise ExpressionError(
            f"{text!r} does not depend on {' and '.join(absent)}; write it like "
            f"{language.example!r}"
        )
    tried = (dict(zip(names, values, strict=True)) for values in product(_TRIED, repeat=len(names)))
    if not any(math.isfinite(evaluate(tree, values, float32)) for values in tried):
        raise ExpressionError(
            f"{text!r} gives no finite number for any {' and '.join(names)} that was tried, from "
            f"{_TRIED[0]:g} to {_TRIED[-1]:g}"
        )
    return Activation(text)


def _language_of(text: str) -> Language:
    return GATED_LANGUAGE if names_a_gate(text) else LANGUAGE


class _Text(CudaText):
    """CUDA's own functions, and sums and products in the order in which they are written."""

    functions = (
        FUNCTIONS | {name: f"{name}f" for name in OF_ACTIVATIONS} | {"sigmoid": "sigmoid_by_exp2"}
    )

    def real_add(self, left: C, right: C) -> C:
        """Return the sum."""
        return C(f"{left.within(Rank.SUM)} + {right.within(Rank.PRODUCT)}", Rank.SUM)


class _Arrays(RealArrays):
    """Minimum and maximum take the other operand for NaN, as the kernel's do."""

    def real(self, value: float) -> Any:
        """Return a float as an array: CuPy's functions take no number of NumPy's."""
        return self.xp.asarray(value, self.dtype)

    def real_minimum(self, left: Any, right: Any) -> Any:
        """Return the smaller one."""
        return self.xp.fmin(left, right)

    def real_maximum(self, left: Any, right: Any) -> Any:
        """Return the larger one."""
        return self.xp.fmax(left, right)

    def sigmoid(self, x: Any) -> Any:
        """Return 1 / (1 + exp(-x))."""
        return 1 / (1 + self.xp.exp(-x))

    def erf(self, x: Any) -> Any:
        """Return the error function."""
        return error_function(x, self.xp)
