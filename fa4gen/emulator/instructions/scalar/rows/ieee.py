"""Rounding as the hardware does it: f16, bf16, f32 and f64 with every rounding mode.

Sums and products of the narrow types are formed in float64 *rounded to odd*: a result that is not
exact gets an odd last bit, so that rounding it once more equals rounding the exact value (the
narrow types have less than 53 - 2 bits).
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any, Final

import ml_dtypes
import numpy as np

BF16: Final = ml_dtypes.bfloat16

# The NaN that arithmetic gives; f64 keeps those of its operands, and else gives the negative one.
NAN: Final[dict[str, Any]] = {
    "f32": np.uint32(0x7FFFFFFF).view(np.float32),
    "f16": np.uint16(0x7FFF).view(np.float16),
    "bf16": np.uint16(0x7FFF).view(BF16),
}
_DEFAULT_F64: Final = np.uint64(0xFFF8 << 48).view(np.float64)
# The smallest normal numbers.
TINY: Final[dict[str, Any]] = {
    "f32": np.float32(2.0**-126),
    "f64": np.float64(2.0**-1022),
    "f16": np.float16(2.0**-14),
    "bf16": np.array(2.0**-126, BF16)[()],
}
DTYPES: Final[dict[str, Any]] = {
    "f16": np.float16,
    "bf16": BF16,
    "f32": np.float32,
    "f64": np.float64,
}


def flush(x: Any, kind: str) -> Any:
    """Subnormal numbers become zeros of the same sign (.ftz)."""
    small = np.abs(x) < TINY[kind]
    if not np.count_nonzero(small):
        return x
    return np.where(small, np.copysign(DTYPES[kind](0), x), x)


def canonical(x: Any, kind: str) -> Any:
    """The values with every NaN replaced by that of arithmetic; f64 is left alone."""
    if kind == "f64":
        return x
    nan = np.isnan(x)
    return np.where(nan, NAN[kind], x) if np.count_nonzero(nan) else x


def settled(result: Any, kind: str, *operands: Any) -> Any:
    """NaNs as arithmetic on the operands gives them."""
    if kind == "f64":
        return settled_f64(result, *operands)
    return canonical(result, kind)


def quiet(x: Any) -> Any:
    """NaNs of f64 with the bit that makes them quiet; other numbers get it too."""
    return (x.view(np.uint64) | np.uint64(1 << 51)).view(np.float64)


def settled_f64(result: Any, *operands: Any) -> Any:
    """The f64 result with NaNs as an H200 makes them, whatever the host does.

    A NaN is that of the first operand that is one, made quiet, or the negative one.
    """
    nan = np.isnan(result)
    if not np.count_nonzero(nan):
        return result
    chosen: Any = _DEFAULT_F64
    for operand in reversed(operands):
        chosen = np.where(np.isnan(operand), quiet(operand), chosen)
    return np.where(nan, chosen, result)


def clamp_unit(x: Any, kind: str) -> Any:
    """Clamp to [+0, 1]; a NaN becomes +0 (.sat)."""
    zero, one = DTYPES[kind](0), DTYPES[kind](1)
    return np.where(x > zero, np.where(x < one, x, one), zero)


def clamp_positive(x: Any, kind: str) -> Any:
    """Negative numbers and -0 become +0, NaNs canonical (.relu)."""
    return canonical(np.where((x > 0) | np.isnan(x), x, DTYPES[kind](0)), kind)


def extreme_of(a: Any, b: Any, largest: bool, propagate: bool = False) -> Any:
    """The larger or smaller of two rows of floats; -0 is below +0.

    A NaN loses, or wins if ``propagate``; of two NaNs the second is taken, as it is. NumPy's fmin
    and fmax depend on the host's vector unit for signalling NaNs and for zeros, and on the place in
    the row.
    """
    result = (np.maximum if largest else np.minimum)(a, b)
    if np.count_nonzero(result) != result.size:
        bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[result.dtype.itemsize]
        join = np.bitwise_and if largest else np.bitwise_or
        result = np.where(a == b, join(a.view(bits), b.view(bits)).view(result.dtype), result)
    if not np.count_nonzero(np.isnan(result)):
        return result
    first, second = np.isnan(a), np.isnan(b)
    if propagate:
        return np.where(second, b, np.where(first, a, result))
    return np.where(first, b, np.where(second, a, result))


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The float64 sum and its error, exactly (the error is NaN or 0 where the sum is infinite)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def to_odd(total: Any, error: Any) -> Any:
    """``total + error`` rounded to odd; ``total`` is the float64 nearest to it."""
    inexact = (error != 0) & np.isfinite(total) & (error == error)
    if not np.count_nonzero(inexact):
        return total
    bits = total.view(np.int64)
    # towards zero if the nearest is further from zero than the exact value ...
    away = inexact & ((error < 0) == (total > 0))
    bits = bits - away
    # ... and a last bit that says that there is more
    return (bits | inexact).view(np.float64)


def odd_sum(a: Any, b: Any) -> Any:
    return to_odd(*two_sum(a, b))


def odd_f32(x: Any) -> Any:
    """Float64 rounded to odd as float32."""
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    inexact = (wide != x) & ~np.isnan(x)
    if not np.count_nonzero(inexact):
        return near
    away = inexact & (np.abs(wide) > np.abs(x))
    return ((near.view(np.int32) - away) | inexact).view(np.float32)


def nearest(x: Any, kind: str) -> Any:
    """Float64 (rounded to odd) to the nearest number of a type, ties to even."""
    if kind == "bf16":
        return odd_f32(x).astype(BF16)
    return x.astype(DTYPES[kind])


def round_to(x: Any, kind: str, mode: str) -> Any:
    """Float64 (rounded to odd) to a narrower type; NaNs are kept."""
    near = nearest(x, kind)
    if mode == "rn" or kind == "f64":
        return near
    wide = near.astype(np.float64)
    down = DTYPES[kind](-np.inf)
    up = DTYPES[kind](np.inf)
    if mode == "rz":
        wrong = np.abs(wide) > np.abs(x)
        towards = DTYPES[kind](0)
    elif mode == "rm":
        wrong = wide > x
        towards = down
    else:
        wrong = wide < x
        towards = up
    if not np.count_nonzero(wrong):
        return near
    return np.where(wrong, np.nextafter(near, towards), near)


def zero_sign(result: Any, a: Any, b: Any, mode: str, kind: str) -> Any:
    """Give the exact zero sum of numbers that cancel the sign of the mode: -0 for rm."""
    if mode != "rm":
        return result
    cancelled = (result == 0) & (a + b == 0) & (np.signbit(a) | np.signbit(b))
    return np.where(cancelled, -DTYPES[kind](0), result)


def add(a: Any, b: Any, kind: str, mode: str) -> Any:
    """The sum of two numbers that float64 holds, rounded once to ``kind``."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    if kind != "f64":
        total = round_to(odd_sum(x, y), kind, mode)
    elif mode == "rn":
        return x + y
    else:
        total = _directed_f64(lambda p, q: p + q, mode, x, y)
    return zero_sign(total, x, y, mode, kind)


