"""Constants of languages of floats alone: float32 has to hold them, and a GPU to divide by them.

Each function returns what is wrong, in words that follow the constant's text; None for nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fa4gen.expressions import float32
from fa4gen.expressions.tree import Operation, evaluate, variables_in

if TYPE_CHECKING:
    from fa4gen.expressions.tree import Node


def fault_of_number(value: object) -> str | None:
    """Check a number as it is written."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is not a number"
    rounded = float32.rounded(value)
    if math.isinf(rounded) or (rounded == 0) != (value == 0):
        return "is not a number that float32 holds"
    return None


def fault_of_constant(tree: Node) -> str | None:
    """Check what an operation gives, if it is the same for all x."""
    if variables_in(tree):
        return None
    value = evaluate(tree, {}, float32)
    if not math.isfinite(value):
        return f"is {value}, which is not a finite number of float32"
    products = ("real_multiply", "real_divide")  # what is exactly 0 was folded to a number
    if value == 0 and isinstance(tree, Operation) and tree.name in products:
        return "is too small for float32, which makes it 0"
    return None


def fault_of_divisor(tree: Node) -> str | None:
    """Check what divides, if it is the same for all x."""
    if variables_in(tree):
        return None
    value = evaluate(tree, {}, float32)
    if value == 0:
        return "is 0, and nothing can be divided by it"
    if abs(value) > float32.LARGEST_DIVISOR:
        return "is above 2**126, where the GPU's division gives 0: multiply"
    return None
