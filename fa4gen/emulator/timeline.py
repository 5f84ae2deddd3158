"""A timeline of a launch from a small cost model, as a Chrome/Perfetto trace.

The emulator knows order, not time. Here every warp carries a clock in cycles that grows by the
issue slots of what it executes; asynchronous operations occupy their unit and end after a latency;
a wait lasts until what it waits for has ended. With a timeline the scheduler runs whoever is
furthest behind, so that units are handed out in the order of time. The figures are a model: good
for seeing who waits for whom, not for predicting a run time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.observer import Observer
from fa4gen.emulator.costs import LATENCY, instruction_cycles
from fa4gen.emulator.gang import WARP_LANES

if TYPE_CHECKING:
    from fa4gen.emulator.async_ops import AsyncOp
    from fa4gen.emulator.gang import Gang, Mask
    from fa4gen.emulator.lanes import Lanes
    from fa4gen.emulator.machine import Cta, Machine
    from fa4gen.emulator.mbarriers import Mbarrier
    from fa4gen.emulator.ptx.syntax import Instruction

_MAX_EVENTS = 500_000
_SUBPARTITIONS = 4


class Timeline(Observer):
    """Keeps the clocks and collects the events of the trace."""

    enabled = True

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._events: list[dict[str, Any]] = []
        self._free: dict[tuple[int, str], float] = {}
        self._meetings: dict[Any, float] = {}
        self._costs: dict[tuple[int, int], float] = {}
        self._tracks: dict[tuple[int, str], int] = {}
        self._end = 0.0

    # ---- clocks

    def clocks(self, gang: Gang) -> NDArray[np.float64]:
        """The clocks of a gang's warps, in cycles."""
        clocks: NDArray[np.float64] | None = gang.state.get("clocks")
        if clocks is None:
            clocks = np.full(gang.warps, self._free.get((gang.cta.index, "start"), 0.0))
            gang.state["clocks"] = clocks
        return clocks

    def now(self, gang: Gang) -> float:
        """The clock of the warp that is furthest behind and alive."""
        return float(self.clocks(gang).min())

    def ran(self, gang: Gang, lanes: Lanes, start: int, stop: int) -> None:
        """Lanes executed the instructions ``start`` to ``stop``."""
        cost = self._costs.get((start, stop))
        if cost is None:
            code = self._machine.scheduler.code.instructions[start:stop]
            cost = sum(instruction_cycles(one) for one in code)
            self._costs[start, stop] = cost
        clocks = self.clocks(gang)
        for warp in gang.warps_of(lanes.mask):
            unit = (gang.cta.index, f"issue {warp % _SUBPARTITIONS}")
            begin = max(clocks[warp], self._free.get(unit, 0.0))
            clocks[warp] = self._free[unit] = begin + cost
            if cost >= 8:
                name = self._machine.scheduler.code.instructions[start].where
                self._event(gang, warp, name, begin, cost, "run")

    def _until(self, gang: Gang, mask: Mask, time: float, what: str) -> None:
        """Warps wait until a time."""
        clocks = self.clocks(gang)
        for warp in gang.warps_of(mask):
            if time > clocks[warp]:
                self._event(gang, warp, what, clocks[warp], time - clocks[warp], "wait")
                clocks[warp] = time

    def _latest(self, gang: Gang, mask: Mask) -> float:
        return float(self.clocks(gang)[gang.warps_of(mask)].max())

    # ---- what the observer is told

    def issued(self, op: AsyncOp) -> None:
        warp = op.lane // WARP_LANES
        now = float(self.clocks(op.gang)[warp])
        cta = op.gang.cta
        after = max((one.end_time - LATENCY.get(one.unit, 0.0) for one in op.after), default=0.0)
        unit = (cta.index, op.unit)
        begin = max(now, after, self._free.get(unit, 0.0))
        self._free[unit] = begin + op.cycles
        op.end_time = begin + op.cycles + LATENCY.get(op.unit, 0.0)
        self._end = max(self._end, op.end_time)
        if op.cycles:
            self._events.append(
                {
                    "name": op.kind,
                    "cat": op.unit,
                    "ph": "X",
                    "ts": begin,
                    "dur": op.cycles,
                    "pid": cta.index,
                    "tid": self._track(cta, f"unit: {op.unit}"),
                    "args": {"at": op.site.where},
                }
            )

    def observed(self, gang: Gang, mask: Mask, ops: list[AsyncOp], kind: str) -> None:
        if ops:
            self._until(gang, mask, max(op.end_time for op in ops), f"wait for {ops[-1].kind}")

    def arrived(
        self, gang: Gang, mask: Mask, barrier: Mbarrier, release: str, site: Instruction
    ) -> None:
        barrier.pending_time = max(barrier.pending_time, self._latest(gang, mask))

    def waited(
        self,
        gang: Gang,
        mask: Mask,
        barrier: Mbarrier,
        phase: int,
        acquire: str,
        site: Instruction,
    ) -> None:
        if phase + 1 == barrier.phase:
            time = barrier.complete_time + LATENCY["mbarrier"]
            self._until(gang, mask, time, f"wait for {barrier.name}")

    def rendezvous_arrive(
        self, gang: Gang, mask: Mask, key: Any, release: bool, site: Instruction | None = None
    ) -> None:
        self._meetings[key] = max(self._meetings.get(key, 0.0), self._latest(gang, mask))

    def rendezvous_leave(self, gang: Gang, mask: Mask, key: Any, acquire: bool) -> None:
        time = self._meetings.get(key, 0.0) + LATENCY["barrier"]
        self._until(gang, mask, time, f"wait at {key[0]} barrier {key[-1]}")

    def lanes_leave(self, gang: Gang, mask: Mask) -> None:
        end = self._latest(gang, mask)
        self._end = max(self._end, end)
        unit = (gang.cta.index, "start")
        self._free[unit] = max(self._free.get(unit, 0.0), 0.0)

    # ---- the trace

    def _event(
        self, gang: Gang, warp: int, name: str, begin: float, length: float, kind: str
    ) -> None:
        if len(self._events) >= _MAX_EVENTS:
            return
        first = gang.first_thread + warp * WARP_LANES
        role = self._machine.names.of_threads(first, first)
        number = first // WARP_LANES
        title = f"warp {number:2d} {role}" if role else f"warp {number:2d}"
        self._events.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": begin,
                "dur": length,
                "pid": gang.cta.index,
                "tid": self._track(gang.cta, title),
            }
        )

    def _track(self, cta: Cta, title: str) -> int:
        """The number of a track of the trace; new ones get their title."""
        key = (cta.index, title)
        if key not in self._tracks:
            self._tracks[key] = len(self._tracks)
            self._events.append(
                {
                    "name": "thread_name",
                    "ph": "M",
                    "pid": cta.index,
                    "tid": self._tracks[key],
                    "args": {"name": title},
                }
            )
        return self._tracks[key]

    def write(self, path: Path) -> float:
        """Write the trace; returns the cycles from the first instruction to the last event."""
        document = {
            "traceEvents": self._events,
            "displayTimeUnit": "ns",
            "otherData": {
                "what": "a model: cycles from a cost table, shown as microseconds",
                "target": self._machine.sm,
            },
        }
        beside = path.with_name(path.name + ".tmp")
        beside.write_text(json.dumps(document))
        beside.replace(path)
        return self._end
