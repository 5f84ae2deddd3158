"""The result of a matrix product, and the interval around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GemmResult:
    """All (batch, m, n)."""

    exact: Any
    """float64."""
    low: Any
    """The least that the kernel may give, rounded to the output's type: float32."""
    high: Any
    """The most."""
    slack: Any
    """The allowed error of the result before it is rounded."""
    own: Any
    """The result of float32 NumPy, rounded to the output's type."""
