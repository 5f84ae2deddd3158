"""Accesses of threads to memory: which bytes of which arena, checked, read and written.

An access is a set of lanes, the bytes that each touches (all of one size), and the arena they lie
in. Generic addresses may fall into several windows at once; then there are several accesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.gang import Gang, Mask, as_row
from fa4gen.emulator.machine import Cta
from fa4gen.emulator.memory import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAM_WINDOW,
    RANK_SHIFT,
    RESERVED_SHARED,
    SHARED_WINDOW,
)
from fa4gen.emulator.ptx.syntax import Instruction

_WINDOW_SHIFT: Final = 32
_WINDOWS: Final = {
    SHARED_WINDOW >> _WINDOW_SHIFT: ("shared::cluster", SHARED_WINDOW),
    LOCAL_WINDOW >> _WINDOW_SHIFT: ("local", LOCAL_WINDOW),
    PARAM_WINDOW >> _WINDOW_SHIFT: ("param", PARAM_WINDOW),
}


@dataclass(frozen=True, slots=True)
class Access:
    """Lanes of one gang and their bytes in one arena.

    ``data`` is the arena, ``at`` the index of each lane's first byte in it; ``lanes`` the lanes in
    ascending order, ``mask`` the same as a mask. ``addresses`` are global addresses, ``cta`` the
    owner of shared memory; for local and parameter memory both are None.
    """

    gang: Gang
    mask: Mask
    lanes: NDArray[np.int64]
    data: NDArray[np.uint8]
    at: NDArray[np.int64]
    size: int
    space: str
    cta: Cta | None = None
    addresses: NDArray[np.uint64] | None = None

    def read(self) -> NDArray[np.uint8]:
        """The bytes: (lanes, size)."""
        if self.size in (4, 8, 16):
            words = _words(self.data, self.size)
            return np.asarray(words[self.at // self.size].view(np.uint8).reshape(-1, self.size))
        return np.asarray(self.data[self.at[:, None] + _bytes(self.size)])

    def write(self, values: NDArray[np.uint8]) -> None:
        """Store bytes, (lanes, size); of lanes at the same place the last one wins."""
        if self.size in (4, 8):
            words = _words(self.data, self.size)
            raw = np.ascontiguousarray(values).view(words.dtype).reshape(-1)
            words[self.at // self.size] = raw
        elif self.size == 16:
            raw = np.ascontiguousarray(values).view(np.complex128).reshape(-1)
            _words(self.data, 16)[self.at // 16] = raw
        else:
            self.data[self.at[:, None] + _bytes(self.size)] = values

    def observe(
        self, kind: str, site: Instruction, values: NDArray[np.uint8] | None = None
    ) -> None:
        """Tell the observer."""
        observer = self.gang.machine.observer
        if not observer.enabled:
            return
        if self.cta is not None:
            observer.shared_access(
                self.gang, self.mask, self.cta, self.at, self.size, kind, site, values
            )
        elif self.addresses is not None:
            observer.global_access(self.gang, self.mask, self.addresses, self.size, kind, site)


@lru_cache(maxsize=64)
def _bytes(size: int) -> NDArray[np.int64]:
    return np.arange(size)


def _words(data: NDArray[np.uint8], size: int) -> NDArray[Any]:
    """An arena as words of 4, 8 or 16 bytes; all arenas are multiples of 16 long."""
    kind = {4: np.uint32, 8: np.uint64, 16: np.complex128}[size]
    return data[: len(data) // size * size].view(kind)


def accesses(
    gang: Gang, mask: Mask, addresses: Any, space: str, size: int, site: Instruction
) -> Iterator[Access]:
    """Split an instruction's accesses by arena; faults for what is misaligned or out of bounds.

    ``space`` is a state space, or "" for generic addresses; ``size`` counts bytes per lane.
    """
    row = as_row(addresses, gang.lanes)
    lanes = gang.lanes_of(mask)
    if mask is not None:
        row = row[lanes]
    if size > 1 and size & (size - 1) == 0 and (row & np.uint64(size - 1)).any():
        lane = int(lanes[int((row & np.uint64(size - 1)).argmax())])
        gang.machine.fault(
            "misaligned", f"thread {gang.thread(lane)} accesses {size} bytes at address "
            f"{int(as_row(addresses, gang.lanes)[lane]):#x}", site, gang, mask,
        )  # fmt: skip
    if space:
        yield from _in_space(gang, mask, lanes, row, space, size, site)
        return
    windows = row >> np.uint64(_WINDOW_SHIFT)
    first = windows[0]
    if (windows == first).all():
        name, base = _WINDOWS.get(int(first), ("global", 0))
        yield from _in_space(gang, mask, lanes, row - np.uint64(base), name, size, site)
        return
    kinds = np.where(np.isin(windows, list(_WINDOWS)), windows, 0)
    for window in np.unique(kinds):
        chosen = kinds == window
        name, base = _WINDOWS.get(int(window), ("global", 0))
        part = _mask_of(gang, lanes[chosen])
        yield from _in_space(
            gang, part, lanes[chosen], row[chosen] - np.uint64(base), name, size, site
        )


def _mask_of(gang: Gang, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(gang.lanes, np.bool_)
    mask[lanes] = True
    return mask


def _in_space(
    gang: Gang, mask: Mask, lanes: NDArray[np.int64], row: NDArray[np.uint64], space: str,
    size: int, site: Instruction,
) -> Iterator[Access]:  # fmt: skip
    machine = gang.machine
    if space in ("global", "const"):
        valid = machine.memory.valid(row, size)
        if not valid.all():
            worst = int((~valid).argmax())
            machine.fault(
                "out-of-bounds", f"thread {gang.thread(int(lanes[worst]))} accesses {size} bytes "
                f"at {machine.memory.describe(int(row[worst]))}", site, gang, mask,
            )  # fmt: skip
        at = (row - np.uint64(GLOBAL_BASE)).view(np.int64)
        yield Access(gang, mask, lanes, machine.memory.data, at, size, "global", None, row)
    elif space.startswith("shared"):
        yield from _in_shared(gang, mask, lanes, row, space, size, site)
    elif space == "local":
        _check(gang, mask, lanes, row, 0, gang.local_bytes, size, "local memory", site)
        at = lanes * gang.local_bytes + row.astype(np.int64)
        yield Access(gang, mask, lanes, gang.local.reshape(-1), at, size, "local")
    else:
        limit = machine.layout.parameter_bytes
        _check(gang, mask, lanes, row, 0, limit, size, "the parameters", site)
        at = row.astype(np.int64)
        yield Access(gang, mask, lanes, machine.parameters, at, size, "param")


def _in_shared(
    gang: Gang, mask: Mask, lanes: NDArray[np.int64], row: NDArray[np.uint64], space: str,
    size: int, site: Instruction,
) -> Iterator[Access]:  # fmt: skip
    machine = gang.machine
    ranks = row >> np.uint64(RANK_SHIFT)
    at = (row & np.uint64(OFFSET_MASK)).view(np.int64)
    first = ranks[0]
    if (ranks == first).all():
        parts = [(int(first), mask, lanes, at)]
    else:
        parts = [
            (int(rank), _mask_of(gang, lanes[ranks == rank]), lanes[ranks == rank],
             at[ranks == rank])
            for rank in np.unique(ranks)
        ]  # fmt: skip
    for rank, part, members, offsets in parts:
        cta, _ = machine.shared_at(gang, rank << RANK_SHIFT, site, space == "shared::cluster")
        _check(gang, part, members, offsets, RESERVED_SHARED, cta.shared.size, size,
               "shared memory", site)  # fmt: skip
        yield Access(gang, part, members, cta.shared.data, offsets, size, "shared", cta)


def _check(
    gang: Gang, mask: Mask, lanes: NDArray[np.int64], offsets: NDArray[Any], start: int, stop: int,
    size: int, where: str, site: Instruction,
) -> None:  # fmt: skip
    """Fault unless all accesses lie between ``start`` and ``stop``."""
    if int(offsets.min()) >= start and int(offsets.max()) + size <= stop:
        return
    wrong = (offsets < start) | (offsets.astype(np.int64) + size > stop)
    worst = int(wrong.argmax())
    gang.machine.fault(
        "out-of-bounds", f"thread {gang.thread(int(lanes[worst]))} accesses {size} bytes at offset "
        f"{int(offsets[worst])} of {where}, which ends at {stop}", site, gang, mask,
    )  # fmt: skip
