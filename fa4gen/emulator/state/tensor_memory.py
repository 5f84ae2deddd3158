"""Tensor memory of a CTA: 128 lanes by 512 columns of 32 bits (PTX ISA, "Tensor Memory").

An address is ``lane << 16 | column``. Columns are handed out in units of 32, all lanes with them.
Each CTA has the tensor memory of one SM to itself. A fresh cell holds anything, here a NaN of every
float of 16 and 32 bits; reading one is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.findings import Findings
    from fa4gen.emulator.state.registers import Mask, Registers

LANES: Final = 128
COLUMNS: Final = 512
UNIT: Final = 32
LANE_SHIFT: Final = 16
_FRESH: Final = np.uint32(0x7FC0_7FC0)
COLUMN_MASK: Final = (1 << LANE_SHIFT) - 1


@dataclass(frozen=True, slots=True)
class Allocation:
    """Allocated columns, and their owner; ``number`` counts the allocations of the CTA from 0."""

    first: int
    columns: int
    number: int
    wg: Registers
    mask: Mask
    site: Instruction


class TensorMemory:
    """The cells, with their allocations.

    cells      uint32 (lanes, columns)
    allocated  bool (columns)
    written    bool (lanes, columns): cells that the kernel has written
    sizes      columns of each allocation of the CTA, in order
    waiting    by warp: allocations that wait for the peer's of the same number
    """

    def __init__(self) -> None:
        self.cells: NDArray[np.uint32] = np.full((LANES, COLUMNS), _FRESH)
        self.allocated: NDArray[np.bool_] = np.zeros(COLUMNS, np.bool_)
        self.written: NDArray[np.bool_] = np.zeros((LANES, COLUMNS), np.bool_)
        self.whole: NDArray[np.bool_] = np.zeros(COLUMNS, np.bool_)
        self.sizes: list[int] = []
        self.waiting: dict[int, Allocation] = {}
        self.relinquished = False
        self._allocations: dict[int, Allocation] = {}
        # ranges of columns that are known to be allocated, and to be written in all lanes
        self._held: set[tuple[int, int]] = set()
        self._full: set[tuple[int, int]] = set()

    # ---- allocation

    def try_allocate(
        self, columns: int, wg: Registers, mask: Mask, site: Instruction
    ) -> Allocation | None:
        """Hand out the last gap of ``columns``; None while there is none.

        What is smaller than all columns does not begin at column 0 unless it must: no kernel may
        take that for granted.
        """
        taken = self.allocated.reshape(-1, UNIT)[:, 0]
        units = columns // UNIT
        for first in reversed(range(COLUMNS // UNIT - units + 1)):
            if not taken[first : first + units].any():
                break
        else:
            return None
        start = first * UNIT
        one = Allocation(start, columns, len(self.sizes), wg, mask, site)
        self.sizes.append(columns)
        self._allocations[start] = one
        self.allocated[start : start + columns] = True
        self.written[:, start : start + columns] = False
        self.whole[start : start + columns] = False
        self._full.clear()
        return one

    def find_allocation(self, first: int) -> Allocation | None:
        """The allocation of a column."""
        return self._allocations.get(first)

    def free(self, one: Allocation) -> None:
        """Take columns back."""
        del self._allocations[one.first]
        self.allocated[one.first : one.first + one.columns] = False
        self._held.clear()

    def claim(self) -> None:
        """Let all columns count as allocated: the kernel never asks for any."""
        self.allocated[:] = True

    def describe(self) -> str:
        """The allocations, in words."""
        parts = [
            f"{one.first} to {one.first + one.columns - 1} since {one.site.position}"
            for one in self._allocations.values()
        ]
        return f"columns {', '.join(parts)} are taken" if parts else "no column is taken"

    def check_exit(self, label: str, findings: Findings) -> None:
        """Report columns not freed when the last thread of the CTA ``label`` has left."""
        for one in self._allocations.values():
            findings.find(
                "tensor-memory",
                f"{label} has ended and has not deallocated columns {one.first} to "
                f"{one.first + one.columns - 1} of tensor memory",
                one.site,
                one.wg,
                one.mask,
            )

    # ---- cells

    def holds(self, first: int, stop: int) -> bool:
        """Whether columns ``first`` to ``stop`` exist and are all allocated."""
        if (first, stop) in self._held:
            return True
        held = first >= 0 and stop <= COLUMNS and bool(self.allocated[first:stop].all())
        if held:
            self._held.add((first, stop))
        return held

    def full(self, first: int, stop: int) -> bool:
        """Whether all lanes of columns have been written since they were allocated."""
        if (first, stop) in self._full:
            return True
        full = bool(self.whole[first:stop].all())
        if full:
            self._full.add((first, stop))
        return full

    def initialised(self, lanes: slice | NDArray[np.int64], columns: slice) -> bool:
        """Whether all cells of a rectangle have been written since they were allocated."""
        return self.full(columns.start, columns.stop) or bool(self.written[lanes, columns].all())

    def mark(self, lanes: slice | NDArray[np.int64], columns: slice) -> None:
        """Cells of a rectangle have been written."""
        if (columns.start, columns.stop) in self._full:
            return
        self.written[lanes, columns] = True
        if isinstance(lanes, slice) and lanes.stop - lanes.start == LANES:
            self.whole[columns] = True


def split_address(address: int) -> tuple[int, int]:
    """The lane and the column of an address."""
    return address >> LANE_SHIFT, address & COLUMN_MASK
