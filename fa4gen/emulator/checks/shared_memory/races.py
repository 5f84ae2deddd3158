"""Races in the shared memory of one CTA, within and between the proxies.

PTX ISA, "Memory Consistency Model" and "Proxies".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import AVC, LOOSE, VC, WARP, Vector, writes_as_threads
from fa4gen.emulator.checks.order.scopes import narrow_scope
from fa4gen.emulator.checks.shared_memory.cells import BARRIER, FRESH, HAS_READERS
from fa4gen.emulator.checks.shared_memory.pieces import touched, within
from fa4gen.emulator.checks.shared_memory.thread_races import GenericChecks, Reading
from fa4gen.emulator.checks.sites import is_reduction, place
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, SharedRange

_FENCE = "without fence.proxy.async in between (generic and async proxy)"
_LOADS: Final = {
    Severity.ERROR: "the load may not be over, its value was not needed before its release",
    Severity.ISA: "the load is over, its value was needed before its release",
    Severity.REVIEW: "only a barrier of the CTA shows that the load is over",
}


class SharedChecks(GenericChecks):
    """All checks of the shared memory of one CTA: threads, and asynchronous operations."""

    def operation_reads(self, op: AsyncOp, part: SharedRange, clock: Vector, number: int) -> None:
        """An operation reads a stretch, some time from now on."""
        span = self.cells.span(part.start, part.stop)
        # reads that were found in order stay so until the cell changes: they are not checked again
        issuer = op.wg, op.lane, op.kind, op.notes.get("issuers")
        writes, known = self._in_order.get(issuer, (-1, {}))
        if writes != self.cells.writes:
            known = {}
            self._in_order[issuer] = self.cells.writes, known
        first = start = span.start
        for begin, end in known.items():
            if begin <= start < end:
                first, start = begin, end
        if start < span.stop and self._reads_in_order(op, part, slice(start, span.stop), clock):
            known[first] = span.stop
        key = (part.start, part.stop, op.wg, op.lane, op.kind)
        self._readings[key] = Reading(part.start, part.stop, op.slot, op.epoch - 1, number, op)

    def _reads_in_order(self, op: AsyncOp, part: SharedRange, span: slice, clock: Vector) -> bool:
        """Report a read of unwritten or not yet ordered bytes; return whether there is none."""
        flags = int(np.bitwise_or.reduce(self.cells.flags[span]))
        if flags & FRESH and self.options.uninitialised:
            fresh = self._really(op, span, (self.cells.flags[span] & FRESH) != 0)
            if fresh.any():
                start = self.cells.bytes_of(span.start + int(fresh.argmax()))[0]
                self.sites.find(
                    "uninitialised",
                    f"{op.kind} reads {place(self.cta, start, part.stop)}, which "
                    "nobody has written",
                    op.site,
                    op.wg,
                    self._lane(op),
                )
                self.cells.flags[span] &= np.uint8(~FRESH & 255)
        return self._operation_after_writers(op, span, clock, "reads") and not flags & FRESH

    def operation_writes(self, op: AsyncOp, part: SharedRange, clock: Vector, number: int) -> None:
        """An operation overwrites a stretch, some time from now on."""
        cells = self.cells
        span = cells.span(part.start, part.stop)
        flags = int(np.bitwise_or.reduce(cells.flags[span]))
        if flags & BARRIER:
            self._operation_over_barrier(op, part)
        self._operation_after_writers(op, span, clock, "overwrites")
        if writes_as_threads(op):
            self._thread_copies.add(number)
        if flags & HAS_READERS and (self.options.races or self.options.proxy_war):
            self._operation_after_readers(op, span, clock)
        for key, reading in list(self._readings.items()):
            if reading.start >= part.stop or reading.stop <= part.start:
                continue
            if (
                clock[VC, reading.slot] < reading.epoch
                and self.options.races
                and (self._reads_in(reading, part))
            ):
                self._report_operation(
                    op,
                    "overwrites",
                    max(reading.start, part.start),
                    clock,
                    reading.slot,
                    reading.epoch,
                    reading.site,
                )
            if part.start <= reading.start and reading.stop <= part.stop:
                del self._readings[key]
        cells.wrote_span(span, op.slot, op.epoch, number)

    def _operation_after_writers(self, op: AsyncOp, span: slice, clock: Vector, verb: str) -> bool:
        """Report an access that is not ordered after a write; whether all are, simply."""
        good = self._sees(op, span, clock)
        if np.count_nonzero(good) == good.size:
            return True
        slots, epochs = self.cells.slot[span], self.cells.epoch[span]
        if verb == "reads":
            really = self._really(op, span, ~good)
            good = ~really
            if not really.any():
                return False
            met = self.threads.met(op.wg) if op.kind.startswith("wgmma") else None
            if met is not None:
                good |= self._ordered_at_product(
                    op, span, really & (clock[VC][slots] < epochs), met
                )
                clock = np.maximum(clock, met)
        # a plain race is worse than a missing fence: report it if there is one
        plain = good | (clock[VC][slots] >= epochs)
        if is_reduction(op) and verb == "overwrites":
            numbers = self.cells.site[span]
            atomic = [one for one in np.unique(numbers).tolist() if self.sites.is_atomic(one)]
            plain |= np.isin(numbers, atomic)
            good |= np.isin(numbers, atomic)
        if good.all():
            return False
        bad = int(good.argmin())
        if not plain.all():
            if not self.options.races:
                return False
            bad = int(plain.argmin())
        cell = span.start + bad
        self._report_operation(
            op,
            verb,
            self.cells.bytes_of(cell)[0],
            clock,
            int(slots[bad]),
            int(epochs[bad]),
            int(self.cells.site[cell]),
        )
        return False

    def _ordered_at_product(
        self, op: AsyncOp, span: slice, suspects: NDArray[np.bool_], met: Vector
    ) -> NDArray[np.bool_]:
        """The cells whose last write is ordered because the warps have met at a wgmma.

        A write that all readers of a cell know by themselves is in order; for the others PTX
        requires a barrier.
        """
        ordered = suspects & self._sees(op, span, met)
        if not ordered.any():
            return ordered
        base = self.threads.base(op.wg)
        offsets = np.arange(span.start, span.stop) << self.cells.shift
        unknown = np.zeros_like(ordered)
        for warp in range(op.wg.warps):
            first = base + warp * WARP
            reads = within(op.notes["operands"].of_warp(warp), offsets, 1 << self.cells.shift)
            unknown |= reads & ~self._sees(op, span, self.clocks.of_warp(first, first + WARP))
        unknown &= ordered
        if unknown.any() and self.options.races:
            cell = span.start + int(unknown.argmax())
            number = int(self.cells.site[cell])
            earlier = self.sites.earlier(number, self.threads.who(int(self.cells.slot[cell])))
            self.sites.find(
                "race",
                f"{op.kind} reads {place(self.cta, *self.cells.bytes_of(cell))}, ordered after "
                f"{earlier} only because the first wgmma after wgmma.fence waits for all four "
                "warps: a barrier of the warpgroup has to stand between",
                op.site,
                op.wg,
                self._lane(op),
                Severity.ISA,
                number,
            )
        return ordered

    def _sees(self, op: AsyncOp, span: slice, clock: Vector) -> NDArray[np.bool_]:
        """The cells whose last write is ordered before an operation that knows ``clock``."""
        threads = self.clocks.threads
        across = op.notes.get("proxy") != "generic" and self.options.proxies
        seen = clock[VC]
        if across:
            seen = seen.copy()
            seen[:threads] = clock[AVC, :threads]
        slots, epochs = self.cells.slot[span], self.cells.epoch[span]
        good = seen[slots] >= epochs
        if across and self._thread_copies:
            # their slots belong to no thread, but they write as threads do
            copied = np.isin(self.cells.site[span], list(self._thread_copies))
            good &= ~copied | (clock[AVC][slots] >= epochs)
        return np.asarray(good)

    def _really(self, op: AsyncOp, span: slice, suspects: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the cells of a stretch that the operation does read, not just reach across."""
        if len(op.reads) == 1:
            return suspects
        at = np.flatnonzero(suspects)
        offsets = (at + span.start) << self.cells.shift
        result = np.zeros_like(suspects)
        result[at] = touched(op, self.cta, offsets, 1 << self.cells.shift)
        return result

    def _reads_in(self, reading: Reading, part: SharedRange) -> bool:
        """Whether an operation really reads some of a stretch."""
        start = max(reading.start, part.start)
        size = min(reading.stop, part.stop) - start
        return bool(touched(reading.op, self.cta, np.array([start]), size)[0])

    def _operation_after_readers(self, op: AsyncOp, span: slice, clock: Vector) -> None:
        threads, epochs, at = self.cells.readers_in(span, clock[VC])
        if len(threads):
            if self.options.races:
                start = self.cells.bytes_of(int(at[0]))[0]
                self._report_operation(
                    op, "overwrites", start, clock, int(threads[0]), int(epochs[0]), -1
                )
            return
        if not self.options.proxy_war or op.notes.get("proxy") == "generic":
            return
        threads, epochs, at = self.cells.readers_in(span, clock[AVC])
        if len(threads):
            self._operation_after_loads(op, clock, threads, at)

    def _operation_after_loads(
        self, op: AsyncOp, clock: Vector, threads: NDArray[Any], at: NDArray[Any]
    ) -> None:
        """Loads of cells precede, and no proxy fence: they may be under way still."""
        loads = self.threads.watched_loads()
        found: dict[Severity, tuple[int, int]] = {}
        for thread, cell in zip(threads.tolist(), at.tolist(), strict=True):
            start = self.cells.bytes_of(cell)[0]
            severity = loads.read(self.cta, start, thread, clock[VC])
            found.setdefault(severity, (thread, start))
        for severity, (thread, start) in found.items():
            self.sites.find(
                "proxy-war",
                f"{op.kind} overwrites {place(self.cta, start, start + 4)}, which "
                f"{self.threads.who(thread)} has read before, {_FENCE}: {_LOADS[severity]}",
                op.site,
                op.wg,
                self._lane(op),
                severity,
            )

    def _report_operation(
        self, op: AsyncOp, verb: str, start: int, clock: Vector, slot: int, epoch: int, number: int
    ) -> None:
        earlier = (
            f"a read by {self.threads.who(slot)}"
            if number < 0
            else self.sites.earlier(number, self.threads.who(slot))
        )
        what = f"{op.kind} {verb} {place(self.cta, start, start + 4)}"
        mask = self._lane(op)
        # a release of the peer that its threads did not fence before, whatever the wait's scope
        missed = self.threads.has_missed(op.wg.cta, VC, slot, epoch)
        unfenced = missed and not self.threads.has_missed(op.wg.cta, AVC, slot, epoch)
        in_async = number >= 0 and op.notes.get("proxy") != "generic" and self.options.proxies
        if clock[VC, slot] >= epoch or (unfenced and in_async):
            # kernels of Triton have wgmma read what cp.async wrote, once it is over
            copied = number in self._thread_copies
            self.sites.find(
                "missing-proxy-fence",
                f"{what} after {earlier} {_FENCE}",
                op.site,
                op.wg,
                mask,
                Severity.ISA if copied else Severity.ERROR,
                number,
            )
        elif clock[LOOSE, slot] >= epoch:
            why, severity = narrow_scope(self.threads, op.wg.cta, slot, epoch, number >= 0)
            self.sites.find(
                "race",
                f"{what}, ordered after {earlier} {why}",
                op.site,
                op.wg,
                mask,
                severity,
                number,
            )
        else:
            self.sites.find(
                "race",
                f"{what} and is not ordered after {earlier}",
                op.site,
                op.wg,
                mask,
                earlier=number,
            )

    def _operation_over_barrier(self, op: AsyncOp, part: SharedRange) -> None:
        for offset in self.cta.barriers:
            if part.start < offset + 8 and offset < part.stop:
                self.sites.find(
                    "barrier-misuse",
                    f"{op.kind} overwrites {self.cta.name_of(offset)}, an mbarrier",
                    op.site,
                    op.wg,
                    self._lane(op),
                )

    def _lane(self, op: AsyncOp) -> Any:
        mask = np.zeros(op.wg.lanes, np.bool_)
        mask[op.lane] = True
        return mask

    # ---- mbarriers

    def barrier_made(self, active: ActiveLanes, offset: int, site: Instruction) -> None:
        """The initialisation of an mbarrier is a write of eight bytes."""
        at = np.array([offset])
        span = self.cells.span(offset, offset + 8)
        # one may have been there before
        self.cells.flags[span] &= np.uint8(~BARRIER & 255)
        self.access(active, at, 8, "write", False, site)
        self.cells.flags[self.cells.span(offset, offset + 8)] = BARRIER
