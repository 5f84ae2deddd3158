"""A timeline of a launch from a small cost model, as a Chrome/Perfetto trace.

The emulator knows order, not time. Here every warp carries a clock in cycles. Instructions take the
pipes of the warp's quarter of the SM (see pipes.py); asynchronous operations occupy their unit one
after the other and end after a latency; a wait lasts until the awaited operation has ended. With a
timeline the scheduler runs the warp furthest behind, so that units are assigned in the order of
time. The figures are a model: good for seeing which role waits for which, not for predicting a run
time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import Observer
from fa4gen.emulator.state.registers import WARP_LANES
from fa4gen.emulator.timeline.costs import PIPES, TENSOR_MEMORY_BYTES, chip_of, product_tail
from fa4gen.emulator.timeline.pipes import Piece, Pipes, Units, cut
from fa4gen.temporary import replace_file

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.state.machine import (
        AsyncOp,
        Cta,
        Machine,
        Mbarrier,
        TensorRange,
        Warpgroup,
    )
    from fa4gen.emulator.state.registers import Mask

_MAX_EVENTS: Final = 500_000
_UNITS: Final = {"tensor": "tensor core", "tma": "TMA", "other": "other copies"}
_TAIL: Final = {"other": 30.0}
# the trace viewer's own names of colours
_COLOURS: Final = {
    "wait": "grey", "exp2": "thread_state_iowait", "compute": "thread_state_running",
    "memory": "rail_load", "issue": "rail_response", "tensor memory": "rail_animation",
}  # fmt: skip


@dataclass(slots=True)
class _Run:
    """A straight run under way: the next instruction to charge for each of its warps."""

    stop: int
    next: dict[int, int]


_CLOCKS: Final[Attached[Warpgroup, NDArray[np.float64]]] = Attached(lambda wg: np.zeros(wg.warps))
_OPEN_UNTIL: Final[Attached[Warpgroup, dict[str, dict[int, float]]]] = Attached(lambda wg: {})
"""Until when loads (read) or stores (write) of tensor memory are under way, by kind and warp."""


class Timeline(Observer):
    """Keeps the clocks and collects the events of the trace."""

    enabled = True

    def __init__(self, machine: Machine, instructions: Sequence[Instruction]) -> None:
        self._machine = machine
        self._instructions = instructions
        self._chip = chip_of(machine.sm)
        self._pipes = Pipes()
        self._events: list[dict[str, Any]] = []
        self._latest: dict[int, dict[str, Any]] = {}
        self._units = Units()
        self._committed: dict[tuple[int, int], float] = {}
        self._meetings: dict[Any, float] = {}
        self._pieces: dict[tuple[int, int], tuple[Piece, ...]] = {}
        self._tracks: dict[tuple[int, str], int] = {}
        self._end = 0.0
        self._runs: dict[Warpgroup, _Run] = {}

    @cached_property
    def _index(self) -> dict[Instruction, int]:
        return {one: index for index, one in enumerate(self._instructions)}

    # ---- clocks

    def clocks(self, wg: Warpgroup) -> NDArray[np.float64]:
        """The clocks of a warpgroup's warps, in cycles."""
        return _CLOCKS.of(wg)

    def behind(self, wg: Warpgroup, lanes: Lanes) -> float:
        """The clock of the lanes' warp that is furthest behind."""
        return float(self.clocks(wg)[wg.warps_of(lanes.mask)].min())

    def begins(self, wg: Warpgroup, lanes: Lanes, start: int, stop: int) -> None:
        """Lanes are about to execute the instructions ``start`` to ``stop``."""
        self._runs[wg] = _Run(stop, dict.fromkeys(wg.warps_of(lanes.mask), start))

    def ran(self, wg: Warpgroup, lanes: Lanes) -> None:
        """Lanes have executed the instructions that they began."""
        run = self._runs.pop(wg)
        for warp in wg.warps_of(lanes.mask):
            self._charge(wg, warp, run, run.stop)

    def _charge(self, wg: Warpgroup, warp: int, run: _Run, stop: int) -> None:
        """A warp executes its run up to an instruction."""
        start = run.next.get(warp, stop)
        if start >= stop:
            return
        run.next[warp] = stop
        pieces = self._pieces.get((start, stop))
        if pieces is None:
            code = self._instructions
            pieces = self._pieces[start, stop] = cut(code, start, stop, self._machine.sm)
        clocks = self.clocks(wg)
        number = wg.first_thread // WARP_LANES + warp
        for piece in pieces:
            begin = float(clocks[warp])
            end = self._pipes.occupy(wg.cta.index, number, piece, begin)
            clocks[warp] = end
            event = self._event(wg, warp, piece.kind, begin, end - begin, piece.kind)
            event["args"].setdefault("at", piece.first.where)
            for name, amount in zip(PIPES, piece.use, strict=True):
                event["args"][name] = event["args"].get(name, 0.0) + amount

    def _reach(self, wg: Warpgroup, warps: list[int], site: Instruction) -> None:
        """Warps of a run under way have executed it up to and with an instruction."""
        run = self._runs.get(wg)
        if run is not None:
            stop = min(self._index[site] + 1, run.stop)
            for warp in warps:
                self._charge(wg, warp, run, stop)

    def _reach_wait(self, wg: Warpgroup, warps: list[int], words: tuple[str, ...]) -> None:
        """Advance to the next instruction of a run that waits for something."""
        run = self._runs.get(wg)
        if run is None:
            return
        code = self._instructions
        for warp in warps:
            for index in range(run.next.get(warp, run.stop), run.stop):
                if code[index].text.startswith(words) and "wait" in code[index].text:
                    self._charge(wg, warp, run, index + 1)
                    break

    def _until(self, wg: Warpgroup, warps: list[int], time: float, what: str) -> None:
        """Warps wait until a time."""
        clocks = self.clocks(wg)
        for warp in warps:
            if time > clocks[warp]:
                begin = float(clocks[warp])
                self._event(wg, warp, f"wait for {what}", begin, time - begin, "wait")
                clocks[warp] = time

    def _last(self, wg: Warpgroup, warps: list[int]) -> float:
        return float(self.clocks(wg)[warps].max())

    # ---- asynchronous operations

    def issued(self, op: AsyncOp) -> None:
        wg = op.wg
        warps = list(range(wg.warps)) if op.kind == "wgmma" else [op.lane // WARP_LANES]
        self._reach(wg, warps, op.site)
        now = self._last(wg, warps)
        thread = (wg.cta.index, wg.thread(op.lane))
        if op.kind == "tcgen05.commit":
            op.end_time = max(now, self._committed.get(thread, 0.0))
            return
        ctas = {one.cta.index: one.cta for one in op.tensor_writes} if op.unit == "tensor" else {}
        ctas = ctas or {wg.cta.index: wg.cta}
        units = [(index, op.unit) for index in ctas]
        begin = self._units.take(units, (*thread, op.unit), now, op.cycles)
        op.end_time = begin + op.cycles + self._tail(op, len(ctas))
        self._end = max(self._end, op.end_time)
        if op.unit == "tensor":
            self._committed[thread] = op.end_time
        for unit in units:
            if op.cycles:
                self._unit_event(op, ctas[unit[0]], begin)

    def _tail(self, op: AsyncOp, ctas: int) -> float:
        """From the end of an operation's use of its unit to its signal."""
        if op.unit == "tensor":
            product = op.notes.get("product", {})
            rows, a = product.get("rows", 128), product.get("a", "shared memory")
            return product_tail(op.kind, ctas, rows, a == "shared memory")
        return self._chip.copy if op.unit == "tma" else _TAIL.get(op.unit, 0.0)

    def _unit_event(self, op: AsyncOp, cta: Cta, begin: float) -> None:
        args = {"at": op.site.where, "issuer": op.wg.first_thread // WARP_LANES}
        name = op.kind
        if op.unit == "tensor":
            product = op.notes.get("product", {})
            args |= product
            if product:
                name = f"{name}, A in {product['a']}"
        else:
            args["shared"] = sum(
                one.stop - one.start
                for one in (*op.reads, *op.writes)
                if getattr(one, "cta", None) is cta
            )
        title = _UNITS.get(op.unit, op.unit)
        track = self._track(cta, title, {"unit": title})
        self._keep(cta, track, name, begin, op.cycles, op.unit, args)

    def observed(self, wg: Warpgroup, mask: Mask, ops: list[AsyncOp], kind: str) -> None:
        if ops:
            warps = wg.warps_of(mask)
            self._reach_wait(wg, warps, ("wgmma", "cp"))
            self._until(wg, warps, max(op.end_time for op in ops), ops[-1].kind)

    # ---- barriers

    def arrived(
        self, wg: Warpgroup, mask: Mask, barrier: Mbarrier, release: str, site: Instruction
    ) -> None:
        warps = wg.warps_of(mask)
        self._reach(wg, warps, site)
        time = self._last(wg, warps) + self._chip.arrive
        barrier.pending_time = max(barrier.pending_time, time)

    def waited(
        self,
        wg: Warpgroup,
        mask: Mask,
        barrier: Mbarrier,
        phase: int,
        acquire: str,
        site: Instruction,
    ) -> None:
        clocks = self.clocks(wg)
        over = barrier.complete_time if phase + 1 == barrier.phase else 0.0
        for warp in wg.warps_of(mask):
            time = max(float(clocks[warp]), over) + self._chip.try_wait
            self._until(wg, [warp], time, barrier.name)

    def rendezvous_arrive(
        self, wg: Warpgroup, mask: Mask, key: Any, release: bool, site: Instruction | None = None
    ) -> None:
        last = self._last(wg, wg.warps_of(mask))
        self._meetings[key] = max(self._meetings.get(key, 0.0), last)

    def rendezvous_leave(self, wg: Warpgroup, mask: Mask, key: Any, acquire: bool) -> None:
        time = self._meetings.get(key, 0.0) + self._chip.barrier
        self._until(wg, wg.warps_of(mask), time, f"{key[0]} barrier {key[-1]}")

    def lanes_leave(self, wg: Warpgroup, mask: Mask) -> None:
        self._end = max(self._end, self._last(wg, wg.warps_of(mask)))

    # ---- tensor memory

    def tensor_access(
        self, wg: Warpgroup, mask: Mask, ranges: list[TensorRange], kind: str, site: Instruction
    ) -> None:
        warps = wg.warps_of(mask)
        self._reach(wg, warps, site)
        cells = sum(
            (one.last_lane - one.first_lane) * (one.last_column - one.first_column)
            for one in ranges
        )
        cycles = 4.0 * cells / len(warps) / TENSOR_MEMORY_BYTES
        tail = self._chip.tensor_load if kind == "read" else self._chip.tensor_store
        open_until = _OPEN_UNTIL.of(wg).setdefault(kind, {})
        for warp in warps:
            unit = (wg.cta.index, f"tensor memory {kind} {warp % 4}")
            now = float(self.clocks(wg)[warp])
            begin = self._units.take([unit], (wg, warp, kind), now, cycles)
            open_until[warp] = begin + cycles + tail

    def tensor_waited(self, wg: Warpgroup, mask: Mask, kind: str) -> None:
        warps = wg.warps_of(mask)
        self._reach_wait(wg, warps, ("tcgen05.wait::ld" if kind == "read" else "tcgen05.wait::st",))
        clocks = self.clocks(wg)
        name = "tensor memory load" if kind == "read" else "tensor memory store"
        for warp in warps:
            time = _OPEN_UNTIL.of(wg).get(kind, {}).get(warp, 0.0)
            begin = float(clocks[warp])
            if time > begin:
                self._event(wg, warp, name, begin, time - begin, "tensor memory")
                clocks[warp] = time

    # ---- the trace

    def _event(
        self, wg: Warpgroup, warp: int, name: str, begin: float, length: float, kind: str
    ) -> dict[str, Any]:
        """Draw an event of a warp; continue its latest event when that has the same name."""
        number = wg.first_thread // WARP_LANES + warp
        first = number * WARP_LANES
        role = self._machine.names.of_threads(first, first) or ""
        title = f"warp {number:2d} {role}".rstrip()
        track = self._track(wg.cta, title, {"warp": number, "role": role})
        latest = self._latest.get(track)
        goes_on = latest is not None and abs(latest["ts"] + latest["dur"] - begin) < 1e-6
        if latest is not None and goes_on and latest["name"] == name:
            latest["dur"] += length
            return latest
        event = self._keep(wg.cta, track, name, begin, length, kind, {})
        self._latest[track] = event
        return event

    def _keep(
        self, cta: Cta, track: int, name: str, begin: float, length: float, kind: str,
        args: dict[str, Any],
    ) -> dict[str, Any]:  # fmt: skip
        event = {
            "name": name, "cat": kind, "ph": "X", "ts": begin, "dur": length, "pid": cta.index,
            "tid": track, "args": args,
        }  # fmt: skip
        if kind in _COLOURS:
            event["cname"] = _COLOURS[kind]
        if len(self._events) < _MAX_EVENTS:
            self._events.append(event)
        return event

    def _track(self, cta: Cta, title: str, facts: dict[str, Any]) -> int:
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
                    "args": {"name": title, **facts},
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
        replace_file(path, json.dumps(document).encode())
        return self._end
