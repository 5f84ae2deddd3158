"""Address spaces: one flat arena for global memory, one per CTA for shared memory.

A generic address is in one of four windows. A shared address is ``rank << 24 | offset``, as on
Hopper, where a CTA's own shared memory can be reached through its rank too; the first KiB of each
CTA's shared memory belongs to the system.
"""

from __future__ import annotations

import mmap
import sys
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError, OutOfMemoryError
from fa4gen.emulator.state.budget import REMEDY, Budget, shown_bytes

GLOBAL_BASE: Final = 0x10_0000_0000
FIXED_BASE: Final = GLOBAL_BASE + (64 << 20)  # from here on, arrays may be given an address
SHARED_WINDOW: Final = 0x7F10_0000_0000
FIXED_END: Final = SHARED_WINDOW - (1 << 32)
LOCAL_WINDOW: Final = 0x7F20_0000_0000
PARAM_WINDOW: Final = 0x7F30_0000_0000
WINDOW_BYTES: Final = 1 << 32
RESERVED_SHARED: Final = 1024
RANK_SHIFT: Final = 24
OFFSET_MASK: Final = (1 << RANK_SHIFT) - 1

# Between two arrays is at least this much that belongs to none.
_GUARD: Final = 4096
_ALIGN: Final = 512
# From this size on, an arena of which little is used is mapped: only touched pages take memory.
_SPARSE: Final = 1 << 30
_MAP_NORESERVE: Final = 0x4000  # of Linux; Python has the name from 3.13 on


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of global memory that a kernel may touch: ``start`` and ``stop`` are addresses."""

    start: int
    stop: int
    name: str
    writable: bool = True


class GlobalMemory:
    """Global (and constant) memory: ``data[address - GLOBAL_BASE]``, valid inside the regions.

    Regions are added before a launch; ``data`` is allocated by ``seal``. Everything outside the
    regions is a guard: an access there is a finding, never a wrong result.
    """

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._next = GLOBAL_BASE + _GUARD
        self._elements = 0
        self.data: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.budget: Budget | None = None

    def copy(self) -> GlobalMemory:
        """Copy the regions, for another launch; the copy is not yet sealed."""
        other = GlobalMemory()
        other.regions = list(self.regions)
        other._starts = list(self._starts)
        other._next = self._next
        other._elements = self._elements
        return other

    def reserve(
        self,
        size: int,
        name: str,
        *,
        align: int = _ALIGN,
        writable: bool = True,
        elements: int | None = None,
    ) -> int:
        """Add a region of ``size`` bytes and return its address.

        ``elements``: the bytes of it that are used, where arrays in it have gaps.
        """
        self._elements += size if elements is None else min(size, elements)
        align = max(align, _ALIGN)
        start = -(-self._next // align) * align
        self.regions.append(Region(start, start + size, name, writable))
        self._starts.append(start)
        self._next = start + size + _GUARD
        return start

    def reserve_at(
        self,
        start: int,
        size: int,
        name: str,
        *,
        writable: bool = True,
        elements: int | None = None,
    ) -> None:
        """Add a region at an address. Raises LaunchError where that cannot be."""
        self._elements += size if elements is None else min(size, elements)
        stop = start + size
        if start < FIXED_BASE or stop > FIXED_END:
            raise LaunchError(
                f"{name} cannot be at {start:#x} ({size} bytes): addresses from {FIXED_BASE:#x}"
                f" to {FIXED_END:#x} can be chosen"
            )
        at = bisect_right(self._starts, start)
        for other in self.regions[max(at - 1, 0) : at + 1]:
            if other.start < stop and start < other.stop:
                raise LaunchError(
                    f"{name} at {start:#x} ({size} bytes) overlaps {other.name}, which is from"
                    f" {other.start:#x} to {other.stop:#x}"
                )
        self.regions.insert(at, Region(start, stop, name, writable))
        insort(self._starts, start)
        self._next = max(self._next, stop + _GUARD)

    def seal(self) -> None:
        """Allocate the bytes, zeroed, keeping earlier contents. OutOfMemoryError for too many."""
        size = self._next - GLOBAL_BASE + _GUARD
        used = sum(region.stop - region.start for region in self.regions)
        what = f"global memory of {shown_bytes(used)} in {len(self.regions)} arrays and variables"
        if size > 2 * used + FIXED_BASE - GLOBAL_BASE:
            what += f", far apart: give them addresses near {FIXED_BASE:#x}"
        is_sparse = used > 2 * self._elements + _SPARSE and sys.platform == "linux"
        if self.budget is not None:
            self.budget.need(size - used + self._elements if is_sparse else size, what)
        try:
            grown = _sparse_zeros(size) if is_sparse else np.zeros(size, np.uint8)
        except (MemoryError, OSError, ValueError):
            raise OutOfMemoryError(
                f"{what}: {shown_bytes(size)} cannot be had", "", REMEDY
            ) from None
        grown[: len(self.data)] = self.data
        self.data = grown

    def region(self, address: int) -> Region | None:
        """The region that holds an address."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.regions[at].stop:
            return self.regions[at]
        return None

    def valid(self, addresses: NDArray[np.uint64], size: int) -> NDArray[np.bool_]:
        """The accesses of ``size`` bytes that are whole inside one region (shape as addresses)."""
        low, high = int(addresses.min()), int(addresses.max())
        region = self.region(low)
        if region is not None and high + size <= region.stop:
            return np.ones(addresses.shape, np.bool_)
        starts = np.array(self._starts, np.uint64)
        stops = np.array([region.stop for region in self.regions], np.uint64)
        if not len(starts):
            return np.zeros(addresses.shape, np.bool_)
        at = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        inside: NDArray[np.bool_] = (at >= 0) & (addresses + np.uint64(size) <= stops[at])
        return inside

    def describe(self, address: int) -> str:
        """An address: ``q + 128`` or how far past which array."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return f"address {address:#x}, which belongs to no array"
        region = self.regions[at]
        offset = address - region.start
        if address < region.stop:
            return f"{region.name} + {offset}"
        return (
            f"address {address:#x}, {address - region.stop} bytes past the end of {region.name}"
            f" ({region.stop - region.start} bytes)"
        )

    def view(self, array: NDArray[Any], address: int) -> NDArray[Any]:
        """The array's elements inside the arena, at ``address``."""
        if array.size == 0:
            return np.empty(array.shape, array.dtype)
        return np.ndarray(
            array.shape,
            array.dtype,
            buffer=self.data.data,
            offset=address - GLOBAL_BASE,
            strides=array.strides,
        )


def _sparse_zeros(size: int) -> NDArray[np.uint8]:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)


class SharedMemory:
    """The shared memory of one CTA: ``data[offset]``, offset = address modulo 2^24.

    ``size`` is one past the last byte that belongs to the kernel; the first RESERVED_SHARED bytes
    belong to the system. ``data`` is a multiple of 16 bytes long, so that it can be viewed wider.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.data: NDArray[np.uint8] = np.zeros(-(-size // 16) * 16, np.uint8)
        self.words: NDArray[np.uint32] = self.data.view(np.uint32)