def multiply(a: Any, b: Any, kind: str, mode: str) -> Any:
    """The product of two numbers of the type."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    if kind == "f64" and mode != "rn":
        return _directed_f64(lambda p, q: p * q, mode, x, y)
    # the product of two numbers of at most 24 bits is exact
    return round_to(x * y, kind, mode)


def fused(a: Any, b: Any, c: Any, kind: str, mode: str) -> Any:
    """``a * b + c`` rounded once."""
    x, y, z = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
    product = x * y
    if kind != "f64":
        total = round_to(odd_sum(product, z), kind, mode)
    else:
        total = (
            fused_f64(x, y, z)
            if mode == "rn"
            else _directed_f64(lambda p, q, r: p * q + r, mode, x, y, z)
        )
        # an infinite addend wins over a product that is only too large
        infinite = np.isinf(z) & np.isfinite(x) & np.isfinite(y)
        total = np.where(infinite, z, total)
    return zero_sign(total, product, z, mode, kind)


def divide(a: Any, b: Any, kind: str, mode: str) -> Any:
    """The quotient: of f32, float64's cannot hit a rounding boundary unless it is exact."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    if kind == "f64" and mode != "rn":
        return _directed_f64(lambda p, q: p / q, mode, x, y)
    return round_to(x / y, kind, mode)


