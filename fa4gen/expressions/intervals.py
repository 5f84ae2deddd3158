"""The operations on intervals: what an expression may become over a rectangle of indices.

A number is known by its two ends, a condition by whether it holds for certain and
whether it can hold. The rules never promise too much: an interval may be wider than what occurs,
and a condition that always holds may not be recognised where a variable is named twice.

They are written over the operations of another namespace, so that they compute numbers, arrays
and text of C alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A whole number from ``low`` to ``high``."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Truth:
    """A condition: ``certain`` that it holds everywhere, ``possible`` that it holds somewhere."""

    certain: Any
    possible: Any


@dataclass(frozen=True)
class Intervals:
    """The operations, over those of ``ends``."""

    ends: Any

    def number(self, value: int) -> Interval:
        """Return a number."""
        end = self.ends.number(value)
        return Interval(end, end)

    def element(self, name: str, *indices: Interval) -> Interval:
        """Return an element of a tensor of int32: any number."""
        del name, indices
        return Interval(self.ends.number(-(2**31)), self.ends.number(2**31 - 1))

    def add(self, left: Interval, right: Interval) -> Interval:
        """Return the sum."""
        return Interval(self.ends.add(left.low, right.low), self.ends.add(left.high, right.high))

    def subtract(self, left: Interval, right: Interval) -> Interval:
        """Return the difference."""
        low = self.ends.subtract(left.low, right.high)
        return Interval(low, self.ends.subtract(left.high, right.low))

    def negative(self, one: Interval) -> Interval:
        """Return the number with the other sign."""
        return Interval(self.ends.negative(one.high), self.ends.negative(one.low))

    def multiply(self, left: Interval, right: Interval) -> Interval:
        """Return the product."""
        ends = self.ends
        # where a factor is one number, two products
        lefts = (left.low,) if left.low is left.high else (left.low, left.high)
        rights = (right.low,) if right.low is right.high else (right.low, right.high)
        corners = [ends.multiply(one, other) for one in lefts for other in rights]
        low = high = corners[0]
        for corner in corners[1:]:
            low, high = ends.minimum(low, corner), ends.maximum(high, corner)
        return Interval(low, high)

    def absolute(self, one: Interval) -> Interval:
        """Return the distance from 0."""
        ends = self.ends
        least = ends.maximum(one.low, ends.negative(one.high))
        most = ends.maximum(one.high, ends.negative(one.low))
        return Interval(ends.maximum(least, ends.number(0)), most)

    def floor_divide(self, left: Interval, right: Interval) -> Interval:
        """Return the quotient by a positive number."""
        divisor = right.low
        return Interval(
            self.ends.floor_divide(left.low, divisor), self.ends.floor_divide(left.high, divisor)
        )

    def remainder(self, left: Interval, right: Interval) -> Interval:
        """Return the remainders of a positive divisor: all, unless no multiple is passed."""
        ends, divisor = self.ends, right.low
        same = ends.equal(
            ends.floor_divide(left.low, divisor), ends.floor_divide(left.high, divisor)
        )
        last = ends.subtract(divisor, ends.number(1))
        return Interval(
            ends.where(same, ends.remainder(left.low, divisor), ends.number(0)),
            ends.where(same, ends.remainder(left.high, divisor), last),
        )

    def bit(self, one: Interval, index: Interval) -> Interval:
        """Return a bit of a number: 0 or 1, unless number and index are known."""
        ends = self.ends
        known = ends.logical_and(ends.equal(one.low, one.high), ends.equal(index.low, index.high))
        found = ends.bit(one.low, index.low)
        return Interval(
            ends.where(known, found, ends.number(0)), ends.where(known, found, ends.number(1))
        )

    def minimum(self, left: Interval, right: Interval) -> Interval:
        """Return the smaller one."""
        low = self.ends.minimum(left.low, right.low)
        return Interval(low, self.ends.minimum(left.high, right.high))

    def maximum(self, left: Interval, right: Interval) -> Interval:
        """Return the larger one."""
        low = self.ends.maximum(left.low, right.low)
        return Interval(low, self.ends.maximum(left.high, right.high))

    def less(self, left: Interval, right: Interval) -> Truth:
        """Compare."""
        return Truth(self.ends.less(left.high, right.low), self.ends.less(left.low, right.high))

    def less_equal(self, left: Interval, right: Interval) -> Truth:
        """Compare."""
        certain = self.ends.less_equal(left.high, right.low)
        return Truth(certain, self.ends.less_equal(left.low, right.high))

    def greater(self, left: Interval, right: Interval) -> Truth:
        """Compare."""
        return self.less(right, left)

    def greater_equal(self, left: Interval, right: Interval) -> Truth:
        """Compare."""
        return self.less_equal(right, left)

    def equal(self, left: Interval, right: Interval) -> Truth:
        """Compare: certain where both are one number, the same."""
        ends = self.ends
        one = ends.logical_and(ends.equal(left.low, right.high), ends.equal(left.high, right.low))
        meet = ends.logical_and(
            ends.less_equal(left.low, right.high), ends.less_equal(right.low, left.high)
        )
        return Truth(one, meet)

    def not_equal(self, left: Interval, right: Interval) -> Truth:
        """Compare."""
        return self.logical_not(self.equal(left, right))

    def logical_and(self, left: Truth, right: Truth) -> Truth:
        """Return whether both hold."""
        both = self.ends.logical_and
        return Truth(both(left.certain, right.certain), both(left.possible, right.possible))

    def logical_or(self, left: Truth, right: Truth) -> Truth:
        """Return whether one holds."""
        either = self.ends.logical_or
        return Truth(either(left.certain, right.certain), either(left.possible, right.possible))

    def logical_not(self, condition: Truth) -> Truth:
        """Return whether it does not hold."""
        invert = self.ends.logical_not
        return Truth(invert(condition.possible), invert(condition.certain))

    def where(self, condition: Truth, first: Interval, second: Interval) -> Interval:
        """Return the first where the condition holds, else the second; or both, if unknown."""
        ends = self.ends
        low = ends.where(
            condition.certain,
            first.low,
            ends.where(condition.possible, ends.minimum(first.low, second.low), second.low),
        )
        high = ends.where(
            condition.certain,
            first.high,
            ends.where(condition.possible, ends.maximum(first.high, second.high), second.high),
        )
        return Interval(low, high)
