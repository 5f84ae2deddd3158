"""The operations as text of C and CUDA C++, with as few parentheses as are needed.

Numbers are folded: what has no variable in it becomes one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from fa4gen.expressions import exact
from fa4gen.expressions.words import BITS, FLOOR_DIVIDE, FLOOR_REMAINDER

if TYPE_CHECKING:
    from collections.abc import Callable


class Rank(IntEnum):
    """The binding strength of an operator of C; see C17, 6.5."""

    CHOICE = 0
    OR = 1
    AND = 2
    BITS = 3
    EQUAL = 4
    COMPARE = 5
    SHIFT = 6
    SUM = 7
    PRODUCT = 8
    SIGN = 9
    ATOM = 10


@dataclass(frozen=True)
class C:
    """A piece of C."""

    text: str
    rank: Rank = Rank.ATOM
    value: int | bool | None = None
    """The value of a number, or of a condition that is always true or false."""
    least: int | None = None
    """A lower bound of its value, if one is known."""

    def within(self, rank: Rank) -> str:
        """Return it as an operand of an operator of this rank."""
        return self.text if self.rank >= rank else f"({self.text})"


def number(value: int) -> C:
    """Return a number."""
    return C(str(value), Rank.ATOM if value >= 0 else Rank.SIGN, value, value)


def element(name: str, *indices: C) -> C:
    """Return an element of a declared tensor, which a function of the kernel reads."""
    return C(f"given_{name}_at({', '.join(['problem', *(index.text for index in indices)])})")


def truth(value: bool) -> C:
    """Return true or false."""
    return C("true" if value else "false", value=value)


def _folded(compute: Callable[..., int | bool], *arguments: C) -> C | None:
    values = [one.value for one in arguments if one.value is not None]
    if len(values) < len(arguments):
        return None
    value = compute(*values)
    return truth(value) if isinstance(value, bool) else number(value)


def _least_sum(left: C, right: C) -> int | None:
    return None if left.least is None or right.least is None else left.least + right.least


def add(left: C, right: C) -> C:
    """Return the sum."""
    if left.value == 0 and left.value is not False:
        return right
    if right.value is not None and right.value <= 0:
        return subtract(left, number(-right.value)) if right.value else left
    text = f"{left.within(Rank.SUM)} + {right.within(Rank.SUM)}"
    least = _least_sum(left, right)
    return _folded(exact.add, left, right) or C(text, Rank.SUM, least=least)


def subtract(left: C, right: C) -> C:
    """Return the difference."""
    if right.value == 0:
        return left
    text = f"{left.within(Rank.SUM)} - {right.within(Rank.PRODUCT)}"
    least = None if right.value is None or left.least is None else left.least - right.value
    return _folded(exact.subtract, left, right) or C(text, Rank.SUM, least=least)


def multiply(left: C, right: C) -> C:
    """Return the product."""
    if left.value == 1:
        return right
    if right.value == 1:
        return left
    text = f"{left.within(Rank.PRODUCT)} * {right.within(Rank.SIGN)}"
    positive = (left.least or -1) >= 0 and (right.least or -1) >= 0
    least = 0 if positive or (left.least == 0 and right.least == 0) else None
    return _folded(exact.multiply, left, right) or C(text, Rank.PRODUCT, least=least)


def negative(one: C) -> C:
    """Return the number with the other sign."""
    return _folded(exact.negative, one) or C(f"-{one.within(Rank.ATOM)}", Rank.SIGN)


def absolute(one: C) -> C:
    """Return the distance from 0."""
    return _folded(exact.absolute, one) or C(f"abs({one.text})", least=0)


def floor_divide(left: C, right: C) -> C:
    """Return the quotient by a positive number, rounded down."""
    folded = _folded(exact.floor_divide, left, right)
    if folded or right.value == 1:
        return folded or left
    if left.least is not None and left.least >= 0:
        text = f"{left.within(Rank.PRODUCT)} / {right.text}"
        return C(text, Rank.PRODUCT, least=0)
    return C(f"{FLOOR_DIVIDE}({left.text}, {right.text})")


def remainder(left: C, right: C) -> C:
    """Return the remainder of a positive divisor: from 0 to that number less 1."""
    folded = _folded(exact.remainder, left, right)
    if folded:
        return folded
    if left.least is not None and left.least >= 0:
        return C(f"{left.within(Rank.PRODUCT)} % {right.text}", Rank.PRODUCT, least=0)
    return C(f"{FLOOR_REMAINDER}({left.text}, {right.text})", least=0)


def minimum(left: C, right: C) -> C:
    """Return the smaller one."""
    if left.text == right.text:
        return left
    known = [left.least, right.least]
    least = None if None in known else min(one for one in known if one is not None)
    return _folded(min, left, right) or C(f"min({left.text}, {right.text})", least=least)


def maximum(left: C, right: C) -> C:
    """Return the larger one."""
    if left.text == right.text:
        return left
    least = max((one for one in (left.least, right.least) if one is not None), default=None)
    return _folded(max, left, right) or C(f"max({left.text}, {right.text})", least=least)


def bit(one: C, index: C) -> C:
    """Return a bit of a number, 0 or 1; of an index outside of them, the nearest."""
    folded = _folded(exact.bit, one, index)
    within = minimum(index if (index.least or -1) >= 0 else maximum(index, number(0)),
                     number(BITS - 1))  # fmt: skip
    text = f"{one.within(Rank.SHIFT)} >> {within.within(Rank.SUM)} & 1"
    return folded or C(text, Rank.BITS, least=0)


def _compare(sign: str, rank: Rank, compute: Callable[..., bool]) -> Callable[[C, C], C]:
    def compare(left: C, right: C) -> C:
        text = f"{left.within(Rank(rank + 1))} {sign} {right.within(Rank(rank + 1))}"
        return _folded(compute, left, right) or C(text, rank)

    return compare


less = _compare("<", Rank.COMPARE, exact.less)
less_equal = _compare("<=", Rank.COMPARE, exact.less_equal)
greater = _compare(">", Rank.COMPARE, exact.greater)
greater_equal = _compare(">=", Rank.COMPARE, exact.greater_equal)
equal = _compare("==", Rank.EQUAL, exact.equal)
not_equal = _compare("!=", Rank.EQUAL, exact.not_equal)


def logical_and(left: C, right: C) -> C:
    """Return whether both hold."""
    for one, other in ((left, right), (right, left)):
        if one.value is not None:
            return other if one.value else truth(False)
    if left.text == right.text:
        return left
    return C(f"{left.within(Rank.AND)} && {right.within(Rank.AND)}", Rank.AND)


def logical_or(left: C, right: C) -> C:
    """Return whether one holds; ``&&`` within ``||`` is in parentheses, as compilers ask for."""
    for one, other in ((left, right), (right, left)):
        if one.value is not None:
            return truth(True) if one.value else other
    if left.text == right.text:
        return left
    sides = [f"({one.text})" if one.rank in (Rank.AND, Rank.CHOICE) else one.text
             for one in (left, right)]  # fmt: skip
    return C(" || ".join(sides), Rank.OR)


def logical_not(condition: C) -> C:
    """Return whether it does not hold."""
    return _folded(exact.logical_not, condition) or C(f"!{condition.within(Rank.SIGN)}", Rank.SIGN)


def where(condition: C, first: C, second: C) -> C:
    """Return the first where the condition holds, else the second."""
    if condition.value is not None:
        return first if condition.value else second
    if first.text == second.text:
        return first
    text = f"{condition.within(Rank.OR)} ? {first.within(Rank.OR)} : {second.within(Rank.CHOICE)}"
    known = [first.least, second.least]
    least = None if None in known else min(one for one in known if one is not None)
    return C(text, Rank.CHOICE, least=least)
