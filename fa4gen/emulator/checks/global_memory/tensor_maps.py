"""Tensor maps in global memory that a kernel changes (PTX ISA, "tensormap proxy").

A change has to come after every copy that reads the map has read it, and a copy after the change:
with a release by the thread that changed it, an acquire of the map, and order among the threads in
between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.checks.order.clocks import VC
from fa4gen.emulator.state.map_bits import MAP_BYTES
from fa4gen.emulator.state.memory import PARAM_WINDOW

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.checks.sites import Sites
    from fa4gen.emulator.checks.synchronisation.rounds import Grid
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp


@dataclass(frozen=True, slots=True)
class Event:
    """Something done to a map, by a thread or an operation in its column of a cluster's clocks."""

    cluster: int
    slot: int
    epoch: int
    round: int
    number: int = 0


@dataclass(slots=True)
class MapState:
    """A map: its last writer, that write's release, the threads that acquired it, its readers."""

    changed: Event | None = None
    released: bool = False
    acquired: dict[tuple[int, int], Event] = field(default_factory=dict)
    readers: dict[tuple[int, int], Event] = field(default_factory=dict)


class MapChecks:
    """The tensor maps of a launch by address; those in parameters cannot change."""

    def __init__(self, sites: Sites, grid: Grid) -> None:
        self.sites = sites
        self.grid = grid
        self._maps: dict[int, MapState] = {}

    # ---- events

    def stored(
        self,
        threads: ClusterThreads,
        active: ActiveLanes,
        low: int,
        high: int,
        kind: str,
        site: Instruction,
    ) -> None:
        """Threads write somewhere between two addresses by ordinary stores."""
        for address in [one for one in self._maps if one < high and low < one + MAP_BYTES]:
            self.changed(threads, active, address, kind, False, site)

    def changed(
        self,
        threads: ClusterThreads,
        active: ActiveLanes,
        address: int,
        kind: str,
        released: bool,
        site: Instruction,
    ) -> None:
        """A thread writes a map, ``released`` to the tensormap proxy along with it or not."""
        state = self._maps.setdefault(address, MapState())
        thread = int(active.ids[0])
        for event in state.readers.values():
            if not self._after(threads, thread, event):
                who = threads.who(event.slot)
                self.sites.find(
                    "race",
                    f"{kind} of the tensor map at {self._place(address)}, which "
                    f"{self.sites.earlier(event.number, who)} may still be reading",
                    site,
                    active.wg,
                    active.mask,
                    earlier=event.number,
                )
                break
        number = self.sites.generic(site, kind)
        epoch = int(threads.clocks.epochs[thread])
        state.changed = Event(threads.cluster.index, thread, epoch, self._round(threads), number)
        state.released = released
        state.acquired = {}
        state.readers = {}

    def released(self, threads: ClusterThreads, active: ActiveLanes) -> None:
        """``fence.proxy.tensormap::generic.release``: changes that the threads know of."""
        for state in self._maps.values():
            if state.changed is not None and not state.released:
                ids = active.ids.tolist()
                state.released = any(self._after(threads, one, state.changed) for one in ids)

    def acquired(self, threads: ClusterThreads, active: ActiveLanes, addresses: Any) -> None:
        """``fence.proxy.tensormap::generic.acquire`` of the maps at these addresses."""
        row = np.broadcast_to(np.asarray(addresses), len(active.ids))
        for address in np.unique(row).tolist():
            state = self._maps.get(address)
            if state is None or state.changed is None:
                continue
            for thread in active.ids[row == address].tolist():
                if self._after(threads, thread, state.changed):
                    epoch = int(threads.clocks.epochs[thread])
                    event = Event(threads.cluster.index, thread, epoch, self._round(threads))
                    state.acquired.setdefault((event.cluster, thread), event)

    def used(self, threads: ClusterThreads, op: AsyncOp, number: int) -> None:
        """A copy reads the map that its notes name, some time from now on."""
        address = op.notes["map"]
        if address >= PARAM_WINDOW:
            return
        state = self._maps.setdefault(address, MapState())
        # the map is read when the sources are
        event = Event(
            threads.cluster.index,
            op.slot,
            op.epoch - 1,
            self._round(threads),
            number,
        )
        state.readers[event.cluster, event.slot] = event
        change = state.changed
        if change is None:
            return
        if not self._known(threads, op.clock[VC], change):
            self._find("race", "and nothing orders the two", op, address, change, threads)
        elif not state.released or not any(
            self._known(threads, op.clock[VC], one) for one in state.acquired.values()
        ):
            fence = "acquire" if state.released else "release"
            text = f"without fence.proxy.tensormap::generic.{fence} in between"
            self._find("missing-proxy-fence", text, op, address, change, threads)

    # ---- order

    def _round(self, threads: ClusterThreads) -> int:
        return int(self.grid.rounds[threads.cluster.index])

    def _after(self, threads: ClusterThreads, thread: int, event: Event) -> bool:
        """Whether a thread knows an event; its own are known."""
        if event.cluster != threads.cluster.index:
            return self.grid.known(threads.cluster.index).of_one(event.cluster) >= event.round
        own = event.slot == thread
        known = threads.clocks.knows(VC, slice(thread, thread + 1), event.slot, event.epoch)
        return own or bool(known.all())

    def _known(self, threads: ClusterThreads, clock: Any, event: Event) -> bool:
        if event.cluster != threads.cluster.index:
            return self.grid.known(threads.cluster.index).of_one(event.cluster) >= event.round
        return bool(clock[event.slot] >= event.epoch)

    # ---- words

    def _place(self, address: int) -> str:
        return self.sites.machine.memory.describe(address)

    def _find(
        self,
        kind: str,
        text: str,
        op: AsyncOp,
        address: int,
        change: Event,
        threads: ClusterThreads,
    ) -> None:
        who = (
            threads.who(change.slot)
            if change.cluster == threads.cluster.index
            else "another cluster"
        )
        mask = np.zeros(op.wg.lanes, np.bool_)
        mask[op.lane] = True
        self.sites.find(
            kind,
            f"{op.kind} reads the tensor map at {self._place(address)} after "
            f"{self.sites.earlier(change.number, who)} {text}",
            op.site,
            op.wg,
            mask,
            earlier=change.number,
        )
