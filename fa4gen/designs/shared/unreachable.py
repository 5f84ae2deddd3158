"""Code of a kernel that no problem of its config reaches, as the plan names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Unreachable:
    """Branches that always go one way, or in all problems that can be emulated, and the reason.

    A branch is meant if one of the lines it was inlined through is in ``function``, by its name
    without namespace and arguments, and contains ``text``. Of branches that the compiler copies, as
    when it unrolls a loop, the last copies may be meant: ``copies`` are those, and how many there
    are in all. What is behind the other side does not run.
    """

    function: str
    text: str
    reason: str
    copies: tuple[int, int] = (1, 1)

    def means(self, lines: Iterable[tuple[str, str]]) -> bool:
        """Return whether a branch is meant, by function and text of each of its lines."""
        return any(function == self.function and self.text in text for function, text in lines)

    def share_of(self, count: int) -> int:
        """Return how many of ``count`` copies always go one way."""
        never, of = self.copies
        return count * never // of
