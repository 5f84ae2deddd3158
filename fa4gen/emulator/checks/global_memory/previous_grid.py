"""Checks of programmatic dependent launch: memory that the previous grid may still be using.

``griddepcontrol.wait`` returns when the grid before has ended and its writes are visible to
this grid. So a thread may touch such memory if it has waited itself, or if something orders it
after a thread that has. When the grid before calls ``griddepcontrol.launch_dependents`` matters
to none of this: that call orders no memory, and a wait is for the end of the grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import VC
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.async_ops import GlobalRange

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.checks.sites import Sites
    from fa4gen.emulator.checks.synchronisation.rounds import Grid
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.global_arrays import Pending
    from fa4gen.emulator.state.machine import AsyncOp, Warpgroup
    from fa4gen.emulator.state.registers import Mask

_NEVER: Final = np.iinfo(np.uint32).max
_DOES: Final = {True: "writing", False: "reading"}


class PreviousGrid:
    """Stretches of global memory, and which threads know that the grid before has ended."""

    def __init__(self, sites: Sites, grid: Grid, pending: Pending) -> None:
        self.sites = sites
        self._grid = grid
        # by whether the grid before writes them
        self._spans = {
            True: np.array(pending.writes, np.int64).reshape(-1, 2),
            False: np.array(pending.reads, np.int64).reshape(-1, 2),
        }
        # per cluster: the epoch in which each thread waited; the round in which the first one did
        self._waited: dict[int, NDArray[np.uint32]] = {}
        self._rounds = np.full(len(grid.rounds), _NEVER, np.uint32)

    def waited(self, threads: ClusterThreads, active: ActiveLanes) -> None:
        """Threads have executed ``griddepcontrol.wait``."""
        cluster = threads.cluster.index
        epochs = self._waited.setdefault(
            cluster, np.full(threads.clocks.threads, _NEVER, np.uint32)
        )
        epochs[active.ids] = np.minimum(epochs[active.ids], threads.clocks.epochs[active.threads])
        self._rounds[cluster] = min(self._rounds[cluster], self._grid.rounds[cluster])

    def access(
        self,
        threads: ClusterThreads,
        active: ActiveLanes,
        addresses: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
    ) -> None:
        """Threads access ``size`` bytes at each address."""
        written = self._inside(True, addresses.astype(np.int64), size)
        inside = written
        if kind != "read":
            inside = written | self._inside(False, addresses.astype(np.int64), size)
        if not inside.any() or self._reported(threads):
            return
        late = inside
        epochs = self._waited.get(threads.cluster.index)
        if epochs is not None:
            waiters = np.flatnonzero(epochs != _NEVER)
            slots = np.broadcast_to(waiters, (len(active.ids), len(waiters)))
            known = threads.clocks.known(VC, active.threads, slots, epochs[waiters]).any(axis=1)
            late = inside & ~(known | (epochs[active.ids] != _NEVER))
        if late.any():
            first = int(late.argmax())
            wg, mask = threads.one(int(active.ids[first]))
            does = _DOES[bool(written[first])]
            self._find(f"{kind} of", int(addresses[first]), does, site, wg, mask)

    def operation(self, threads: ClusterThreads, op: AsyncOp) -> None:
        """An asynchronous operation reads and writes global memory from now on."""
        epochs = self._waited.get(threads.cluster.index)
        known = self._reported(threads)
        if epochs is not None:
            known |= bool((op.clock[VC, : len(epochs)] >= epochs).any())
        if known:
            return
        for verb, ranges, written in (
            ("reads", op.reads, True), ("writes", op.writes, True), ("writes", op.writes, False),
        ):  # fmt: skip
            for part in ranges:
                if not isinstance(part, GlobalRange):
                    continue
                starts, size = part.rows or (np.array([part.start]), part.stop - part.start)
                inside = self._inside(written, np.asarray(starts, np.int64), int(size))
                if inside.any():
                    at = int(starts[int(inside.argmax())])
                    mask = np.zeros(op.wg.lanes, np.bool_)
                    mask[op.lane] = True
                    self._find(f"{op.kind} {verb}", at, _DOES[written], op.site, op.wg, mask)
                    return

    def ends(self) -> None:
        """All threads have left: report a grid that may end before the one before it."""
        if not self._waited:
            self.sites.machine.log.add(
                "missing-grid-wait",
                Severity.REVIEW,
                "no thread has executed griddepcontrol.wait, so this grid may end before the one "
                "before it: a later grid that waits for this one does not wait for that one",
                None,
                "all threads",
            )

    def _inside(self, written: bool, starts: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
        column, spans = starts[:, None], self._spans[written]
        touched = (column < spans[:, 1]) & (spans[:, 0] < column + size)
        return np.asarray(touched.any(axis=1))

    def _reported(self, threads: ClusterThreads) -> bool:
        """Whether the cluster has learnt it from another one, through global memory."""
        known, own = self._grid.known(threads.cluster.index), threads.cluster.index
        waited = known.values >= self._rounds[known.first :][: len(known.values)]
        if known.of_one(own):
            waited[own - known.first] = False
        return bool(waited.any())

    def _find(
        self, what: str, address: int, does: str, site: Instruction, wg: Warpgroup, mask: Mask
    ) -> None:
        place = self.sites.machine.memory.describe(address)
        self.sites.find(
            "race",
            f"{what} {place}, which the grid before may still be {does}: nothing orders this "
            "after a griddepcontrol.wait",
            site,
            wg,
            mask,
        )
