"""The operations on arrays: NumPy's or CuPy's own, whose names they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arrays:
    """The functions of ``xp``, numpy or cupy. Indices are int64: nothing overflows."""

    xp: Any

    def number(self, value: int) -> Any:
        """Return a number of an expression."""
        return self.xp.int64(value)

    def __getattr__(self, name: str) -> Any:
        """Return the function of an operation."""
        return getattr(self.xp, name)
