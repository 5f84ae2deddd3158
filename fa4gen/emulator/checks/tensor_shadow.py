"""Order of accesses to the tensor memory of one CTA (PTX ISA, "tcgen05 Memory Consistency Model").

Instructions of one queue start in order, but only some pairs also take effect in order; all else
needs the earlier one to be complete: ``tcgen05.wait`` for loads and stores, a commit and its
mbarrier for the others. Between threads it needs ``tcgen05.fence`` on both sides as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.async_ops import TensorRange
from fa4gen.emulator.checks.areas import Areas, Rectangle
from fa4gen.emulator.checks.clocks import AFTER, EXEC, LOOSE, VC
from fa4gen.emulator.checks.scopes import narrow_scope
from fa4gen.emulator.gang import lane_mask
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.async_ops import AsyncOp
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.parties import Party, Team
    from fa4gen.emulator.gang import Gang, Mask
    from fa4gen.emulator.machine import Cta
    from fa4gen.emulator.ptx.syntax import Instruction

_BLOCK: Final = 32

# Pairs that take effect in order within a queue, whatever they share.
_PIPELINED: Final = {
    ("tcgen05.cp", "tcgen05.mma"), ("tcgen05.shift", "tcgen05.mma"),
    ("tcgen05.shift", "tcgen05.cp"), ("tcgen05.mma", "tcgen05.shift"),
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Entry:
    """An access to a rectangle (lanes, columns; half open).

    ids, begun, ended   threads of a load or store, their epochs at its issue, and at the wait that
                        covers it (None until then)
    op, issuer, issued  an asynchronous operation, its thread and that thread's epoch
    number              counts the accesses
    known               threads that have seen it end and need not be asked again
    """

    rectangle: Rectangle
    kind: str
    writes: bool
    site: int
    ids: NDArray[np.int64] | None = None
    begun: Any = None
    ended: Any = None
    op: AsyncOp | None = None
    issuer: int = -1
    issued: int = 0
    number: int = 0
    known: set[int] = field(default_factory=set)

    def within(self, other: Rectangle) -> bool:
        a, b = self.rectangle, other
        return b[0] <= a[0] and a[1] <= b[1] and b[2] <= a[2] and a[3] <= b[3]


def family(kind: str) -> str:
    """``tcgen05.mma`` of ``tcgen05.mma.ws`` and the like."""
    return ".".join(kind.split(" ")[0].split(".")[:2])


class TensorChecks:
    """History of one CTA's tensor memory."""

    def __init__(self, team: Team, cta: Cta, options: CheckOptions) -> None:
        self.team = team
        self.clocks = team.clocks
        self.cta = cta
        self.options = options
        self._areas = Areas()
        self._open: dict[tuple[int, str], list[Entry]] = {}

    # ---- loads, stores and deallocation

    def access(self, party: Party, part: TensorRange, kind: str, site: Instruction) -> None:
        """The lanes of one warp load from, store to or give back a rectangle."""
        rectangle = _place(part)
        for entry in self._areas.touching(rectangle):
            if kind == "read" and not entry.writes:
                if (
                    entry.ids is not None
                    and entry.ids[0] // 32 == party.ids[0] // 32
                    and (entry.within(rectangle))
                ):
                    # a later load of the same warp; a wait covers both
                    self._areas.drop(entry)
                continue
            self._thread_after(party, entry, kind, site)
            if kind != "read" and entry.within(rectangle):
                self._areas.drop(entry)
        if kind == "free":
            return
        number = self.team.sites.generic(site, f"tensor memory {kind}")
        entry = Entry(
            rectangle,
            kind,
            kind == "write",
            number,
            ids=party.ids,
            begun=self.clocks.epochs[party.threads].copy(),
        )
        self._areas.add(entry)
        self._open.setdefault((int(party.ids[0]) // 32, kind), []).append(entry)

    def waited(self, party: Party, kind: str) -> None:
        """``tcgen05.wait``: all loads or stores of the warp's lanes are complete."""
        for entry in self._open.pop((int(party.ids[0]) // 32, kind), ()):
            assert entry.ids is not None
            entry.ended = self.clocks.epochs[entry.ids].copy()

    def _thread_after(self, party: Party, entry: Entry, kind: str, site: Instruction) -> None:
        gang, mask = party.gang, party.mask
        what = {"free": "is given back"}.get(kind, f"is the target of a {kind}")
        if entry.op is not None:
            slot, epoch = entry.op.slot, entry.op.epoch
            if not self._all_know(AFTER, party, slot, epoch):
                if not self._all_know(VC, party, slot, epoch):
                    relaxed = kind == "free" and self._all_know(EXEC, party, slot, epoch)
                    severity = Severity.ISA if relaxed else Severity.ERROR
                    self._race(entry, what, site, gang, mask, kind, severity)
                elif kind != "free":
                    self._unfenced(entry, what, site, gang, mask)
            return
        assert entry.ids is not None
        if entry.ids[0] // 32 == party.ids[0] // 32:
            if entry.ended is None:
                self._unwaited(entry, what, site, gang, mask)
            return
        self._after_threads(
            entry,
            what,
            site,
            gang,
            mask,
            kind,
            lambda plane, ids, epochs: self._lanes_know(plane, party, ids, epochs),
        )

    def _lanes_know(
        self, plane: int, party: Party, ids: NDArray[np.int64], epochs: NDArray[np.uint32]
    ) -> bool:
        return all(
            bool((view[ids] >= epochs).all())
            for view in self.clocks.outer_views(int(party.ids[0]), int(party.ids[-1]), plane)
        )

    def _all_know(self, plane: int, party: Party, slot: int, epoch: int) -> bool:
        return self.clocks.all_know(plane, party.threads, slot, epoch)

    # ---- asynchronous operations

    def operation(self, op: AsyncOp, number: int, issuer: int) -> None:
        """An MMA, a copy or a shift reads and writes rectangles from now on."""
        # an accumulator that is added to counts as written
        reads = [part for part in op.tensor_reads if part not in op.tensor_writes]
        parts = [(part, False) for part in reads] + [(part, True) for part in op.tensor_writes]
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
        mask = lane_mask(op.gang.lanes, op.lane)
        what = f"is {'written' if writes else 'read'} by {op.kind}"
        if entry.op is None:
            first = self.team.base(op.gang) + op.lane
            assert entry.ids is not None
            if entry.ids[0] // 32 == first // 32:
                if entry.ended is None:
                    self._unwaited(entry, what, op.site, op.gang, mask)
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
                op.gang,
                mask,
                op.kind,
                lambda plane, ids, epochs: bool((clock[plane][ids] >= epochs).all()),
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
            self._unfenced(entry, what, op.site, op.gang, mask)
            return
        # beyond what is documented, kernels in the field rely on the one queue of a thread: scores
        # over the weights of the product before (FlashAttention-4), scales over those before
        # (CUTLASS). What an earlier one writes to be read is another matter: it has to be complete
        same_thread = entry.issuer == self.team.base(op.gang) + op.lane
        in_queue = in_order and writes and same_thread
        severity = Severity.ISA if in_queue else Severity.ERROR
        self._race(entry, what, op.site, op.gang, mask, op.kind, severity)

    # ---- what is wrong

    def _after_threads(
        self,
        entry: Entry,
        what: str,
        site: Instruction,
        gang: Gang,
        mask: Mask,
        kind: str,
        knows: Any,
    ) -> None:
        """Check an access against an earlier load or store of another warp."""
        if entry.ended is not None:
            if knows(AFTER, entry.ids, entry.ended):
                return
            if knows(VC, entry.ids, entry.ended):
                if kind != "free":
                    self._unfenced(entry, what, site, gang, mask)
                return
            if knows(LOOSE, entry.ids, entry.ended):
                self._narrow(entry, what, site, gang, mask)
                return
            if kind == "free" and knows(EXEC, entry.ids, entry.ended):
                self._race(entry, what, site, gang, mask, kind, Severity.ISA)
                return
        if any(knows(plane, entry.ids, entry.begun) for plane in (VC, AFTER, LOOSE)):
            self._unwaited(entry, what, site, gang, mask)
        else:
            self._race(entry, what, site, gang, mask, kind)

    def _race(
        self,
        entry: Entry,
        what: str,
        site: Instruction,
        gang: Gang,
        mask: Mask,
        kind: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        if not self.options.tensor_memory:
            return
        if kind == "free" and severity is Severity.ISA:
            lacking = "which only relaxed synchronisation orders"
        elif entry.op is not None:
            lacking = "which nothing has shown to be complete"
        else:
            lacking = "and nothing orders the two"
        self.team.sites.find(
            "tensor-memory" if kind == "free" else "race",
            lambda: f"{self._name(entry)} {what} after {self._earlier(entry)}, {lacking}",
            site,
            gang,
            mask,
            severity,
            entry.site,
        )

    def _narrow(self, entry: Entry, what: str, site: Instruction, gang: Gang, mask: Mask) -> None:
        """An access that is complete, and is ordered but for the scope of an arrival or a wait."""
        if not self.options.tensor_memory:
            return
        assert entry.ids is not None
        slot, epoch = int(entry.ids[0]), int(entry.ended[0])
        why, severity = narrow_scope(self.team, gang.cta, slot, epoch, stored=False)
        self.team.sites.find(
            "race",
            lambda: f"{self._name(entry)} {what}, ordered after {self._earlier(entry)} {why}",
            site,
            gang,
            mask,
            severity,
            entry.site,
        )

    def _unwaited(self, entry: Entry, what: str, site: Instruction, gang: Gang, mask: Mask) -> None:
        if not self.options.tensor_memory:
            return
        wait = "tcgen05.wait::st" if entry.writes else "tcgen05.wait::ld"
        self.team.sites.find(
            "missing-tcgen05-wait",
            lambda: (
                f"{self._name(entry)} {what} after {self._earlier(entry)}, "
                f"which executed no {wait} in between"
            ),
            site,
            gang,
            mask,
            earlier=entry.site,
        )

    def _unfenced(self, entry: Entry, what: str, site: Instruction, gang: Gang, mask: Mask) -> None:
        if self.options.tcgen05_fences != "canonical":
            return
        self.team.sites.find(
            "missing-tcgen05-fence",
            lambda: (
                f"{self._name(entry)} {what} after {self._earlier(entry)} "
                "without tcgen05.fence::before_thread_sync there (a commit implies it) and "
                "::after_thread_sync here"
            ),
            site,
            gang,
            mask,
            Severity.REVIEW,
            entry.site,
        )

    def _name(self, entry: Entry) -> str:
        first, last, left, right = entry.rectangle
        return f"tensor memory (lanes {first}-{last - 1}, columns {left}-{right - 1})"

    def _earlier(self, entry: Entry) -> str:
        who = self.team.who(int(entry.ids[0])) if entry.ids is not None else ""
        if who:
            who = f"the warp of {who}"
        return self.team.sites.earlier(entry.site, who)


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
