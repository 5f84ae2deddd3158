"""Floating-point formats of 4 to 8 bits, and the exponent-only ue8m0 (PTX ISA, "Data Formats").

Codes are uint16 rows here, whatever the format's width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.scalar.rows.ieee import BF16


@dataclass(frozen=True, slots=True)
class SmallFormat:
    """``bits`` wide with ``mantissa`` of them; ``largest`` is the code of the largest number.

    ``nan`` is the code that NaNs are converted to; formats without one take the largest number.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    nan: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


FORMATS: Final = {
    "e4m3": SmallFormat(8, 3, 7, 0x7E, 0x7F),
    "e5m2": SmallFormat(8, 2, 15, 0x7B, 0x7F),
    "e2m3": SmallFormat(6, 3, 1, 0x1F, 0x1F),
    "e3m2": SmallFormat(6, 2, 3, 0x1F, 0x1F),
    "e2m1": SmallFormat(4, 1, 1, 0x7, 0x7),
}


def _magnitude(form: SmallFormat, code: int) -> float:
    exponent, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    if exponent == 0:
        exponent = 1
    else:
        fraction += 1 << form.mantissa
    return float(fraction) * 2.0 ** (exponent - form.bias - form.mantissa)


@cache
def _boundaries(name: str) -> NDArray[np.float64]:
    """Halfway between the magnitudes of each code and the next."""
    form = FORMATS[name]
    values = np.array([_magnitude(form, code) for code in range(form.largest + 1)])
    middle: NDArray[np.float64] = (values[:-1] + values[1:]) / 2
    return middle


def encode(x: Any, name: str, relu: bool) -> Any:
    """Nearest code, ties to the even one; beyond the largest number that one (.satfinite).

    ``relu`` makes negative numbers +0.
    """
    form = FORMATS[name]
    size = np.abs(x).astype(np.float64)
    below = np.searchsorted(_boundaries(name), size, "left")
    above = np.searchsorted(_boundaries(name), size, "right")
    code = np.where(below & 1, above, below)
    negative = np.signbit(x)
    code = np.where(negative, 0 if relu else code | form.sign, code)
    return np.where(np.isnan(x), form.nan, code).astype(np.uint16)


@cache
def _table(name: str) -> NDArray[np.float16]:
    """The f16 of each code; every number of these formats is one."""
    form = FORMATS[name]
    values = np.zeros(256, np.float16)
    for code in range(256):
        low = code & (form.sign - 1)
        value = np.float16(_magnitude(form, low))
        if low > form.largest:
            # e5m2 has an infinity, right above the largest number
            infinite = name == "e5m2" and low == form.largest + 1
            value = np.float16(np.inf) if infinite else np.uint16(0x7FFF).view(np.float16)
        negative = code & form.sign and not np.isnan(value)
        values[code] = -value if negative else value
    return values


def decode(codes: Any, name: str) -> Any:
    """The f16 numbers of codes; bits above the format's width are ignored."""
    return _table(name)[codes & np.uint16(2 * FORMATS[name].sign - 1)]


def encode_exponent(x: Any, upwards: bool, saturated: bool) -> Any:
    """Float32 to ue8m0: the exponent of the magnitude, rounded towards zero or up."""
    bits = x.view(np.uint32) & np.uint32(0x7FFFFFFF)
    code = bits >> np.uint32(23)
    if upwards:
        # a subnormal is rounded up only above 2^-127, which code 0 stands for
        inexact = ((bits & np.uint32(0x7FFFFF)) != 0) & (bits > np.uint32(0x00400000))
        code = code + (inexact & (bits < np.uint32(0x7F800000)))
    if saturated:
        code = np.where((code == 255) & (bits <= np.uint32(0x7F800000)), 254, code)
    return code.astype(np.uint16)


def decode_exponent(codes: Any) -> Any:
    """ue8m0 to bf16, which has all its numbers; 255 is NaN."""
    codes = np.asarray(codes).astype(np.uint16)
    bits = np.where(codes == 0, 0x40, np.where(codes == 255, 0x7FFF, codes << np.uint16(7)))
    return bits.astype(np.uint16).view(BF16)
