"""Intervals of what float32 may make of an expression, for arrays of intervals of its variables.

Ends are float64. Every operation on floats widens its result by two units of float32, since a
kernel may order products and sums in another way; functions of CUDA by four (CUDA programming
guide, "Mathematical functions"). Sums and products of single numbers that float32 holds are exact.
A quotient by more than 2**126 may be 0 (the same, "Intrinsic functions"), and results below the
least normal number, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.expressions import float32
from fa4gen.expressions.arrays import error_function

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = 2.0**-22
FUNCTION_UNIT = 2.0**-21
LEAST_NORMAL = 2.0**-126
POWER_UNIT = 2.0**-23
"""By an exponent of e, the error of its power where it is a product with log2(e) in float32."""


@dataclass(frozen=True)
class Ends:
    """A float from ``low`` to ``high``; both NaN where it is."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Verdict:
    """A condition."""

    certain: Any
    """Holds for all numbers of the intervals."""
    possible: Any
    """Holds for some."""


@dataclass(frozen=True)
class FloatIntervals:
    """The operations; ``xp`` is numpy or cupy."""

    xp: Any

    def real(self, value: float) -> Ends:
        """Return a float as it is written, and as float32 holds it."""
        near = float32.rounded(value)
        return Ends(self.xp.float64(min(value, near)), self.xp.float64(max(value, near)))

    def real_add(self, left: Ends, right: Ends) -> Ends:
        """Return the sum."""
        return self._rounded(left.low + right.low, left.high + right.high)

    def real_subtract(self, left: Ends, right: Ends) -> Ends:
        """Return the difference."""
        return self._rounded(left.low - right.high, left.high - right.low)

    def real_negative(self, one: Ends) -> Ends:
        """Return the number with the other sign."""
        return Ends(-one.high, -one.low)

    def real_multiply(self, left: Ends, right: Ends) -> Ends:
        """Return the product."""
        corners = [one * other for one in _both(left) for other in _both(right)]
        return self._rounded(*self._around(corners))

    def real_divide(self, left: Ends, right: Ends) -> Ends:
        """Return the quotient."""
        xp = self.xp
        corners = [one / other for one in _both(left) for other in _both(right)]
        low, high = self._around(corners)
        crosses = (right.low <= 0) & (right.high >= 0) & ((right.low < 0) | (right.high > 0))
        low, high = xp.where(crosses, -xp.inf, low), xp.where(crosses, xp.inf, high)
        far = xp.fmax(xp.abs(right.low), xp.abs(right.high)) >= float32.LARGEST_DIVISOR
        low, high = (xp.where(far, choose(end, 0.0), end)
                     for choose, end in ((xp.minimum, low), (xp.maximum, high)))  # fmt: skip
        return self._widened(low, high, UNIT)

    def real_absolute(self, one: Ends) -> Ends:
        """Return the distance from 0."""
        sizes = self.xp.abs(one.low), self.xp.abs(one.high)
        least = self.xp.where((one.low < 0) & (one.high > 0), 0.0, self.xp.minimum(*sizes))
        return Ends(least, self.xp.maximum(*sizes))

    def real_minimum(self, left: Ends, right: Ends) -> Ends:
        """Return the smaller one, the other one for NaN."""
        return Ends(self.xp.fmin(left.low, right.low), self.xp.fmin(left.high, right.high))

    def real_maximum(self, left: Ends, right: Ends) -> Ends:
        """Return the larger one, the other one for NaN."""
        return Ends(self.xp.fmax(left.low, right.low), self.xp.fmax(left.high, right.high))

    def exp(self, one: Ends) -> Ends:
        """Return e to this power."""
        return self._of_growing(
            lambda x: self.xp.exp(self.xp.minimum(x, float32.LARGEST_POWER)), one
        )

    def exp2(self, one: Ends) -> Ends:
        """Return 2 to this power."""
        return self._of_growing(
            lambda x: self.xp.exp2(self.xp.minimum(x, float32.LARGEST_POWER)), one
        )

    def log(self, one: Ends) -> Ends:
        """Return the natural logarithm."""
        return self._of_growing(self.xp.log, one)

    def log2(self, one: Ends) -> Ends:
        """Return the logarithm of base 2."""
        return self._of_growing(self.xp.log2, one)

    def sqrt(self, one: Ends) -> Ends:
        """Return the square root."""
        return self._of_growing(self.xp.sqrt, one)

    def tanh(self, one: Ends) -> Ends:
        """Return the hyperbolic tangent."""
        return self._of_growing(self.xp.tanh, one)

    def erf(self, one: Ends) -> Ends:
        """Return the error function."""
        return self._of_growing(lambda x: error_function(x, self.xp), one)

    def sigmoid(self, one: Ends) -> Ends:
        """Return 1 / (1 + exp(-x)), by the power of 2 to x * -log2(e)."""
        low, high = (self._sigmoid(x, sign) for x, sign in ((one.low, -1), (one.high, 1)))
        return Ends(low, high)

    def _sigmoid(self, x: Any, sign: int) -> Any:
        """Return the least or the most of the kernel's, by ``sign``."""
        power = self.xp.exp(self.xp.minimum(-x, float32.LARGEST_POWER))
        value = 1 / (1 + power)
        error = value * (FUNCTION_UNIT + POWER_UNIT * self.xp.abs(x) * (1 - value)) + LEAST_NORMAL
        if sign > 0:
            return value + error
        return self.xp.where(power >= float32.LARGEST_DIVISOR, 0.0, value - error)

    def real_where(self, condition: Verdict, first: Ends, second: Ends) -> Ends:
        """Return the first where the condition holds, else the second; both where it may."""
        where, xp = self.xp.where, self.xp
        low = where(condition.possible, xp.fmin(first.low, second.low), second.low)
        high = where(condition.possible, xp.fmax(first.high, second.high), second.high)
        return Ends(
            where(condition.certain, first.low, low), where(condition.certain, first.high, high)
        )

    def real_less(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        return Verdict(left.high < right.low, left.low < right.high)

    def real_less_equal(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        return Verdict(left.high <= right.low, left.low <= right.high)

    def real_greater(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        return self.real_less(right, left)

    def real_greater_equal(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        return self.real_less_equal(right, left)

    def real_equal(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        points = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
        return Verdict(points, (left.low <= right.high) & (right.low <= left.high))

    def real_not_equal(self, left: Ends, right: Ends) -> Verdict:
        """Compare."""
        return self.logical_not(self.real_equal(left, right))

    def logical_and(self, left: Verdict, right: Verdict) -> Verdict:
        """Return whether both hold."""
        return Verdict(left.certain & right.certain, left.possible & right.possible)

    def logical_or(self, left: Verdict, right: Verdict) -> Verdict:
        """Return whether one holds."""
        return Verdict(left.certain | right.certain, left.possible | right.possible)

    def logical_not(self, condition: Verdict) -> Verdict:
        """Return whether it does not hold."""
        return Verdict(~condition.possible, ~condition.certain)

    def _of_growing(self, compute: Callable[[Any], Any], one: Ends) -> Ends:
        return self._widened(compute(one.low), compute(one.high), FUNCTION_UNIT)

    def _around(self, corners: list[Any]) -> tuple[Any, Any]:
        """Return the least and the most of four; NaN where all are."""
        first, second, third, fourth = corners
        fmin, fmax = self.xp.fmin, self.xp.fmax
        low = fmin(fmin(first, second), fmin(third, fourth))
        return low, fmax(fmax(first, second), fmax(third, fourth))

    def _rounded(self, low: Any, high: Any) -> Ends:
        """Widen a sum or a product, but a single number that float32 holds."""
        xp = self.xp
        held = (low == high) & (xp.asarray(low).astype(xp.float32) == low)
        wide = self._widened(low, high, UNIT)
        return Ends(xp.where(held, low, wide.low), xp.where(held, high, wide.high))

    def _widened(self, low: Any, high: Any, unit: float) -> Ends:
        xp = self.xp
        finite_low, finite_high = (xp.where(xp.isfinite(end), xp.abs(end), 0.0)
                                   for end in (low, high))  # fmt: skip
        return Ends(
            low - unit * finite_low - LEAST_NORMAL, high + unit * finite_high + LEAST_NORMAL
        )


def _both(one: Ends) -> tuple[Any, Any]:
    return one.low, one.high
