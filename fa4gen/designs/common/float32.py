"""Numbers that a kernel holds as float32 constants."""

from __future__ import annotations

SMALLEST_FLOAT32 = 2.0**-126
"""The smallest normal number."""


def as_float32_constant(number: float) -> float:
    """Return 0 for a positive ``number`` too small for the constant of the kernel that holds it."""
    return number if number >= SMALLEST_FLOAT32 else 0.0
