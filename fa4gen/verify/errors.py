"""The errors of a result, for every family: their names, and those of elements in intervals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class ErrorSet:
    """Errors by name, or the bounds on them; every field of a subclass is one."""

    INTERVALS: ClassVar[frozenset[str]] = frozenset()
    """Errors that are shares of an interval, of which the ends, 1, are as right as the middle."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the errors."""
        return tuple(field.name for field in fields(cls))

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


class Between(Protocol):
    """A result in float64, with the least and the most that each of its elements may be."""

    @property
    def exact(self) -> Any:
        """The elements themselves."""

    @property
    def low(self) -> Any:
        """The least, rounded to the output's type."""

    @property
    def high(self) -> Any:
        """The most, rounded to the output's type."""


@np.errstate(over="ignore", invalid="ignore")
def element_shares(got: Any, result: Between, xp: Any = np) -> Any:
    """Return each element's distance as a share of its interval's: at most 1 inside.

    NaN where the exact result is a number, or infinity where it must be finite, is infinitely far.
    """
    found, exact = got.astype(xp.float64), result.exact
    low, high = result.low.astype(xp.float64), result.high.astype(xp.float64)
    inside = ((found >= low) & (found <= high)) | (xp.isnan(exact) & xp.isnan(found))
    far = xp.where(found > exact, found - exact, exact - found)
    room = xp.where(found > exact, high - exact, exact - low)
    shares = shares_of(far, xp.where(room > 0, room, 0.0), xp)
    inside_shares = xp.where(xp.isfinite(shares), xp.minimum(shares, 1.0), 1.0)
    return xp.where(inside, inside_shares, xp.where(shares > 1, shares, xp.inf))


def shares_of(errors: Any, limits: Any, xp: Any) -> Any:
    """Divide; 0 / 0 is 0, anything else over 0 is infinite."""
    none = limits <= 0
    return xp.where(none, xp.where(errors > 0, xp.inf, 0.0), errors / xp.where(none, 1.0, limits))
