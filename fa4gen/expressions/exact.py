"""The operations on whole numbers of Python, which have any size, and on truth values."""

from __future__ import annotations

import operator

from fa4gen.expressions.words import BITS

number = int
add = operator.add
subtract = operator.sub
multiply = operator.mul
negative = operator.neg
absolute = abs
floor_divide = operator.floordiv
remainder = operator.mod
minimum = min
maximum = max
less = operator.lt
less_equal = operator.le
greater = operator.gt
greater_equal = operator.ge
equal = operator.eq
not_equal = operator.ne


def logical_and(left: bool, right: bool) -> bool:
    """Return whether both hold."""
    return left and right


def logical_or(left: bool, right: bool) -> bool:
    """Return whether one holds."""
    return left or right


def logical_not(condition: bool) -> bool:
    """Return whether it does not hold."""
    return not condition


def bit(one: int, index: int) -> int:
    """Return a bit of a number of 32, 0 or 1; of an index outside of them, the nearest."""
    return one >> min(max(index, 0), BITS - 1) & 1


def where(condition: bool, first: int, second: int) -> int:
    """Return the first where the condition holds, else the second."""
    return first if condition else second
