"""``cp.async`` groups: the copies of each thread, in the order of its commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Warpgroup
from fa4gen.emulator.state.registers import Mask

# Kernels that only wait through mbarriers never take their copies off the list.
_KEEP: Final = 256


@dataclass(slots=True)
class _Copy:
    """A copy that threads issued together.

    lanes  those that have not waited for it yet
    group  the number of the group that it belongs to, for each lane of the warpgroup
    signalled  whether an mbarrier signals its completion
    """

    op: AsyncOp
    lanes: NDArray[np.bool_]
    group: NDArray[np.int64]
    signalled: bool = False


class CopyGroups:
    """The copies of a warpgroup's threads that somebody has yet to wait for."""

    def __init__(self, wg: Warpgroup) -> None:
        self._wg = wg
        # how many groups each lane has committed; never changed in place
        self._committed = np.zeros(wg.lanes, np.int64)
        self._copies: list[_Copy] = []
        # the sets of lanes that there are, so that equal ones are one array
        self._sets: dict[bytes, NDArray[np.bool_]] = {}

    @staticmethod
    def of(wg: Warpgroup) -> CopyGroups:
        """Those of a warpgroup."""
        return _GROUPS.of(wg)

    def add(self, op: AsyncOp, lanes: NDArray[np.bool_]) -> None:
        """A copy, to be part of the next group of each of the lanes."""
        self._copies.append(_Copy(op, self._set(lanes), self._committed))

    def _set(self, lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        key = lanes.tobytes()
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = lanes.copy()
        return known

    def commit(self, mask: Mask) -> None:
        """End the open group of each lane."""
        self._committed = self._committed + (1 if mask is None else mask)

    def signalled_by(self, mask: NDArray[np.bool_]) -> list[AsyncOp]:
        """All copies that these lanes have not waited for; an mbarrier will tell of them."""
        if len(self._copies) > _KEEP:
            self._copies = [c for c in self._copies if not (c.signalled and c.op.done)]
        copies = [copy for copy in self._copies if (copy.lanes & mask).any()]
        for copy in copies:
            copy.signalled = True
        return [copy.op for copy in copies]

    def wait(self, mask: Mask, pending: int) -> None:
        """All but the ``pending`` latest groups of each lane are complete; -1: the open one too."""
        machine = self._wg.machine
        due_before = self._committed - pending
        known: dict[tuple[int, int], tuple[NDArray[np.bool_], NDArray[np.bool_], bool]] = {}
        seen: dict[bytes, tuple[NDArray[np.bool_], list[AsyncOp]]] = {}
        left: list[_Copy] = []
        for copy in self._copies:
            # copies of a group that the same lanes issued share both arrays, which live on
            key = id(copy.group), id(copy.lanes)
            if key not in known:
                due = copy.lanes & (copy.group < due_before)
                if mask is not None:
                    due &= mask
                known[key] = due, self._set(copy.lanes & ~due), bool(due.any())
            due, rest, some = known[key]
            if some:
                machine.complete(copy.op)
                seen.setdefault(due.tobytes(), (due, []))[1].append(copy.op)
            if not some or rest.any():
                copy.lanes = rest
                left.append(copy)
        self._copies = left
        for due, ops in seen.values():
            machine.observer.observed(self._wg, None if due.all() else due, ops, "complete")


_GROUPS: Final = Attached[Warpgroup, CopyGroups](CopyGroups)
