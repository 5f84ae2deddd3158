"""Order of accesses to the tensor memory of one CTA (PTX ISA, "tcgen05 Memory Consistency Model").

Instructions of one queue start in order, but only some pairs also take effect in order; all else
needs the earlier one to be complete: ``tcgen05.wait`` for loads and stores, a commit and its
mbarrier for the others. Between threads it needs ``tcgen05.fence`` on both sides as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import AFTER, EXEC, LOOSE, VC, Vector
from fa4gen.emulator.checks.tensor_memory.areas import Areas, Entry, Rectangle
from fa4gen.emulator.checks.tensor_memory.findings import TensorFindings
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.machine import TensorRange
from fa4gen.emulator.state.registers import lane_mask

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cta, Warpgroup
    from fa4gen.emulator.state.registers import Mask

_BLOCK: Final = 32

# Pairs that take effect in order within a queue, whatever they share.
_PIPELINED: Final = {
    ("tcgen05.cp", "tcgen05.mma"), ("tcgen05.shift", "tcgen05.mma"),
    ("tcgen05.shift", "tcgen05.cp"), ("tcgen05.mma", "tcgen05.shift"),
}  # fmt: skip


@cache
def family(kind: str) -> str:
    """``tcgen05.mma`` of ``tcgen05.mma.ws`` and the like."""
    return ".".join(kind.split(" ")[0].split(".")[:2])


class TensorChecks(TensorFindings):
    """History of one CTA's tensor memory."""

    def __init__(self, threads: ClusterThreads, cta: Cta, options: CheckOptions) -> None:
        super().__init__(threads, options)
        self.clocks = threads.clocks
        self.cta = cta
        self._areas = Areas()
        self._open: dict[tuple[int, str], list[Entry]] = {}

    # ---- loads, stores and deallocation

    def access(self, active: ActiveLanes, part: TensorRange, kind: str, site: Instruction) -> None:
        """The lanes of one warp load from, store to or free a rectangle."""
        rectangle = _place(part)
        for entry in self._areas.touching(rectangle):
            if kind == "read" and not entry.writes:
                if (
                    entry.ids is not None
                    and entry.ids[0] // 32 == active.ids[0] // 32
                    and (entry.within(rectangle))
                ):
                    # a later load of the same warp; a wait covers both
                    self._areas.drop(entry)
                continue
            self._thread_after(active, entry, kind, site)
            if kind != "read" and entry.within(rectangle):
                self._areas.drop(entry)
        if kind == "free":
            return
        number = self.threads.sites.generic(site, f"tensor memory {kind}")
        entry = Entry(
            rectangle,
            kind,
            kind == "write",
            number,
            ids=active.ids,
            begun=self.clocks.epochs[active.threads].copy(),
        )
        self._areas.add(entry)
        self._open.setdefault((int(active.ids[0]) // 32, kind), []).append(entry)

    def waited(self, active: ActiveLanes, kind: str) -> None:
        """``tcgen05.wait``: all loads or stores of the warp's lanes are complete."""
        for entry in self._open.pop((int(active.ids[0]) // 32, kind), ()):
            assert entry.ids is not None
            entry.ended = self.clocks.epochs[entry.ids].copy()

    def _thread_after(
        self, active: ActiveLanes, entry: Entry, kind: str, site: Instruction
    ) -> None:
        wg, mask = active.wg, active.mask
        what = {"free": "is freed"}.get(kind, f"is the target of a {kind}")
        if entry.op is not None:
            slot, epoch = entry.op.slot, entry.op.epoch
            if not self._all_know(AFTER, active, slot, epoch):
                if not self._all_know(VC, active, slot, epoch):
                    relaxed = kind == "free" and self._all_know(EXEC, active, slot, epoch)
                    severity = Severity.ISA if relaxed else Severity.ERROR
                    self._race(entry, what, site, wg, mask, kind, severity)
                elif kind != "free":
                    self._unfenced(entry, what, site, wg, mask)
            return
        assert entry.ids is not None
        if entry.ids[0] // 32 == active.ids[0] // 32:
            if entry.ended is None:
                over = self._fed(entry, site)
                self._unwaited(entry, what, site, wg, mask, over=over)
            return
        self._after_threads(
            entry,
            what,
            site,
            wg,
            mask,
            kind,
            lambda plane, ids: self._lanes_know(plane, active, ids),
        )

    def _lanes_know(self, plane: int, active: ActiveLanes, ids: NDArray[np.int64]) -> Vector:
        """The epochs of threads that all lanes know."""
        outer = self.clocks.outer_views(int(active.ids[0]), int(active.ids[-1]), plane)
        return np.asarray(np.min([view[ids] for view in outer], axis=0))

    def _all_know(self, plane: int, active: ActiveLanes, slot: int, epoch: int) -> bool:
        return self.clocks.all_know(plane, active.threads, slot, epoch)

    # ---- asynchronous operations

    def operation(self, op: AsyncOp, number: int, issuer: int, *, written: bool = True) -> None:
        """An MMA, a copy or a shift reads and writes rectangles from now on.

        Without ``written`` its writes were checked for the operation that it continues.
        """
        # an accumulator that is added to counts as written
        reads = [part for part in op.tensor_reads if part not in op.tensor_writes]
        parts = [(part, False) for part in reads]
        if written:
            parts += [(part, True) for part in op.tensor_writes]
        for part, writes in parts:
            if part.cta is not self.cta:
                continue
            rectangle = _place(part)
            for entry in self._areas.touching(rectangle):
                if entry.op is op:
                    continue
                if writes or entry.writes:
                    self._operation_after(op, entry, rectangle, writes)
                    if writes and entry.within(rectangle):
                        self._areas.drop(entry)
                elif entry.op is not None and entry.issuer == issuer and entry.within(rectangle):
                    self._areas.drop(entry)
            self._areas.add(
                Entry(
                    rectangle,
                    op.kind,
                    writes,
                    number,
                    op=op,
                    issuer=issuer,
                    issued=int(op.clock[VC, issuer]),
                )
            )

    def _operation_after(
        self, op: AsyncOp, entry: Entry, rectangle: Rectangle, writes: bool
    ) -> None:
        clock = op.clock
        mask = lane_mask(op.wg.lanes, op.lane)
        what = f"is {'written' if writes else 'read'} by {op.kind}"
        if entry.op is None:
            first = self.threads.base(op.wg) + op.lane
            assert entry.ids is not None
            if entry.ids[0] // 32 == first // 32:
                if entry.ended is None:
                    over = self._fed(entry, op.site)
                    self._unwaited(entry, what, op.site, op.wg, mask, over=over)
                return
            if first in entry.known:
                return
            if entry.ended is not None and bool((clock[AFTER][entry.ids] >= entry.ended).all()):
                entry.known.add(first)
                return
            self._after_threads(
                entry,
                what,
                op.site,
                op.wg,
                mask,
                op.kind,
                lambda plane, ids: clock[plane][ids],
            )
            return
        slot, epoch = entry.op.slot, entry.op.epoch
        if clock[AFTER, slot] >= epoch:
            return
        in_order = clock[EXEC, entry.issuer] >= entry.issued
        if in_order:
            pair = family(entry.kind), family(op.kind)
            same = (
                entry.writes
                and writes
                and entry.rectangle == rectangle
                and (entry.op.notes.get("accumulator") == op.notes.get("accumulator"))
            )
            if pair in _PIPELINED or (same and pair == ("tcgen05.mma", "tcgen05.mma")):
                return
        if clock[VC, slot] >= epoch:
            self._unfenced(entry, what, op.site, op.wg, mask)
            return
        # beyond the documents, kernels in the field rely on the single queue of a thread: scores
        # over the weights of the product before (FlashAttention-4), scales over those before
        # (CUTLASS). A read of an earlier operation's result is another matter: that has to be
        # complete
        same_thread = entry.issuer == self.threads.base(op.wg) + op.lane
        in_queue = in_order and writes and same_thread
        severity = Severity.ISA if in_queue else Severity.ERROR
        self._race(entry, what, op.site, op.wg, mask, op.kind, severity)

    # ---- findings

    def _after_threads(
        self,
        entry: Entry,
        what: str,
        site: Instruction,
        wg: Warpgroup,
        mask: Mask,
        kind: str,
        known: Callable[[int, NDArray[np.int64]], Vector],
    ) -> None:
        """Check an access against an earlier load or store of another warp.

        ``known`` gives the epochs of threads that it comes after, in a plane.
        """
        ids = entry.ids
        assert ids is not None

        def knows(plane: int, epochs: Vector) -> bool:
            return bool((known(plane, ids) >= epochs).all())

        if entry.ended is not None:
            if knows(AFTER, entry.ended):
                return
            if knows(VC, entry.ended):
                if kind != "free":
                    self._unfenced(entry, what, site, wg, mask)
                return
            if knows(LOOSE, entry.ended):
                self._narrow(entry, what, site, wg, mask)
                return
            if kind == "free" and knows(EXEC, entry.ended):
                self._race(entry, what, site, wg, mask, kind, Severity.ISA)
                return
            # load or store and the wait are one operation of the warp: none of it is under way
            # when a lane has come past the wait
            heard = np.maximum(known(LOOSE, ids), known(AFTER, ids))
            if (heard >= entry.ended).any():
                self._one_lane(entry, what, site, wg, mask)
                return
        if any(knows(plane, entry.begun) for plane in (VC, AFTER, LOOSE)):
            released = np.maximum(known(VC, ids), known(LOOSE, ids))
            over = not entry.writes and self._over(entry, released)
            self._unwaited(entry, what, site, wg, mask, over=over)
            return
        met = kind == "free" and not entry.writes and knows(EXEC, entry.begun)
        if met and self._over(entry, known(EXEC, ids)):
            self._unwaited(entry, what, site, wg, mask, over=True)
        else:
            self._race(entry, what, site, wg, mask, kind)


def _place(part: TensorRange) -> Rectangle:
    """The rectangle of a range."""
    return part.first_lane, part.last_lane, part.first_column, part.last_column


def quarters(part: TensorRange) -> list[tuple[int, TensorRange]]:
    """A range cut at the lanes that belong to different warps: (warp of four, piece)."""
    result = []
    for quarter in range(part.first_lane // _BLOCK, -(-part.last_lane // _BLOCK)):
        first = max(part.first_lane, quarter * _BLOCK)
        last = min(part.last_lane, (quarter + 1) * _BLOCK)
        piece = TensorRange(part.cta, first, last, part.first_column, part.last_column)
        result.append((quarter, piece))
    return result
