"""Code of a kernel that no problem of its config reaches, as the plan names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Line = tuple[str, str]
"""A function by its name without namespace and arguments, and text of one of its lines."""


@dataclass(frozen=True)
class Unreachable:
    """Branches that always go one way, or in all problems that can be emulated, and the reason.

    A branch is meant if one of the lines it was inlined through is in ``function`` and contains
    ``text``. ``within`` are lines that this one has to be inlined through in turn, the innermost
    first: they tell copies apart of a function that is called several times. Of branches that the
    compiler copies, as when it unrolls a loop, the last copies may be meant: ``copies`` are those,
    and how many there are in all. What is behind the other side does not run.
    """

    function: str
    text: str
    reason: str
    copies: tuple[int, int] = (1, 1)
    within: tuple[Line, ...] = ()

    def means(self, lines: Iterable[Line]) -> bool:
        """Return whether a branch is meant, by its lines: the innermost first, then its callers."""
        left = iter(lines)
        return all(
            any(function == wanted and text in line for function, line in left)
            for wanted, text in ((self.function, self.text), *self.within)
        )

    def share_of(self, count: int) -> int:
        """Return how many of ``count`` copies always go one way."""
        never, of = self.copies
        return count * never // of

    def __str__(self) -> str:
        return " < ".join(
            f"{function}: {text}" for function, text in ((self.function, self.text), *self.within)
        )
