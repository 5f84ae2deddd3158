"""Names of the errors of a result, for every family."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

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
