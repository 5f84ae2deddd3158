"""How near two results are: in units in the last place of their type."""

from __future__ import annotations

import numpy as np

_FLOATS = {"f32": (np.uint32, 23), "f64": (np.uint64, 52), "f16": (np.uint16, 10)}
_HALVES = {"bf16": 7, "bf16x2": 7, "f16x2": 10}


def distance(kind: str, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; 0 for two NaNs and for equal bits."""
    if kind in _FLOATS:
        unsigned, mantissa = _FLOATS[kind]
        return _ulps(got.view(unsigned), expected.view(unsigned), mantissa)
    if kind in _HALVES:
        return _ulps(got.view(np.uint16), expected.view(np.uint16), _HALVES[kind])
    return np.where(got != expected, np.inf, 0.0)


def _ulps(got: np.ndarray, expected: np.ndarray, mantissa: int) -> np.ndarray:
    bits = got.dtype.itemsize * 8
    sign = got.dtype.type(1 << (bits - 1))
    exponent = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    infinite = got.dtype.type(exponent)

    def key(values: np.ndarray) -> np.ndarray:
        magnitude = (values & ~sign).astype(np.float64)
        return np.where(values & sign, -magnitude, magnitude)

    nan = ((got & ~sign) > infinite) & ((expected & ~sign) > infinite)
    one = ((got & ~sign) > infinite) ^ ((expected & ~sign) > infinite)
    result = np.abs(key(got) - key(expected))
    # a zero of the other sign is another number
    result[(got != expected) & (result == 0)] = np.inf
    result[one] = np.inf
    result[nan] = 0
    return result
