"""Intervals of floats and whole numbers: the results that an expression with floats may have.

Ends are Python's floats, computed without rounding outwards: they are compared with limits that
are far from any number of use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.expressions import exact
from fa4gen.expressions.intervals import Interval, Intervals, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Range:
    """A float from ``low`` to ``high``."""

    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        """Whether it may be 0."""
        return self.low <= 0 <= self.high


def _power(exponent: float) -> float:
    return math.inf if exponent > 1023 else 2.0**exponent


@dataclass(frozen=True)
class RealIntervals(Intervals):
    """The operations on whole numbers and floats; ``elements``: what tensors of floats hold."""

    elements: Mapping[str, Range]

    def element(self, name: str, *indices: Interval) -> Interval | Range:  # type: ignore[override]
        """Return an element of a tensor."""
        return self.elements.get(name) or super().element(name, *indices)

    def real(self, value: float) -> Range:
        """Return a float as it is written."""
        return Range(value, value)

    def to_real(self, one: Interval) -> Range:
        """Return a whole number as a float."""
        return Range(float(one.low), float(one.high))

    def real_add(self, left: Range, right: Range) -> Range:
        """Return the sum."""
        return Range(left.low + right.low, left.high + right.high)

    def real_subtract(self, left: Range, right: Range) -> Range:
        """Return the difference."""
        return Range(left.low - right.high, left.high - right.low)

    def real_negative(self, one: Range) -> Range:
        """Return the number with the other sign."""
        return Range(-one.high, -one.low)

    def real_multiply(self, left: Range, right: Range) -> Range:
        """Return the product."""
        return _of_corners(lambda one, other: one * other, left, right)

    def real_divide(self, left: Range, right: Range) -> Range:
        """Return the quotient by what is not 0."""
        return _of_corners(lambda one, other: one / other, left, right)

    def real_absolute(self, one: Range) -> Range:
        """Return the distance from 0."""
        ends = sorted((abs(one.low), abs(one.high)))
        return Range(0.0 if one.has_zero else ends[0], ends[1])

    def real_minimum(self, left: Range, right: Range) -> Range:
        """Return the smaller one."""
        return Range(min(left.low, right.low), min(left.high, right.high))

    def real_maximum(self, left: Range, right: Range) -> Range:
        """Return the larger one."""
        return Range(max(left.low, right.low), max(left.high, right.high))

    def exp2(self, one: Range) -> Range:
        """Return 2 to this power."""
        return Range(_power(one.low), _power(one.high))

    def log2(self, one: Range) -> Range:
        """Return the logarithm of what is above 0."""
        return Range(math.log2(one.low), math.log2(one.high))

    def tanh(self, one: Range) -> Range:
        """Return the hyperbolic tangent."""
        return Range(math.tanh(one.low), math.tanh(one.high))

    def real_where(self, condition: Truth, first: Range, second: Range) -> Range:
        """Return the first where the condition holds, else the second; or both, if unknown."""
        if condition.certain or not condition.possible:
            return first if condition.certain else second
        return Range(min(first.low, second.low), max(first.high, second.high))

    def real_less(self, left: Range, right: Range) -> Truth:
        """Compare."""
        return Truth(left.high < right.low, left.low < right.high)

    def real_less_equal(self, left: Range, right: Range) -> Truth:
        """Compare."""
        return Truth(left.high <= right.low, left.low <= right.high)

    def real_greater(self, left: Range, right: Range) -> Truth:
        """Compare."""
        return self.real_less(right, left)

    def real_greater_equal(self, left: Range, right: Range) -> Truth:
        """Compare."""
        return self.real_less_equal(right, left)

    def real_equal(self, left: Range, right: Range) -> Truth:
        """Compare."""
        one = left.low == left.high == right.low == right.high
        return Truth(one, left.low <= right.high and right.low <= left.high)

    def real_not_equal(self, left: Range, right: Range) -> Truth:
        """Compare."""
        return self.logical_not(self.real_equal(left, right))


def _of_corners(compute: Callable[[float, float], float], left: Range, right: Range) -> Range:
    corners = [
        compute(one, other) for one in (left.low, left.high) for other in (right.low, right.high)
    ]
    return Range(min(corners), max(corners))


def real_intervals(elements: Mapping[str, Range]) -> RealIntervals:
    """Return the operations over whole numbers of Python."""
    return RealIntervals(exact, elements)
