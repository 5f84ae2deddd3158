"""Races of threads in the shared memory of one CTA.

PTX ISA, "Memory Consistency Model" and "Proxies".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import LOOSE, VC
from fa4gen.emulator.checks.order.scopes import narrow_scope
from fa4gen.emulator.checks.shared_memory.cells import BARRIER, FRESH, HAS_READERS, Cells
from fa4gen.emulator.checks.shared_memory.pieces import touched
from fa4gen.emulator.checks.sites import place
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cta


@dataclass(slots=True)
class Reading:
    """Bytes that an asynchronous operation reads; known where ``slot`` is known at ``epoch``."""

    start: int
    stop: int
    slot: int
    epoch: int
    site: int
    op: AsyncOp


class GenericChecks:
    """Shadow of one CTA's shared memory. Offsets are in bytes."""

    def __init__(self, threads: ClusterThreads, cta: Cta, options: CheckOptions) -> None:
        self.threads = threads
        self.clocks = threads.clocks
        self.sites = threads.sites
        self.cta = cta
        self.options = options
        self.cells = Cells(cta.shared.size, threads.clocks.nobody)
        self._readings: dict[tuple[Any, ...], Reading] = {}
        self._thread_copies: set[int] = set()  # sites of cp.async and st.async
        # issuer -> number of writes then, and the stretches found in order: first cell -> last
        self._in_order: dict[tuple[Any, ...], tuple[int, dict[int, int]]] = {}

    # ---- generic accesses

    def access(
        self,
        active: ActiveLanes,
        offsets: NDArray[Any],
        size: int,
        kind: str,
        strong: bool,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        """Threads read, write or update ``size`` bytes at each offset.

        ``values`` are the bytes about to be written: (accesses, size), uint8.
        """
        cells = self.cells
        at = cells.cells(offsets, size)
        flags = cells.flags[at]
        joined = int(np.bitwise_or.reduce(flags.reshape(-1)))
        if joined & BARRIER:
            self._touches_barrier(active, at, flags, kind, site)
        if joined & FRESH and kind != "write" and self.options.uninitialised:
            self._fresh(active, at, flags, kind, site)
        if self.options.races:
            self._after_writer(active, at, kind, strong, site, offsets, values)
        epochs = self.clocks.epochs[active.threads]
        if kind == "read":
            if not strong:
                cells.read(at, active, epochs, flags)
            return
        if self.options.races:
            if joined & HAS_READERS and not strong:
                self._after_readers(active, at, kind, site)
            if self._readings:
                self._after_readings(active, offsets, size, kind, site)
        number = self.sites.generic(site, "atomic" if strong else kind)
        holders = cells.wrote(at, active, epochs, number, joined)
        if self.options.races and not strong and len(active.ids) > 1:
            other = holders != (active.ids if at.ndim == 1 else active.column)
            if np.count_nonzero(other):
                if values is not None:
                    other &= _differs(holders, active.ids, values).reshape(-1, *[1] * (at.ndim - 1))
                if np.count_nonzero(other):
                    self._same_cell(active, at, other, holders, site)

    def _after_writer(
        self,
        active: ActiveLanes,
        at: NDArray[np.int64],
        kind: str,
        strong: bool,
        site: Instruction,
        offsets: NDArray[Any],
        values: NDArray[Any] | None,
    ) -> None:
        slots, epochs = self.cells.slot[at], self.cells.epoch[at]
        good = self.clocks.known(VC, active.threads, slots, epochs)
        if np.count_nonzero(good) == good.size:
            return
        good |= slots == (active.ids if at.ndim == 1 else active.column)
        if np.count_nonzero(good) == good.size:
            return
        if strong:
            sites = self.cells.site[at]
            atomic = [number for number in np.unique(sites) if self.sites.is_atomic(int(number))]
            good |= np.isin(sites, atomic)
        elif values is not None and kind == "write":
            good |= self._stores_the_same(at, offsets, values, site)
        if good.all():
            return
        ids = active.ids if at.ndim == 1 else active.column
        convergent = self._convergent(active, ids, slots, epochs)
        # errors come first
        bad = np.argwhere(~good & ~convergent if (~good & ~convergent).any() else ~good)[0]
        cell = int(at[tuple(bad)])
        self._report(
            active,
            int(bad[0]),
            cell,
            kind,
            site,
            int(slots[tuple(bad)]),
            int(epochs[tuple(bad)]),
            int(self.cells.site[cell]),
            bool(convergent[tuple(bad)]),
        )

    def _stores_the_same(
        self,
        at: NDArray[np.int64],
        offsets: NDArray[Any],
        values: NDArray[Any],
        site: Instruction,
    ) -> NDArray[np.bool_]:
        """Threads that store the same bytes that the same instruction stored for another thread.

        Compilers let several threads store one value, each of them for those that read it.
        """
        here = self.cta.shared.data[offsets[:, None] + np.arange(values.shape[1])]
        same = (here == values).all(axis=1)
        mine = self.cells.site[at] == self.sites.generic(site, "write")
        return np.asarray(mine & (same if at.ndim == 1 else same[:, None]))

    def _after_readers(
        self, active: ActiveLanes, at: NDArray[np.int64], kind: str, site: Instruction
    ) -> None:
        row = self.clocks.uniform(active.threads)
        if row >= 0:
            clock = self.clocks.view(int(active.ids[0]), VC)[: self.clocks.threads]
            if self.cells.only_known(at, active, clock):
                return
        threads, epochs, lanes, cells = self.cells.readers_of(at)
        if not len(threads):
            return
        ids = active.ids[lanes]
        good = (threads == ids) | self.clocks.known(VC, ids, threads, epochs)
        if not good.all():
            convergent = self._convergent(active, ids, threads, epochs)
            bad = int((good | convergent if not (good | convergent).all() else good).argmin())
            self._report(
                active,
                int(lanes[bad]),
                int(cells[bad]),
                kind,
                site,
                int(threads[bad]),
                int(epochs[bad]),
                -1,
                bool(convergent[bad]),
            )

    def _convergent(
        self,
        active: ActiveLanes,
        ids: NDArray[np.int64],
        slots: NDArray[np.int64],
        epochs: NDArray[np.uint32],
    ) -> NDArray[np.bool_]:
        """The earlier accesses of other lanes by a warp that has run as one ever since.

        A peer's shared memory is left out: the order of accesses on the way there was not tested.
        """
        if self.cta is not active.wg.cta:
            return np.zeros(slots.shape, np.bool_)
        return self.threads.convergence.ordered(ids, slots, epochs)

    def _after_readings(
        self, active: ActiveLanes, offsets: NDArray[Any], size: int, kind: str, site: Instruction
    ) -> None:
        low, high = int(offsets.min()), int(offsets.max()) + size
        common = self.clocks.common_view(active.threads, VC)
        for reading in self._readings.values():
            if reading.start >= high or reading.stop <= low:
                continue
            if common is not None and common[reading.slot] >= reading.epoch:
                continue
            good = self.clocks.knows(VC, active.threads, reading.slot, reading.epoch)
            if good.all():
                continue
            hit = (offsets < reading.stop) & (offsets + size > reading.start) & ~good
            if hit.any():
                hit &= touched(reading.op, self.cta, offsets, size)
            if hit.any():
                bad = int(hit.argmax())
                cell = int(offsets[bad]) >> self.cells.shift
                self._report(
                    active, bad, cell, kind, site, reading.slot, reading.epoch, reading.site
                )

    def _report(
        self,
        active: ActiveLanes,
        lane: int,
        cell: int,
        kind: str,
        site: Instruction,
        slot: int,
        epoch: int,
        number: int,
        convergent: bool = False,
    ) -> None:
        """Report lane number ``lane`` of the active ones, which does not know an access to a cell.

        ``number`` is the earlier site, -1 a generic read, whose site is not kept; ``convergent``
        says that the warp of both has run as one since.
        """
        start, stop = self.cells.bytes_of(cell)
        number_of = int(active.ids[lane])
        wg, mask = self.threads.one(number_of)
        known = self.clocks.view(number_of, LOOSE)[slot] >= epoch
        earlier = (
            f"a read by {self.threads.who(slot)}"
            if number < 0
            else self.sites.earlier(number, self.threads.who(slot))
        )
        message = f"{kind} of {place(self.cta, start, stop)} is ordered after {earlier}"
        if known:
            why, severity = narrow_scope(self.threads, wg.cta, slot, epoch, number >= 0)
            self.sites.find("race", f"{message} {why}", site, wg, mask, severity, number)
        elif convergent:
            why = (
                "only because their warp has run as one since: a __syncwarp (bar.warp.sync) has to "
                "stand between"
            )
            self.sites.find("race", f"{message} {why}", site, wg, mask, Severity.ISA, number)
        else:
            self.sites.find(
                "race",
                message.replace("is ordered", "is not ordered"),
                site,
                wg,
                mask,
                earlier=number,
            )

    def _same_cell(
        self,
        active: ActiveLanes,
        at: NDArray[np.int64],
        bad: NDArray[np.bool_],
        holders: NDArray[np.int64],
        site: Instruction,
    ) -> None:
        """Lanes write the same cell with one instruction: harmless if the values are equal."""
        where = tuple(np.argwhere(bad)[0])
        start, stop = self.cells.bytes_of(int(at[where]))
        self.sites.find(
            "race",
            f"several lanes write {place(self.cta, start, stop)} with one instruction, "
            f"among them {self.threads.who(int(holders[where]))}: which one wins is undefined "
            "unless the values are equal",
            site,
            active.wg,
            active.mask,
            Severity.REVIEW,
        )

    def _fresh(
        self,
        active: ActiveLanes,
        at: NDArray[np.int64],
        flags: NDArray[np.uint8],
        kind: str,
        site: Instruction,
    ) -> None:
        cell = int(at[tuple(np.argwhere(flags & FRESH)[0])])
        start, stop = self.cells.bytes_of(cell)
        self.sites.find(
            "uninitialised",
            f"{kind} of {place(self.cta, start, stop)}, which nobody has written",
            site,
            active.wg,
            active.mask,
        )
        self.cells.flags[at] &= np.uint8(~FRESH & 255)

    def _touches_barrier(
        self,
        active: ActiveLanes,
        at: NDArray[np.int64],
        flags: NDArray[np.uint8],
        kind: str,
        site: Instruction,
    ) -> None:
        for cell in np.unique(at[(flags & BARRIER) != 0]).tolist():
            start, stop = self.cells.bytes_of(cell)
            offset = start & ~7
            if offset in self.cta.barriers:
                self.sites.find(
                    "barrier-misuse",
                    f"{kind} of {place(self.cta, start, stop)}, which holds an mbarrier",
                    site,
                    active.wg,
                    active.mask,
                )
            else:
                self.cells.flags[cell] &= np.uint8(~BARRIER & 255)

    # ---- the async proxy


def _differs(
    holders: NDArray[np.int64], ids: NDArray[np.int64], values: NDArray[Any]
) -> NDArray[np.bool_]:
    """Whether each thread stored other bytes than the present holder of its (first) cell.

    Threads that overlap in part only count as different if their bytes do.
    """
    first = holders if holders.ndim == 1 else holders[:, 0]
    at = np.searchsorted(ids, first)
    return np.asarray((values != values[at]).any(axis=1))
