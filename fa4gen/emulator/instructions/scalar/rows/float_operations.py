"""Floating-point operations over rows, built from the modifiers of an instruction.

The plain float32 ones, of which kernels have most, take the row to write as their last argument
and cost few NumPy calls; the others go through ``ieee``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from fa4gen.emulator.instructions.scalar.rows import ieee
from fa4gen.emulator.instructions.scalar.rows.elementary import exp2_f32
from fa4gen.emulator.instructions.scalar.rows.ieee import NAN, TINY, canonical, flush

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Style:
    """The treatment of results (and operands) of a type."""

    kind: str
    mode: str = "rn"
    ftz: bool = False
    saturated: bool = False
    relu: bool = False

    @property
    def plain(self) -> bool:
        """Round to nearest and nothing else."""
        return self.mode == "rn" and not (self.ftz or self.saturated or self.relu)

    def apply(self, function: Function) -> Function:
        """``function`` with operands and results treated so."""
        kind = self.kind

        def styled(*rows: Any) -> Any:
            if self.ftz:
                rows = tuple(flush(row, kind) for row in rows)
            result = ieee.settled(function(*rows), kind, *rows)
            if self.ftz:
                result = flush(result, kind)
            if self.saturated:
                result = ieee.clamp_unit(result, kind)
            return ieee.clamp_positive(result, kind) if self.relu else result

        return styled


def _settle(row: Any) -> Any:
    """Make the NaNs of a float32 row canonical, in place.

    The sum of squares is a NaN where one of the numbers is, and costs less than looking at each.
    """
    squares = row.dot(row)
    if squares != squares:
        row[np.isnan(row)] = NAN["f32"]
    return row


def add_f32(a: Any, b: Any, out: Any) -> Any:
    return _settle(np.add(a, b, out))


def subtract_f32(a: Any, b: Any, out: Any) -> Any:
    return _settle(np.subtract(a, b, out))


def multiply_f32(a: Any, b: Any, out: Any) -> Any:
    return _settle(np.multiply(a, b, out))


def absolute_f32(a: Any, out: Any) -> Any:
    return _settle(np.absolute(a, out))


def negate_f32(a: Any, out: Any) -> Any:
    return _settle(np.negative(a, out))


_LOW_BITS: Final = np.int64((1 << 28) - 1)


def fused_f32(a: Any, b: Any, c: Any, out: Any) -> Any:
    """``a * b + c``, rounded once.

    The float64 product is exact, but the sum is rounded twice. That matters only where it is
    halfway between two float32, and then its low 28 bits are zero.
    """
    total = np.multiply(a, b, dtype=np.float64)
    product = total
    total = total + c
    low = total.view(np.int64) & _LOW_BITS
    if np.count_nonzero(low) != low.size:
        total = ieee.to_odd(*ieee.two_sum(product, c.astype(np.float64)))
        total = np.where(np.isnan(total), NAN["f32"], total.astype(np.float32))
    if out is None:
        return total.astype(np.float32)
    out[...] = total
    return out


def extreme(largest: bool, propagate: bool, magnitude: bool) -> Function:
    """Min or max of two: a NaN loses, or wins if ``propagate``; -0 is below +0.

    ``magnitude`` compares absolute values and gives the result the product of the signs.
    """

    def apply(a: Any, b: Any) -> Any:
        if not magnitude:
            return ieee.extreme_of(a, b, largest, propagate)
        result = ieee.extreme_of(np.abs(a), np.abs(b), largest, propagate)
        one = result.dtype.type(1)
        sign = np.where(np.signbit(a) != np.signbit(b), -one, one)
        return np.where(np.isnan(result), result, np.copysign(result, sign))

    return apply


def extreme_f32(largest: bool) -> Function:
    """The plain float32 min or max."""
    choose = np.maximum if largest else np.minimum

    def apply(a: Any, b: Any) -> Any:
        result = choose(a, b)
        squares = result.dot(result)  # as in _settle
        if squares != squares or np.count_nonzero(result) != result.size:
            return canonical(ieee.extreme_of(a, b, largest), "f32")
        return result

    return apply


def exponential_f32(a: Any, out: Any) -> Any:
    """ex2.approx.f32."""
    squares = a.dot(a)  # as in _settle
    nan = np.isnan(a) if squares != squares else None
    wide = exp2_f32(a if nan is None else np.where(nan, np.float32(0), a))
    if out is None:
        out = wide.astype(np.float32)
    else:
        out[...] = wide
    if nan is not None:
        out[nan] = NAN["f32"]
    return out


def exponential_flushed_f32(a: Any, out: Any) -> Any:
    """ex2.approx.ftz.f32: results below the normal numbers are zero; 2 to a subnormal is 1."""
    result = exponential_f32(a, out)
    np.copyto(result, np.float32(0), where=result < TINY["f32"])
    return result


def _product_bf16(a: Any, b: Any) -> Any:
    result = np.multiply(a, b)
    if np.count_nonzero(np.abs(result) <= TINY["bf16"]):
        # the float32 product between may have been rounded
        return ieee.multiply(a, b, "bf16", "rn")
    return result


def binary(name: str, style: Style) -> Function:
    """add, sub or mul of two rows."""
    kind, mode = style.kind, style.mode
    function: Function
    if name == "mul":
        if mode == "rn":
            function = _product_bf16 if kind == "bf16" else np.multiply
        else:

            def function(a: Any, b: Any) -> Any:
                return ieee.multiply(a, b, kind, mode)
    elif mode == "rn":
        # sums of narrower types in float32 are rounded twice, to no effect
        function = np.add if name == "add" else np.subtract
    elif name == "add":

        def function(a: Any, b: Any) -> Any:
            return ieee.add(a, b, kind, mode)
    else:

        def function(a: Any, b: Any) -> Any:
            return ieee.add(a, np.negative(b), kind, mode)

    return style.apply(function)


def fused(style: Style) -> Function:
    """The fma of three rows."""
    kind, mode = style.kind, style.mode
    if kind == "f32" and mode == "rn":
        return style.apply(lambda a, b, c: fused_f32(a, b, c, None))
    return style.apply(lambda a, b, c: ieee.fused(a, b, c, kind, mode))


# Plain float32 operations that write a row given to them.
INTO: Final[dict[str, Function]] = {
    "add": add_f32,
    "sub": subtract_f32,
    "mul": multiply_f32,
    "fma": fused_f32,
    "abs": absolute_f32,
    "neg": negate_f32,
}
