"""Scales of keys and values, one for each key, in references of attention."""

from __future__ import annotations

from typing import Any

import numpy as np


def times(scores: Any, scales: Any) -> Any:
    """Return scores, or weights, (rows, keys) times the scales of the keys, if there are any."""
    return scores if scales is None else scores * scales


def powers_of(scales: Any, zero_log2: int | None, xp: Any) -> tuple[Any, Any]:
    """Return what of the scales of values joins exponents, and the factors; see ``Precision``."""
    if scales is None:
        return np.float32(0), np.float32(1)
    if zero_log2 is not None:
        logs = xp.log2(xp.where(scales > 0, scales, 2.0**zero_log2))
        return logs.astype(xp.float32), (scales > 0).astype(xp.float32)
    mantissa, exponent = xp.frexp(scales)
    powers = xp.where(scales > 0, exponent - 1, 0).astype(xp.float32)
    return powers, xp.where(scales > 0, 2 * mantissa, 0).astype(xp.float32)
