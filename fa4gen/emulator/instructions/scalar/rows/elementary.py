"""Elementary functions of float64 rows, of sums, products and quotients only.

NumPy's exp2, log2, sin, cos and tanh are those of the host's C library or vector unit, and differ
in the last bits. The operations used here are rounded as IEEE 754 says, so every host gives the
same results. Relative errors are below 2^-42; ``exp2_f32`` has one below 2^-30.
"""

from __future__ import annotations

from decimal import Context, Decimal
from math import factorial
from typing import Any, Final

import numpy as np

_STEPS: Final = 64
_DIGITS: Final = Context(prec=40)
# 2^(n / 64)
_ROOTS: Final = np.array(
    [float(_DIGITS.power(Decimal(2), _DIGITS.divide(n, _STEPS))) for n in range(_STEPS)]
)
_LN2: Final = 0.6931471805599453
# of 2^(r / 64), from r to r^4; |r| is at most 1/2
_EXPONENTIAL: Final = [(_LN2 / _STEPS) ** n / factorial(n) for n in range(1, 5)]
# of log2((1 + s) / (1 - s)) / s in s^2; |s| is at most 0.172
_LOGARITHM: Final = [2 / _LN2 / n for n in range(1, 22, 2)]
_TWO_PI: Final = 6.283185307179586
# of sin(2 pi t) / t and of cos(2 pi t) in t^2; |t| is at most 1/8
_SINE: Final = [(-1) ** n * _TWO_PI ** (2 * n + 1) / factorial(2 * n + 1) for n in range(9)]
_COSINE: Final = [(-1) ** n * _TWO_PI ** (2 * n) / factorial(2 * n) for n in range(9)]
# 1 / (2 pi) times 2^256, and in three parts of which the first two have 27 bits
_TURN: Final = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF158
_TURN_PARTS: Final = (
    (_TURN >> 227) * 2.0**-29,
    (_TURN >> 200 & (1 << 27) - 1) * 2.0**-56,
    (_TURN >> 147 & (1 << 53) - 1) * 2.0**-109,
)
_SMALL_ANGLE: Final = 2.0**17
# of tanh(x) / x in x^2, for |x| below 1/4
_SMALL: Final = 0.25
_TANGENT: Final = [
    1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075, -929569 / 638512875,
    6404582 / 10854718875,
]  # fmt: skip
# Results beyond 2^-1000 and 2^1000 are zero and infinity in all narrower types.
_LARGEST: Final = 1000.0
_EXPONENTIAL_F32: Final = [np.float32(value) for value in _EXPONENTIAL]
_STEPS_F32: Final = np.float32(_STEPS)
_LOWEST_F32: Final = np.float32(-200)
_HIGHEST_F32: Final = np.float32(200)


def _polynomial(x: Any, coefficients: list[float]) -> Any:
    """Horner's scheme, lowest coefficient first."""
    total = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


def exp2(x: Any) -> Any:
    """2^x; results beyond 2^-1000 and 2^1000 are those or more extreme."""
    nan = np.isnan(x)
    scaled = np.minimum(np.maximum(np.where(nan, 0.0, x), -_LARGEST), _LARGEST)
    scaled *= _STEPS
    whole = np.rint(scaled)
    scaled -= whole
    result = _scaled(scaled * _polynomial(scaled, _EXPONENTIAL), whole)
    result[nan] = np.nan
    return result


def exp2_f32(x: Any) -> Any:
    """2^x of float32 other than NaN, in float64.

    The small part of the factor between roots of 2 is computed in float32, which is enough for a
    result in float32.
    """
    scaled = np.maximum(x, _LOWEST_F32)
    np.minimum(scaled, _HIGHEST_F32, out=scaled)
    scaled *= _STEPS_F32
    whole = np.rint(scaled)
    scaled -= whole
    small = scaled * _EXPONENTIAL_F32[2]
    small += _EXPONENTIAL_F32[1]
    small *= scaled
    small += _EXPONENTIAL_F32[0]
    small *= scaled
    return _scaled(small, whole)


def _scaled(small: Any, whole: Any) -> Any:
    """``(1 + small) 2^(whole / 64)`` as float64."""
    result = np.add(small, 1.0, dtype=np.float64)
    steps = whole.astype(np.int64)
    result *= _ROOTS.take(steps & (_STEPS - 1), mode="clip")  # faster than "raise"
    steps >>= 6
    steps <<= 52
    bits = result.view(np.int64)
    bits += steps
    return result


def log2(x: Any) -> Any:
    """The logarithm to base 2; NaN of negative numbers, -inf of zeros."""
    fraction, exponent = np.frexp(x)
    low = fraction < 0.7071067811865476
    fraction = np.where(low, fraction * 2.0, fraction)
    slope = (fraction - 1.0) / (fraction + 1.0)
    result = slope * _polynomial(slope * slope, _LOGARITHM) + (exponent - low)
    result = np.where(x > 0, result, np.where(x == 0, -np.inf, np.nan))
    return np.where(x == np.inf, np.inf, result)


def _reduce(x: Any) -> tuple[Any, Any]:
    """An angle as quarters of a turn, modulo 4 (int64), and the rest, in turns."""
    angle = np.where(np.isfinite(x), x, 0.0)
    rest = angle * _TURN_PARTS[0]  # exact, as are the differences
    quarter = np.rint(rest * 4.0)
    rest = (rest - quarter * 0.25) + angle * _TURN_PARTS[1] + angle * _TURN_PARTS[2]
    quarter = np.fmod(quarter, 4.0).astype(np.int64)
    for place in np.flatnonzero(np.abs(angle) >= _SMALL_ANGLE):
        top, bottom = float(angle.flat[place]).as_integer_ratio()
        turns = top * _TURN // bottom  # times 2^256
        whole = (turns >> 253) + 1 >> 1
        quarter.flat[place] = whole & 3
        rest.flat[place] = float((turns - (whole << 254)) >> 150) * 2.0**-106
    return quarter, np.where(np.isfinite(x), rest, np.nan)


def _sine(x: Any, ahead: int) -> Any:
    """The sine, ``ahead`` quarters of a turn further."""
    quarter, rest = _reduce(x)
    square = rest * rest
    result = np.where(
        quarter + ahead & 1, _polynomial(square, _COSINE), rest * _polynomial(square, _SINE)
    )
    return np.where(quarter + ahead & 2, -result, result)


def sin(x: Any) -> Any:
    """The sine of an angle in radians; a zero keeps its sign."""
    return np.where(x == 0, x, _sine(x, 0))


def cos(x: Any) -> Any:
    """The cosine of an angle in radians."""
    return _sine(x, 1)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent; a zero keeps its sign."""
    size = np.abs(x)
    power = exp2(size * (-2 / _LN2))
    small = size * _polynomial(np.where(size < _SMALL, size * size, 0.0), _TANGENT)
    return np.copysign(np.where(size < _SMALL, small, (1 - power) / (1 + power)), x)
