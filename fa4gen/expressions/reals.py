"""Trees of floats: made of whole numbers where they meet floats, and folded where constant."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

from fa4gen.expressions.tree import TO_REAL, Kind, Number, Operation, Real, parts
from fa4gen.expressions.words import OF_GATES

if TYPE_CHECKING:
    from fa4gen.expressions.tree import Node

LARGEST, SMALLEST = 2.0**100, 2.0**-100
"""The limits of floats: far from those of float32, so that a scale may be folded in."""


def as_real(node: Node) -> Node:
    """Return a number as a float."""
    if node.kind is Kind.REAL:
        return node
    return Real(float(node.value)) if isinstance(node, Number) else Operation(TO_REAL, (node,))


def of_reals(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return an operation on floats; a number where all are numbers.

    ``name`` is that of the operation on whole numbers, where there is one.
    """
    arguments = tuple(arguments)
    values = [one.value for one in arguments if isinstance(one, Real)]
    if len(values) == len(arguments):
        folded = _fold(name, values)
        if folded is not None:
            return Real(folded)
    match name, arguments:
        case "add", (left, Operation("real_negative", (right,))):
            return Operation("real_subtract", (left, right))
        case "negative", (Operation("real_negative", (inner,)),):
            return inner
    own = name if name in OF_GATES else f"real_{name}"
    return Operation(own, arguments)


def joined(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return an operation of one thing; of two on any number of them, from the left."""
    reals = any(one.kind is Kind.REAL for one in arguments)
    make = of_reals if reals else Operation
    if len(arguments) == 1:
        return make(name, arguments)
    return reduce(lambda left, right: make(name, (left, right)), arguments)


def with_constant(name: str, left: Node, right: Node) -> Node:
    """Return a quotient; by a number, the product with its inverse."""
    if isinstance(right, Real) and not isinstance(left, Real):
        return of_reals("multiply", (left, Real(1.0 / right.value)))
    return of_reals(name, (left, right))


def compares_reals(condition: Node) -> bool:
    """Whether a condition depends on a comparison of floats."""
    return any(
        isinstance(one, Operation) and one.name.startswith("real_") and one.kind is Kind.TRUTH
        for one in parts(condition)
    )


def _fold(name: str, values: list[float]) -> float | None:
    try:
        match name, values:
            case "add", [left, right]:
                found = left + right
            case "subtract", [left, right]:
                found = left - right
            case "multiply", [left, right]:
                found = left * right
            case "divide", [left, right]:
                found = left / right
            case "negative", [one]:
                found = -one
            case "exp2", [one]:
                found = 2.0**one
            case "log2", [one]:
                found = math.log2(one)
            case "tanh", [one]:
                found = math.tanh(one)
            case _:
                return None
    except (OverflowError, ZeroDivisionError, ValueError):
        return None
    # results that float32 does not hold are refused later, or underflow as computed
    return found if not found or SMALLEST <= abs(found) <= LARGEST else None
