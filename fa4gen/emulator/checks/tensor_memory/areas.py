"""Rectangles of tensor memory and the accesses to each, indexed by overlap.

A kernel touches few different rectangles, each of them again and again: overlap is computed once
for every pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import AsyncOp

Rectangle: TypeAlias = tuple[int, int, int, int]
"""Lanes, then columns; half open."""


@dataclass(slots=True, eq=False)
class Entry:
    """An access to a rectangle (lanes, columns; half open).

    ids, begun, ended   threads of a load or store, their epochs at its issue, and at the wait that
                        covers it (None until then)
    op, issuer, issued  an asynchronous operation, its thread and that thread's epoch
    number              counts the accesses
    known               threads that have seen it end and need not be asked again
    """

    rectangle: Rectangle
    kind: str
    writes: bool
    site: int
    ids: NDArray[np.int64] | None = None
    begun: Any = None
    ended: Any = None
    op: AsyncOp | None = None
    issuer: int = -1
    issued: int = 0
    number: int = 0
    known: set[int] = field(default_factory=set)

    def within(self, other: Rectangle) -> bool:
        a, b = self.rectangle, other
        return b[0] <= a[0] and a[1] <= b[1] and b[2] <= a[2] and a[3] <= b[3]


class Area:
    """A rectangle, the accesses to it in their order, and all areas that overlap it, itself too."""

    __slots__ = ("entries", "overlapping", "rectangle")

    def __init__(self, rectangle: Rectangle) -> None:
        self.rectangle = rectangle
        self.entries: dict[Entry, None] = {}
        self.overlapping: list[Area] = []


class Areas:
    """All rectangles that were touched."""

    def __init__(self) -> None:
        self._areas: dict[Rectangle, Area] = {}
        self._count = 0

    def touching(self, rectangle: Rectangle) -> list[Entry]:
        """The accesses to anything that overlaps a rectangle, in their order."""
        groups = [area.entries for area in self._area(rectangle).overlapping if area.entries]
        if len(groups) == 1:
            return list(groups[0])
        found = [entry for group in groups for entry in group]
        found.sort(key=_number)
        return found

    def add(self, entry: Entry) -> None:
        """Remember an access."""
        self._count += 1
        entry.number = self._count
        self._area(entry.rectangle).entries[entry] = None

    def drop(self, entry: Entry) -> None:
        """Forget an access, if it is known."""
        self._area(entry.rectangle).entries.pop(entry, None)

    def _area(self, rectangle: Rectangle) -> Area:
        area = self._areas.get(rectangle)
        if area is None:
            area = Area(rectangle)
            self._areas[rectangle] = area
            for other in self._areas.values():
                if overlaps(rectangle, other.rectangle):
                    area.overlapping.append(other)
                    if other is not area:
                        other.overlapping.append(area)
        return area


def overlaps(a: Rectangle, b: Rectangle) -> bool:
    """Whether two rectangles have a cell in common."""
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _number(entry: Entry) -> int:
    return entry.number
