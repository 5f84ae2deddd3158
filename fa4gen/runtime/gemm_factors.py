"""The factors alpha and beta of a matrix product, which the kernel has as float32."""

from __future__ import annotations

import ctypes
import math

from fa4gen.runtime.refusal import refusal

MAX_FLOAT32 = 3.4028234663852886e38


def as_factor(name: str, value: object) -> float:
    """Return alpha or beta as a float; ArgumentError for a number outside of float32's range."""
    expected = "a finite number that float32 holds"
    if not isinstance(value, (bool, str)):
        try:
            factor = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise refusal(name, repr(value), expected) from None
        if math.isfinite(factor) and abs(factor) <= MAX_FLOAT32:
            return factor
    raise refusal(name, repr(value), expected)


def is_zero(factor: float) -> bool:
    """Return whether a factor is 0 as float32."""
    return ctypes.c_float(factor).value == 0
