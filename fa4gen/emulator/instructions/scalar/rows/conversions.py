"""Conversions of rows between numbers of different types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.rows import ieee
from fa4gen.emulator.instructions.scalar.rows.ieee import BF16, DTYPES

_TO_INTEGER: Final[dict[str, Any]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def to_integral(x: Any, mode: str) -> Any:
    """A whole number of the same type."""
    if x.dtype == BF16:
        return _TO_INTEGER[mode](x.astype(np.float32)).astype(BF16)
    return _TO_INTEGER[mode](x)


def float_to_integer(x: Any, mode: str, dtype: Any) -> Any:
    """A whole number, clamped to the integer type.

    A NaN becomes 0, or only the top bit where the source has 64 bits or the result has.
    """
    double = x.dtype == np.float64
    whole = _TO_INTEGER[mode](x.astype(np.float64))
    bounds = np.iinfo(dtype)
    bits = dtype.itemsize * 8
    nan = 1 << (bits - 1) if double or bits == 64 else 0
    # clamped by comparisons, since the largest 64-bit integers are not float64 numbers
    low, high = whole <= float(bounds.min), whole >= float(bounds.max)
    inside = np.where(low | high | np.isnan(whole), 0.0, whole).astype(dtype)
    result = np.where(low, dtype.type(bounds.min), np.where(high, dtype.type(bounds.max), inside))
    exceptional = np.array(nan, f"u{bits // 8}").view(dtype)
    return np.where(np.isnan(whole), exceptional, result)


def integer_to_float(x: Any, kind: str, mode: str) -> Any:
    """Rounded once, whatever the widths."""
    if x.dtype.itemsize < 8:
        return ieee.round_to(x.astype(np.float64), kind, mode)
    if mode == "rn" and kind in ("f32", "f64"):
        return x.astype(DTYPES[kind])
    shift = x.dtype.type(32)
    high = (x >> shift).astype(np.float64) * 2.0**32
    low = (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64)
    total, error = ieee.two_sum(high, low)
    if kind != "f64":
        return ieee.round_to(ieee.to_odd(total, error), kind, mode)
    if mode == "rz":
        wrong, towards = (error != 0) & ((error < 0) == (total > 0)), 0.0
    else:
        wrong = error < 0 if mode == "rm" else error > 0
        towards = -np.inf if mode == "rm" else np.inf
    return np.where(wrong, np.nextafter(total, towards), total)


def to_bf16_by_chance(x: Any, random: Any) -> Any:
    """Float32 to bf16: away from zero where 16 random bits and those dropped carry."""
    bits = x.view(np.uint32)
    rounded = (bits + (random & np.uint32(0xFFFF))) >> np.uint32(16)
    kept = np.where(np.isfinite(x), rounded, bits >> np.uint32(16)).astype(np.uint16)
    return ieee.canonical(np.where(np.isnan(x), np.uint16(0x7FFF), kept).view(BF16), "bf16")


def float_to_float(x: Any, kind: str, mode: str) -> Any:
    """Another type, or the same.

    NaNs become canonical, but those of float32 and float64 stay where the type does, and those of
    bf16 keep their bits in a float32, as on an H200.
    """
    if x.dtype == DTYPES[kind]:
        return ieee.canonical(x, kind) if kind in ("f16", "bf16") else x
    if x.dtype == BF16 and kind == "f32":
        return x.astype(np.float32)  # the upper half of a float32, as bits
    if x.dtype == np.float64:
        return _from_f64(x, kind, mode)
    if mode == "rn":
        # float32 holds every number of the narrower types
        wide = x if x.dtype == np.float32 else x.astype(np.float32)
        return ieee.canonical(wide.astype(DTYPES[kind]), kind)
    return ieee.canonical(ieee.round_to(x.astype(np.float64), kind, mode), kind)


def _from_f64(x: Any, kind: str, mode: str) -> Any:
    """Float64 to a narrower type; quiet NaNs with the sign and the upper bits of the payload."""
    result = ieee.round_to(x, kind, mode)
    nan = np.isnan(x)
    if kind == "f32" or not np.count_nonzero(nan):
        return result
    top = np.uint32(16) if kind == "bf16" else np.uint32(13)
    bits = x.astype(np.float32).view(np.uint32)
    sign = (bits >> np.uint32(16)) & np.uint32(0x8000)
    pattern = sign | (bits & np.uint32(0x7FFFFFFF)) >> top & np.uint32(0x7FFF)
    if kind == "f16":
        pattern = sign | np.uint32(0x7C00) | (pattern & np.uint32(0x3FF))
    return np.where(nan, pattern.astype(np.uint16).view(DTYPES[kind]), result)


def clamp_finite(x: Any, kind: str) -> Any:
    """Infinities become the largest numbers (.satfinite)."""
    infinite = np.isinf(x)
    if not np.count_nonzero(infinite):
        return x
    largest = {"f16": np.float16(65504.0), "bf16": np.uint16(0x7F7F).view(BF16)}[kind]
    return np.where(infinite, np.copysign(largest, x), x)


def to_tf32(x: Any, mode: str, relu: bool, finite: bool) -> Any:
    """Float32 with ten bits after the point; ``rna`` rounds ties away from zero.

    NaNs as an H200 gives them: ``rna`` treats them as numbers, which may make infinities of them.
    """
    bits = x.view(np.uint32)
    size, sign = bits & np.uint32(0x7FFFFFFF), bits & np.uint32(0x80000000)
    if mode == "rna":
        size = np.minimum(size + np.uint32(0x1000), np.uint32(0x7FFFFFFF))
    elif mode == "rn":
        size = size + np.uint32(0xFFF) + ((size >> np.uint32(13)) & np.uint32(1))
    size = size & np.uint32(0xFFFFE000)
    if finite:
        size = np.where(size >= np.uint32(0x7F800000), size - np.uint32(0x2000), size)
    result = (sign | size).view(np.float32)
    if mode != "rna":
        result = np.where(np.isnan(x), np.uint32(0x7FFFE000).view(np.float32), result)
    return np.where(result <= 0, np.float32(0), result) if relu else result


def clamp_integer(x: Any, dtype: Any) -> Any:
    """Clamped to another integer type (.sat)."""
    own, other = np.iinfo(x.dtype), np.iinfo(dtype)
    low, high = max(own.min, other.min), min(own.max, other.max)
    return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(dtype)


def pack_halves(high: Any, low: Any) -> Any:
    """Two rows of 16-bit numbers as 32-bit words."""
    upper = np.asarray(high).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return upper | np.asarray(low).view(np.uint16)


def pack_bf16(high: Any, low: Any, out: Any) -> Any:
    """cvt.rn.bf16x2.f32 of two float32 rows; ``out`` is a uint32 row or None."""
    upper, lower = high.astype(BF16), low.astype(BF16)
    squares = high.dot(high) + low.dot(low)
    if squares != squares:
        upper, lower = ieee.canonical(upper, "bf16"), ieee.canonical(lower, "bf16")
    if out is None:
        return pack_halves(upper, lower)
    halves = out.view(BF16)
    halves[1::2] = upper
    halves[::2] = lower
    return out
