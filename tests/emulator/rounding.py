"""Floating-point formats in exact arithmetic, independent of the emulator: for expected values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """``precision`` bits with the leading one; exponents of normal numbers from ``low`` up."""

    precision: int
    low: int
    high: int
    bits: int

    @property
    def largest(self) -> Fraction:
        return (2 - Fraction(1, 2 ** (self.precision - 1))) * Fraction(2) ** self.high


FORMATS = {
    "f16": Format(11, -14, 15, 16),
    "bf16": Format(8, -126, 127, 16),
    "f32": Format(24, -126, 127, 32),
    "f64": Format(53, -1022, 1023, 64),
}


def decode(bits: int, kind: str) -> float | Fraction:
    """The number of a bit pattern: a Fraction, or a float for zeros, infinities and NaN."""
    form = FORMATS[kind]
    fraction_bits = form.precision - 1
    sign = -1 if bits >> (form.bits - 1) else 1
    fraction = bits & ((1 << fraction_bits) - 1)
    exponent = bits >> fraction_bits & ((1 << (form.bits - form.precision)) - 1)
    if exponent == (1 << (form.bits - form.precision)) - 1:
        return math.nan if fraction else sign * math.inf
    if exponent == 0 and fraction == 0:
        return sign * 0.0
    if exponent:
        fraction += 1 << fraction_bits
    scale = Fraction(2) ** (max(exponent, 1) + form.low - 1 - fraction_bits)
    return sign * fraction * scale


def encode(value: Fraction, kind: str, mode: str = "rn") -> int:
    """The bits of a non-zero exact value, rounded."""
    form = FORMATS[kind]
    sign = 1 << (form.bits - 1) if value < 0 else 0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, form.low)
    quantum = Fraction(2) ** (exponent - form.precision + 1)
    units, rest = divmod(size, quantum)
    up = (mode == "rm" and value < 0) or (mode == "rp" and value > 0)
    if mode == "rn":
        up = rest * 2 > quantum or (rest * 2 == quantum and units % 2 == 1)
    units += 1 if up and rest else 0
    size = units * quantum
    infinity = ((1 << (form.bits - form.precision)) - 1) << (form.precision - 1)
    if size > form.largest:
        to_infinity = mode == "rn" or up
        return sign | (infinity if to_infinity else infinity - 1)
    # consecutive numbers have consecutive patterns
    if size < Fraction(2) ** form.low:
        return sign | int(units)
    biased = exponent - form.low
    return sign | (biased << (form.precision - 1)) + int(units)