def square_root(a: Any, kind: str, mode: str) -> Any:
    x = a.astype(np.float64)
    near = np.sqrt(x)
    if kind != "f64" or mode == "rn":
        return round_to(near, kind, mode)

    def step(value: float, root: float) -> float:
        if not isfinite(root) or root == 0:
            return root
        square, exact = Fraction(root) ** 2, Fraction(value)
        if mode == "rp":
            return root if square >= exact else float(np.nextafter(root, np.inf))
        return root if square <= exact else float(np.nextafter(root, 0.0))

    pairs = zip(np.ravel(x).tolist(), np.ravel(near).tolist(), strict=True)
    return np.array([step(value, root) for value, root in pairs])


def fused_f64(x: Any, y: Any, z: Any) -> Any:
    """``x * y + z`` of float64, rounded to nearest once.

    Products and sums are split into value and error (Dekker, Knuth), and the small parts added
    with rounding to odd (Boldo and Melquiond). Numbers so large or small that an error could
    overflow or vanish are worked out as fractions.
    """
    x, y, z = np.broadcast_arrays(x, y, z)
    high = x * y
    (xh, xl), (yh, yl) = _split(x), _split(y)
    low = ((xh * yh - high) + xh * yl + xl * yh) + xl * yl
    first, first_error = two_sum(z, low)
    total, total_error = two_sum(high, first)
    result = total + odd_sum(first_error, total_error)
    sizes = [np.abs(value) for value in (x, y, z)]
    odd = np.zeros(result.shape, np.bool_)
    for size in sizes:
        odd |= ((size < 2.0**-300) & (size != 0)) | ~(size < 2.0**300)
    result = np.where((x == 0) | (y == 0) | (high + z == 0), high + z, result)
    for lane in np.flatnonzero(odd | (high + z == 0)):
        p, q, r = float(x[lane]), float(y[lane]), float(z[lane])
        plain = p * q + r
        if isfinite(p) and isfinite(q) and isfinite(r):
            exact = Fraction(p) * Fraction(q) + Fraction(r)
            plain = _to_float(exact) if exact else (plain if plain == 0 else 0.0)
        result[lane] = plain
    return result


def _split(x: Any) -> tuple[Any, Any]:
    """Two halves of the significand, which add up to ``x``."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _directed_f64(function: Any, mode: str, *values: Any) -> Any:
    """A float64 operation with a directed rounding mode, lane by lane in exact fractions."""
    arrays = np.broadcast_arrays(*values)
    near = np.array(function(*arrays))
    for lane, row in enumerate(zip(*(array.tolist() for array in arrays), strict=True)):
        if not all(map(isfinite, row)):
            continue
        try:
            exact = function(*map(Fraction, row))
        except ZeroDivisionError:
            continue
        if exact != 0:
            near[lane] = _round_fraction(exact, mode)
    return near


def _round_fraction(exact: Fraction, mode: str) -> float:
    value = _to_float(exact)
    too_big = value == float("inf") or (isfinite(value) and Fraction(value) > exact)
    too_small = value == float("-inf") or (isfinite(value) and Fraction(value) < exact)
    if too_big and (mode == "rm" or (mode == "rz" and exact > 0)):
        return float(np.nextafter(value, -np.inf))
    if too_small and (mode == "rp" or (mode == "rz" and exact < 0)):
        return float(np.nextafter(value, np.inf))
    return value
