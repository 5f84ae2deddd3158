"""Mutants judged equivalent: a list with reasons, matched with what survives."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mutation.mutants import Mutant
    from mutation.trial import Record

FILE = Path(__file__).parents[1] / "results" / "equivalent_mutants.yaml"
_KEYS = {"kernels", "rule", "function", "number", "before", "after", "because"}


@dataclass(frozen=True)
class Equivalent:
    """A mutant that computes the same: in kernels of these names, this change of this function."""

    kernels: str
    """Glob of names."""
    rule: str
    before: str
    after: str
    because: str
    function: str = "*"
    """Glob of names."""
    number: int | None = None
    """Which of the same changes in the function; None for each."""

    def fits(self, one: Mutant | Record) -> bool:
        """Whether ``one`` is this change."""
        return (
            (one.rule, one.before, one.after) == (self.rule, self.before, self.after)
            and fnmatchcase(one.kernel, self.kernels)
            and fnmatchcase(one.function, self.function)
            and self.number in (None, one.number)
        )

    def __str__(self) -> str:
        return f"{self.kernels}, {self.rule}: {self.before}  ->  {self.after}"


def read_equivalents(path: Path = FILE) -> list[Equivalent]:
    """Return the entries of the list; ValueError for one that lacks a key or has another."""
    entries: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    found = []
    for entry in entries:
        if not {"kernels", "rule", "before", "after", "because"} <= entry.keys() <= _KEYS:
            raise ValueError(f"{path}: the keys of an entry are {sorted(_KEYS)}: {entry}")
        found.append(Equivalent(**entry))
    return found


def stale(entries: Sequence[Equivalent], mutants: Iterable[Mutant]) -> list[Equivalent]:
    """Return the entries for kernels of ``mutants`` that are none of these."""
    by_change: dict[tuple[str, str, str], list[Mutant]] = {}
    kernels = set()
    for mutant in mutants:
        by_change.setdefault(mutant.change, []).append(mutant)
        kernels.add(mutant.kernel)
    return [
        entry
        for entry in entries
        if any(fnmatchcase(kernel, entry.kernels) for kernel in kernels)
        and not any(
            entry.fits(mutant)
            for mutant in by_change.get((entry.rule, entry.before, entry.after), ())
        )
    ]
