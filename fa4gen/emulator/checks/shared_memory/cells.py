"""The last writer, and the readers since, of every cell of a memory.

A cell is as large as the narrowest access so far allows: four bytes at first, two or one from the
first access of that size on, so that threads that write neighbouring bytes do not race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.state.machine import Warpgroup

HAS_READERS: Final = 1
BARRIER: Final = 2
FRESH: Final = 4
"""Flags of a cell: read since the last write; holds an mbarrier; never written."""

_LANE_BITS: Final = 5
_SHIFT: Final = np.uint32(_LANE_BITS)
# Rows of readers that there is room for at first; memory that is not written costs nothing.
_FEW_WARPS: Final = 32


class Cells:
    """Shadow of ``size`` bytes. Slots are columns of the clocks; ``nobody`` is the last of them.

    slot, epoch, site   of the last write, per cell
    flags               per cell
    readers             (warps, cells): epoch << 5 | lane of the last reader of each warp, or 0
    warps               the warp of each row of ``readers``
    writes              how often cells have changed hands
    """

    def __init__(self, size: int, nobody: int) -> None:
        self.shift = 2
        cells = -(-size // 4)
        self.slot = np.full(cells, nobody, np.int64)
        self.epoch = np.zeros(cells, np.uint32)
        self.site = np.zeros(cells, np.int32)
        self.flags = np.full(cells, FRESH, np.uint8)
        self.writes = 0
        self._all_readers = np.zeros((_FEW_WARPS, cells), np.uint32)
        self.readers = self._all_readers[:0]
        self.warps = np.zeros(0, np.int64)
        self._row_of: dict[int, int] = {}
        self._lanes_of: dict[Warpgroup, tuple[NDArray[np.int64], NDArray[np.uint32]]] = {}

    def cells(self, offsets: NDArray[Any], size: int) -> NDArray[np.int64]:
        """The cells of accesses of ``size`` bytes: (accesses,) or (accesses, cells each)."""
        if size < 1 << self.shift:
            self._refine(size)
        first: NDArray[np.int64] = (offsets >> self.shift).astype(np.int64, copy=False)
        count = size >> self.shift
        return first if count == 1 else first[:, None] + np.arange(count)

    def span(self, start: int, stop: int) -> slice:
        """The cells of the bytes from ``start`` to ``stop``; edges count in full."""
        while (start | stop) & ((1 << self.shift) - 1):
            self._refine(1 << (self.shift - 1))
        return slice(start >> self.shift, stop >> self.shift)

    def bytes_of(self, cell: int) -> tuple[int, int]:
        """The bytes of a cell: first and one past the last."""
        return cell << self.shift, (cell + 1) << self.shift

    # ---- writers

    def wrote(
        self,
        cells: NDArray[np.int64],
        active: ActiveLanes,
        epochs: NDArray[np.uint32],
        site: int,
        flags: int,
    ) -> NDArray[np.int64]:
        """Threads wrote cells, which had ``flags`` among them.

        Returns the holders of the cells: others than themselves where lanes write the same cell.
        """
        self.writes += 1
        if cells.ndim > 1:
            self.slot[cells] = active.column
            self.epoch[cells] = epochs[:, None]
        else:
            self.slot[cells] = active.ids
            self.epoch[cells] = epochs
        self.site[cells] = site
        if flags & ~BARRIER:
            self.flags[cells] = 0
        if flags & HAS_READERS:
            self.readers[:, cells] = 0
        return self.slot[cells]

    def wrote_span(self, span: slice, slot: int, epoch: int, site: int) -> None:
        """An asynchronous operation writes a stretch of cells."""
        self.writes += 1
        if self.flags[span].max(initial=0) & HAS_READERS:
            self.readers[:, span] = 0
        self.slot[span] = slot
        self.epoch[span] = epoch
        self.site[span] = site
        self.flags[span] = 0

    # ---- readers

    def read(
        self,
        cells: NDArray[np.int64],
        active: ActiveLanes,
        epochs: NDArray[np.uint32],
        flags: NDArray[np.uint8],
    ) -> None:
        """Record reads of cells with given flags; of the lanes of a warp the last is remembered."""
        rows, lane_bits = self._rows_of(active)
        packed = (epochs << _SHIFT) | lane_bits
        if cells.ndim > 1:
            packed = packed[:, None]
            rows = rows[:, None]
        self.readers[rows, cells] = packed
        if np.count_nonzero(flags & HAS_READERS) < flags.size:
            self.flags[cells] = flags | HAS_READERS

    def only_known(
        self, cells: NDArray[np.int64], active: ActiveLanes, clock: NDArray[np.uint32]
    ) -> bool:
        """Whether a quick test shows that writers know all readers.

        ``clock`` is the common knowledge of the active threads: the readers of their cells are
        themselves, or are warps of which it knows every lane.
        """
        rows, lane_bits = self._rows_of(active)
        packed = self.readers[:, cells]
        each = np.arange(len(rows))
        mine = packed[rows, each]
        own = (mine & 31) == (lane_bits if mine.ndim == 1 else lane_bits[:, None])
        packed[rows, each] = np.where(own, np.uint32(0), mine)
        if not np.count_nonzero(packed):
            return True
        latest = packed.reshape(len(packed), -1).max(axis=1) >> _SHIFT
        known = clock[: len(clock) // 32 * 32].reshape(-1, 32).min(axis=1)[self.warps]
        return bool((latest <= known).all())

    def readers_of(self, cells: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Readers since the last write: threads, epochs, row of ``cells`` and cell of each."""
        packed = self.readers[:, cells]
        found = packed.nonzero()
        values = packed[found]
        threads = (self.warps[found[0]] << _LANE_BITS) | (values & 31).astype(np.int64)
        at = found[1:]
        return threads, values >> _LANE_BITS, at[0], cells[at]

    def readers_in(self, span: slice, clock: NDArray[np.uint32]) -> tuple[NDArray[Any], ...]:
        """Readers in a stretch of cells that ``clock`` does not know: threads, epochs, cells."""
        packed = self.readers[:, span]
        rows = []
        latest = packed.max(axis=1) >> _LANE_BITS
        for row, warp in enumerate(self.warps.tolist()):
            if latest[row] and latest[row] > clock[warp * 32 : warp * 32 + 32].min():
                rows.append(row)
        if not rows:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, nothing
        part = packed[rows]
        which, at = part.nonzero()
        values = part[which, at]
        threads = (self.warps[rows][which] << _LANE_BITS) | (values & 31).astype(np.int64)
        epochs = values >> _LANE_BITS
        unknown = clock[threads] < epochs
        return threads[unknown], epochs[unknown], at[unknown] + span.start

    # ---- growth

    def _rows_of(self, active: ActiveLanes) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The row of ``readers`` and the number in the warp of each thread."""
        found = self._lanes_of.get(active.wg) if active.whole else None
        if found is not None:
            return found
        ids = active.ids
        first, last = int(ids[0]) >> _LANE_BITS, int(ids[-1]) >> _LANE_BITS
        table = np.array([self._row(warp) for warp in range(first, last + 1)], np.int64)
        known = table[(ids >> _LANE_BITS) - first], (ids & 31).astype(np.uint32)
        if active.whole:
            self._lanes_of[active.wg] = known
        return known

    def _row(self, warp: int) -> int:
        row = self._row_of.get(warp)
        if row is None:
            row = self._row_of[warp] = len(self.warps)
            self.warps = np.append(self.warps, warp)
            if row == len(self._all_readers):
                more = np.zeros_like(self._all_readers)
                self._all_readers = np.concatenate([self._all_readers, more])
            self.readers = self._all_readers[: row + 1]
        return row

    def _refine(self, size: int) -> None:
        """Split cells into smaller ones, each of which inherits the record of its cell."""
        self.writes += 1
        factor = (1 << self.shift) // size
        self.shift = size.bit_length() - 1
        self.slot = self.slot.repeat(factor)
        self.epoch = self.epoch.repeat(factor)
        self.site = self.site.repeat(factor)
        self.flags = self.flags.repeat(factor)
        readers = self.readers
        self._all_readers = np.zeros((len(self._all_readers), len(self.slot)), np.uint32)
        self.readers = self._all_readers[: len(readers)]
        self.readers[...] = readers.repeat(factor, axis=1)
