"""Device memory for a launch: a copy, of which only the changed bytes are written back.

One thread of the program launches; others may copy to device memory meanwhile. Were whole
allocations written back at the end, those copies would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import OutOfMemoryError
from fa4gen.emulator.state.budget import Budget
from fa4gen.emulator.state.global_arrays import copy_array
from fa4gen.emulator.state.relocations import Memory

# Bytes: allocators of programs return multiples of this.
_APART: Final = 256
# Bytes that are compared at once.
_STRETCH: Final = 1 << 20
# Bytes that are copied before memory is looked at again.
_COPIED: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Bytes of the memory that the program shares, and the copy of them that a launch changes.

    window  the shared bytes
    memory  the copy that the launch gets
    before  the copy's contents before the launch
    """

    window: NDArray[np.uint8]
    memory: Memory
    before: NDArray[np.uint8]

    def put_back(self) -> list[tuple[int, int]]:
        """Write the launch's changes to the window; return their half-open address ranges.

        Bytes between two changes that are less than ``_APART`` apart count as changed (some were
        written with the value that they had), but are not written.
        """
        spans: list[tuple[int, int]] = []
        now, base = self.memory.array, self.memory.address or 0
        for start in range(0, len(now), _STRETCH):
            part = slice(start, start + _STRETCH)
            at = np.flatnonzero(now[part] != self.before[part]) + start
            if not len(at):
                continue
            self.window[at] = now[at]
            ends = np.flatnonzero(np.diff(at) >= _APART)
            for first, last in zip([0, *(ends + 1)], [*ends, len(at) - 1], strict=True):
                low, high = base + int(at[first]), base + int(at[last]) + 1
                if spans and low - spans[-1][1] < _APART - 1:
                    low, _ = spans.pop()
                spans.append((low, high))
        return spans


def take(window: NDArray[np.uint8], address: int, name: str, budget: Budget) -> Snapshot:
    """Copy the bytes at ``address``. Raises OutOfMemoryError, MemoryError."""
    before = _copied(window, budget)
    return Snapshot(window, Memory(_copied(before, budget), address=address, name=name), before)


def _copied(array: NDArray[np.uint8], budget: Budget) -> NDArray[np.uint8]:
    """A copy in which zeros take no memory."""
    made = np.zeros_like(array)
    for start in range(0, len(array), _COPIED):
        part = slice(start, start + _COPIED)
        copy_array(made[part], array[part])
        if why := budget.exceeded():
            raise OutOfMemoryError(why)
    return made
