"""The distance of float32 from the exact value of an expression, element by element.

Values are float64 and come with a bound on the error that a kernel has so far. Every operation
adds UNIT of its result: four times the error of one rounding, since the kernel may order products
and sums in another way, and divides by a constant by multiplying. The functions of the hardware
have errors of their own (PTX ISA, ex2 and lg2). Where a comparison of floats is closer than its
error, a choice may go the other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.expressions.arrays import Arrays

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = 2.0**-22
EXACT_WHOLE = 2.0**22
"""Whole numbers up to this, and the differences that they are made of, are exact in float32."""
TANH_ERROR = 2.0**-20
LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Rounded:
    """A float, and the most that float32 is off."""

    value: Any
    error: Any


@dataclass(frozen=True)
class Decided:
    """A condition, and where it may go the other way."""

    value: Any
    doubt: Any


def _decided(condition: Any) -> Decided:
    return condition if isinstance(condition, Decided) else Decided(condition, False)


@dataclass(frozen=True)
class RoundingErrors(Arrays):
    """The operations on arrays of whole numbers, ``Rounded`` and ``Decided``; see Arrays."""

    def real(self, value: float) -> Rounded:
        """Return a float as it is written."""
        return Rounded(value, abs(value) * UNIT)

    def to_real(self, one: Any) -> Rounded:
        """Return a whole number as a float."""
        size = self.xp.abs(one)
        return Rounded(
            self.xp.asarray(one, self.xp.float64), self.xp.where(size > EXACT_WHOLE, size * UNIT, 0)
        )

    def real_add(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the sum."""
        return self._rounded(left.value + right.value, left.error + right.error)

    def real_subtract(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the difference."""
        return self._rounded(left.value - right.value, left.error + right.error)

    def real_negative(self, one: Rounded) -> Rounded:
        """Return the number with the other sign."""
        return Rounded(-one.value, one.error)

    def real_multiply(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the product."""
        error = abs(left.value) * right.error + left.error * (abs(right.value) + right.error)
        return self._rounded(left.value * right.value, error)

    def real_divide(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the quotient."""
        value = left.value / right.value
        least = self.xp.maximum(abs(right.value) - right.error, abs(right.value) * UNIT)
        return self._rounded(value, (left.error + abs(value) * right.error) / least)

    def real_absolute(self, one: Rounded) -> Rounded:
        """Return the distance from 0."""
        return Rounded(abs(one.value), one.error)

    def real_minimum(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the smaller one."""
        error = self.xp.maximum(left.error, right.error)
        return Rounded(self.xp.minimum(left.value, right.value), error)

    def real_maximum(self, left: Rounded, right: Rounded) -> Rounded:
        """Return the larger one."""
        error = self.xp.maximum(left.error, right.error)
        return Rounded(self.xp.maximum(left.value, right.value), error)

    def exp2(self, one: Rounded) -> Rounded:
        """Return 2 to this power."""
        value = self.xp.exp2(one.value)
        return self._rounded(value, value * self.xp.expm1(self.xp.minimum(one.error * LN_2, 99.0)))

    def log2(self, one: Rounded) -> Rounded:
        """Return the logarithm."""
        value = self.xp.log2(one.value)
        least = self.xp.maximum(one.value - one.error, one.value * UNIT)
        return self._rounded(value, one.error / (least * LN_2) + UNIT)

    def tanh(self, one: Rounded) -> Rounded:
        """Return the hyperbolic tangent, whose slope is at most 1."""
        return Rounded(self.xp.tanh(one.value), one.error + TANH_ERROR)

    def real_where(self, condition: Any, first: Rounded, second: Rounded) -> Rounded:
        """Return the first where the condition holds, else the second."""
        decided, where = _decided(condition), self.xp.where
        value = where(decided.value, first.value, second.value)
        error = where(decided.value, first.error, second.error)
        either = abs(first.value - second.value) + self.xp.maximum(first.error, second.error)
        return Rounded(value, where(decided.doubt, either, error))

    def logical_and(self, left: Any, right: Any) -> Decided:
        """Return whether both hold."""
        return self._joined(self.xp.logical_and, left, right)

    def logical_or(self, left: Any, right: Any) -> Decided:
        """Return whether one holds."""
        return self._joined(self.xp.logical_or, left, right)

    def logical_not(self, condition: Any) -> Decided:
        """Return whether it does not hold."""
        decided = _decided(condition)
        return Decided(self.xp.logical_not(decided.value), decided.doubt)

    def where(self, condition: Any, first: Any, second: Any) -> Any:
        """Return whole numbers; floats are not compared for them."""
        return self.xp.where(_decided(condition).value, first, second)

    def __getattr__(self, name: str) -> Any:
        """Return the function of an operation; comparisons of floats know their doubt."""
        if name.startswith("real_"):
            compare = getattr(self.xp, name.removeprefix("real_"))
            return lambda left, right: self._compared(compare, left, right)
        return super().__getattr__(name)

    def _read(self, elements: Any) -> Any:
        if elements.dtype.kind == "f":
            return Rounded(elements.astype(self.xp.float64), 0.0)
        return super()._read(elements)

    def _joined(self, join: Callable[..., Any], left: Any, right: Any) -> Decided:
        one, other = _decided(left), _decided(right)
        doubt = self.xp.logical_or(one.doubt, other.doubt)
        return Decided(join(one.value, other.value), doubt)

    def _compared(self, compare: Callable[..., Any], left: Rounded, right: Rounded) -> Decided:
        doubt = abs(left.value - right.value) <= left.error + right.error
        return Decided(compare(left.value, right.value), doubt)

    def _rounded(self, value: Any, error: Any) -> Rounded:
        return Rounded(value, error + abs(value) * UNIT)
