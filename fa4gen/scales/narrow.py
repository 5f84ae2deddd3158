"""Floats of 4 and 8 bits: float32 numbers to bit patterns and back, as ``cvt.rn.satfinite`` does.

Arithmetic of NumPy and CuPy alike, so that both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

FLOAT_BITS, FLOAT_MANTISSA, FLOAT_BIAS = 32, 23, 127


@dataclass(frozen=True)
class Element:
    """A narrow float with a sign, an exponent and a mantissa."""

    bits: int
    mantissa: int
    bias: int
    largest: float
    nan: int
    """The pattern that a NaN becomes: a NaN, or the largest number of a type without one."""

    @property
    def smallest_normal(self) -> float:
        """The smallest power of two with a whole mantissa."""
        return float(2.0 ** (1 - self.bias))


ELEMENTS: Mapping[str, Element] = {
    "fp8_e4m3": Element(8, 3, 7, 448.0, 0x7F),
    "fp8_e5m2": Element(8, 2, 15, 57344.0, 0x7F),
    "fp4_e2m1": Element(4, 1, 1, 6.0, 0x7),
}


def encode(values: Any, element: Element, xp: Any = np) -> Any:
    """Round float32 ``values`` to nearest even; return their bit patterns as uint8.

    Numbers beyond the largest become the largest, and infinities, too.
    """
    is_nan = xp.isnan(values)
    size = xp.where(is_nan, np.float32(0), xp.minimum(xp.abs(values), np.float32(element.largest)))
    # A sum with 1.5 * 2^k has no bits below the last one of the type at this power of two.
    power = (size.view(xp.uint32) & np.uint32(0x7F800000)).view(xp.float32)
    magic = xp.maximum(power, np.float32(element.smallest_normal))
    magic = magic * np.float32(1.5 * 2.0 ** (FLOAT_MANTISSA - element.mantissa))
    rounded = ((size + magic) - magic).astype(xp.float32)
    wide = rounded.view(xp.uint32) >> np.uint32(FLOAT_MANTISSA - element.mantissa)
    normal = wide - np.uint32((FLOAT_BIAS - element.bias) << element.mantissa)
    steps = rounded * np.float32(2.0**element.mantissa / element.smallest_normal)
    is_normal = rounded >= np.float32(element.smallest_normal)
    small = xp.where(is_normal, np.float32(0), steps).astype(xp.uint32)
    pattern = xp.where(is_normal, normal, small)
    sign = (xp.ascontiguousarray(values).view(xp.uint32) >> np.uint32(FLOAT_BITS - 1)) << np.uint32(
        element.bits - 1
    )
    return xp.where(is_nan, np.uint32(element.nan), pattern | sign).astype(xp.uint8)


def decode(patterns: Any, element: Element, xp: Any = np) -> Any:
    """Return the float32 numbers of bit patterns."""
    return xp.asarray(_numbers(element))[patterns & np.uint8((1 << element.bits) - 1)]


def _numbers(element: Element) -> Any:
    """Return the number of each bit pattern of a type."""
    pattern = np.arange(1 << element.bits)
    sign = np.where(pattern >> (element.bits - 1), -1.0, 1.0)
    low = pattern & ((1 << (element.bits - 1)) - 1)
    fraction = (low & ((1 << element.mantissa) - 1)) / 2.0**element.mantissa
    exponent = low >> element.mantissa
    size = np.where(
        exponent > 0,
        np.ldexp(1.0 + fraction, exponent - element.bias),
        np.ldexp(fraction, 1 - element.bias),
    )
    numbers = np.where(size > element.largest, np.nan, size) * sign
    if element.bits == FLOAT_BITS // 4 and element.mantissa == 2:  # e5m2 has infinities
        numbers[[0x7C, 0xFC]] = [np.inf, -np.inf]
    return numbers.astype(np.float32)


def pack_pairs(patterns: Any) -> Any:
    """Return 4-bit patterns two a byte, the one with the even index in the low half."""
    return patterns[..., 0::2] | (patterns[..., 1::2] << np.uint8(4))


def unpack_pairs(packed: Any, xp: Any = np) -> Any:
    """Return the 4-bit patterns of bytes, twice as many."""
    pairs = xp.stack([packed & np.uint8(0xF), packed >> np.uint8(4)], axis=-1)
    return pairs.reshape(*packed.shape[:-1], 2 * packed.shape[-1])
