"""Floating-point functions of one row: reciprocals, roots, exponentials, classification.

The approximate ones are worked out in float64 and rounded, which is inside every documented bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.rows import elementary
from fa4gen.emulator.instructions.scalar.rows.ieee import TINY, flush, quiet


def _in_f64(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(a: Any) -> Any:
        # through float32, so that bf16 has one way of rounding
        return function(a.astype(np.float64)).astype(np.float32).astype(a.dtype)

    return apply


def _reciprocal(a: Any) -> Any:
    return 1.0 / a


def _reciprocal_root(a: Any) -> Any:
    return 1.0 / np.sqrt(a)


APPROXIMATE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "rcp": _in_f64(_reciprocal),
    "sqrt": _in_f64(np.sqrt),
    "rsqrt": _in_f64(_reciprocal_root),
    "sin": _in_f64(elementary.sin),
    "cos": _in_f64(elementary.cos),
    "lg2": _in_f64(elementary.log2),
    "ex2": _in_f64(elementary.exp2),
    "tanh": _in_f64(elementary.tanh),
}


def divide_approximately(a: Any, b: Any) -> Any:
    """div.approx.f32: divisors above 2^126 have a reciprocal of zero."""
    big = np.abs(b) > np.float32(2.0**126)
    if np.count_nonzero(big):
        b = np.where(big, np.copysign(np.float32(np.inf), b), b)
    return np.divide(a, b)


def coarse_f64(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make rcp or rsqrt.approx.ftz.f64: the lower 32 bits of operand and result are zero."""
    upper = np.uint64(0xFFFFFFFF00000000)

    nan = np.uint64(0x7FFFFFFF00000000).view(np.float64)

    def keep(a: Any) -> Any:
        return (a.view(np.uint64) & upper).view(np.float64)

    def apply(a: Any) -> Any:
        result = function(keep(flush(a, "f64")))
        return np.where(np.isnan(result), nan, flush(keep(result), "f64"))

    return apply


RECIPROCALS: Final = {"rcp": _reciprocal, "rsqrt": _reciprocal_root}


def copy_sign(a: Any, b: Any) -> Any:
    """``b`` with the sign of ``a``, as bits (so of NaNs too)."""
    bits = _bits(a)
    sign = bits(1 << (a.dtype.itemsize * 8 - 1))
    return ((a.view(bits) & sign) | (b.view(bits) & ~sign)).view(a.dtype)


def absolute(a: Any) -> Any:
    """The sign bit cleared."""
    bits = _bits(a)
    return (a.view(bits) & bits((1 << (a.dtype.itemsize * 8 - 1)) - 1)).view(a.dtype)


def negated(a: Any) -> Any:
    """The sign bit turned over."""
    bits = _bits(a)
    return (a.view(bits) ^ bits(1 << (a.dtype.itemsize * 8 - 1))).view(a.dtype)


def negate_f64(a: Any) -> Any:
    """NaNs keep their sign and become quiet, as on an H200."""
    return np.where(np.isnan(a), quiet(a), np.negative(a))


def _bits(a: Any) -> Any:
    return {2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize]


def _subnormal(a: Any, kind: str) -> Any:
    return (np.abs(a) < TINY[kind]) & (a != 0)


CLASSES: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "finite": lambda a, kind: np.isfinite(a),
    "infinite": lambda a, kind: np.isinf(a),
    "number": lambda a, kind: np.logical_not(np.isnan(a)),
    "notanumber": lambda a, kind: np.isnan(a),
    # zeros count as normal
    "normal": lambda a, kind: np.isfinite(a) & np.logical_not(_subnormal(a, kind)),
    "subnormal": _subnormal,
}
