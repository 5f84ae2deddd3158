"""Asynchronous copies of a few bytes for each thread (PTX ISA, "cp.async").

They read global and write shared memory through the generic proxy, at any time up to the wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.cp_async_groups import CopyGroups
from fa4gen.emulator.instructions.copy.endpoints import only
from fa4gen.emulator.instructions.memory.access import Access, Offsets, Part, lane_addresses
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.instructions.sync.mbarrier import arrive_counted, groups
from fa4gen.emulator.instructions.sync.mbarrier_operands import Form, locate
from fa4gen.emulator.instructions.sync.warp import executing
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, NotPredicate, Register
from fa4gen.emulator.state.async_ops import GlobalRange
from fa4gen.emulator.state.machine import AsyncOp, Cta, Mbarrier, SharedRange, Warpgroup
from fa4gen.emulator.state.mbarriers import MAX_COUNT
from fa4gen.emulator.state.memory import GLOBAL_BASE
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_SIZES: Final = {"ca": (4, 8, 16), "cg": (16,)}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The copies of lanes, with one entry for each of ``lanes``.

    ``size`` bytes go to the offset in ``targets`` of ``cta``'s shared memory: ``counts`` of them
    (None: all) from the address in ``sources``, then zeros.
    """

    cta: Cta
    lanes: NDArray[np.int64]
    targets: Offsets
    sources: Offsets
    counts: NDArray[np.int64] | None
    size: int

    def part(self, chosen: NDArray[np.bool_]) -> _Rows:
        counts = None if self.counts is None else self.counts[chosen]
        return _Rows(
            self.cta, self.lanes[chosen], self.targets[chosen], self.sources[chosen], counts,
            self.size,
        )  # fmt: skip

    def run(self, memory: NDArray[np.uint8]) -> None:
        """Copy the bytes."""
        size = self.size
        word, count = (np.uint64, 2) if size == 16 else (np.dtype(f"u{size}"), 1)
        offsets = self.sources - GLOBAL_BASE
        if self.counts is not None:
            offsets = np.where(self.counts > 0, offsets, 0)
        values = Part("global", memory, offsets, True, None, None, None).gather(word, count)
        if self.counts is not None and int(self.counts.min()) < size:
            raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
            raw[np.arange(size) >= self.counts[:, None]] = 0
            values = raw.view(word) if count > 1 else raw.view(word)[:, 0]
        Part("shared", self.cta.shared.data, self.targets, True, None, None, None).scatter(values)

    def reads(self) -> tuple[GlobalRange, ...]:
        if self.counts is None:
            pairs = spans(self.sources, self.size)
        else:
            some = self.counts > 0
            pairs = spans(self.sources[some], self.counts[some])
        return tuple(GlobalRange(*pair) for pair in pairs)

    def writes(self) -> tuple[SharedRange, ...]:
        return tuple(SharedRange(self.cta, *pair) for pair in spans(self.targets, self.size))


def spans(starts: Offsets, sizes: NDArray[np.int64] | int) -> list[tuple[int, int]]:
    """The bytes that accesses touch, as few ranges as possible."""
    if not len(starts):
        return []
    ends = starts + sizes
    if (starts[1:] == ends[:-1]).all():
        return [(int(starts[0]), int(ends[-1]))]
    order = np.argsort(starts)
    first = starts[order]
    last = np.maximum.accumulate(ends[order])
    gaps = np.flatnonzero(first[1:] > last[:-1])
    begins = [int(first[0]), *first[gaps + 1].tolist()]
    return list(zip(begins, [*last[gaps].tolist(), int(last[-1])], strict=True))


def _counts(i: Instruction, e: Emitter, size: int, hinted: bool) -> Reader | None:
    """Reads how many bytes come from the source: an operand, or all or none by a predicate."""
    extra = i.operands[3 : len(i.operands) - hinted]
    if not extra:
        return None
    operand = extra[0]
    if isinstance(operand, NotPredicate) or (isinstance(operand, Register) and operand.cls == "p"):
        ignore = e.reader(operand, "pred")
        return lambda wg: np.where(ignore(wg), 0, size)
    read = e.reader(operand, "u32")
    return lambda wg: np.asarray(read(wg)).astype(np.int64)


def _copy(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("async")
    sizes = _SIZES[words.kind("ca", "cg")]
    if i.modifiers[2] not in ("shared", "shared::cta") or i.modifiers[3:4] != ("global",):
        raise e.refuse("only from .global to .shared")
    words.kind("shared", "shared::cta")
    words.kind("global")
    hinted = words.has("L2::cache_hint")
    words.one("L2::64B", "L2::128B", "L2::256B")
    words.end(3 + hinted, 4 + hinted)
    amount = i.operands[2]
    if not isinstance(amount, Immediate) or amount.bits not in sizes:
        raise e.refuse(f"the size is one of {sizes}")
    size = amount.bits
    counts = _counts(i, e, size, hinted)
    goal, source = e.address(i.operands[0], shared=True), e.address(i.operands[1])
    access = Access(i, "shared", size, "write")
    whole = Access(i, "global", size, "read")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes_of(mask)

        def row(values: Any) -> Offsets:
            addresses = lane_addresses(values, mask)
            if len(addresses) == len(lanes):
                return addresses
            return np.broadcast_to(addresses, len(lanes))

        target = access.parts(wg, mask, row(goal(wg)))[0]
        sources = row(source(wg))
        assert target.cta is not None
        if counts is None:
            whole.parts(wg, mask, sources)
            rows = _Rows(target.cta, lanes, target.offsets, sources, None, size)
        else:
            count = row(counts(wg))
            rows = _Rows(target.cta, lanes, target.offsets, sources, count, size)
            _check_sources(i, wg, rows, count)
        groups_of = CopyGroups.of(wg)
        # without checks the warps need not be distinguished
        parts = _by_warp(rows) if wg.machine.observer.enabled else [rows]
        for part in parts:
            op = _operation(i, wg, part)
            issuers = executing(wg, mask)
            if len(parts) > 1:
                issuers = np.zeros(wg.lanes, np.bool_)
                issuers[part.lanes] = True
            groups_of.add(op, issuers)
            wg.machine.submit(op)

    e.call(handler)


def _operation(site: Instruction, wg: Warpgroup, rows: _Rows) -> AsyncOp:
    memory = wg.machine.memory
    op = AsyncOp(
        "cp.async", wg, int(rows.lanes[0]), site, lambda: rows.run(memory.data),
        notes={
            "proxy": "generic",
            "issuers": (int(rows.lanes[0]), int(rows.lanes[-1]) + 1),
        },
    )  # fmt: skip
    if wg.machine.observer.enabled:
        op.reads, op.writes = rows.reads(), rows.writes()
    return op


def _by_warp(rows: _Rows) -> list[_Rows]:
    """The rows of each warp: those of a warp complete together, as far as anyone can tell."""
    warps = rows.lanes // WARP_LANES
    if warps[0] == warps[-1]:
        return [rows]
    return [rows.part(warps == warp) for warp in np.unique(warps)]


def _check_sources(
    site: Instruction, wg: Warpgroup, rows: _Rows, counts: NDArray[np.int64]
) -> None:
    """Stop at a source that is misaligned or out of bounds; only bytes that are read count."""
    machine, size = wg.machine, rows.size

    def stop(kind: str, bad: NDArray[np.bool_], message: str) -> None:
        lane = int(rows.lanes[int(bad.argmax())])
        machine.fault(kind, message, site, wg, only(wg, lane))

    if counts.min() < 0 or counts.max() > size:
        bad = (counts < 0) | (counts > size)
        stop("illegal-instruction", bad, f"{int(counts[bad][0])} of {size} bytes from the source")
    used = counts > 0
    bad = used & ((rows.sources & (size - 1)) != 0)
    if bad.any():
        where = machine.memory.describe(int(rows.sources[bad][0]))
        stop("misaligned", bad, f"a copy from {where}, which is not a multiple of {size} bytes")
    for count in np.unique(counts[used]).tolist():
        here = counts == count
        good = machine.memory.valid(rows.sources[here].view(np.uint64), count)
        if not good.all():
            bad = here.copy()
            bad[here] = ~good
            where = machine.memory.describe(int(rows.sources[bad][0]) % (1 << 64))
            stop("out-of-bounds", bad, f"a copy of {count} bytes from {where}")


# ---- completion


def _commit(i: Instruction, e: Emitter) -> None:
    if i.operands or len(i.modifiers) != 2:
        raise e.refuse("modifiers or operands")
    e.call(lambda wg, mask: CopyGroups.of(wg).commit(mask))


def _wait_group(i: Instruction, e: Emitter) -> None:
    if len(i.operands) != 1 or len(i.modifiers) != 2:
        raise e.refuse("modifiers or operands")
    pending = i.operands[0]
    if not isinstance(pending, Immediate) or pending.bits < 0:
        raise e.refuse("the number of groups is a constant")
    count = pending.bits
    e.call(lambda wg, mask: CopyGroups.of(wg).wait(mask, count))


def _wait_all(i: Instruction, e: Emitter) -> None:
    if i.operands or len(i.modifiers) != 2:
        raise e.refuse("modifiers or operands")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        CopyGroups.of(wg).commit(mask)
        CopyGroups.of(wg).wait(mask, 0)

    e.call(handler)


def _arrive(i: Instruction, e: Emitter) -> None:
    """An mbarrier arrival for each thread, once all its copies so far are complete.

    Without .noinc the arrival is one more than the barrier expected.
    """
    words = Words(i, e)
    for word in ("async", "mbarrier", "arrive"):
        words.kind(word)
    counted = words.has("noinc")
    shared = words.one("shared", "shared::cta") is not None
    words.kind("b64")
    words.end(1)
    address = e.address(i.operands[0], shared=shared)
    form = Form(False, "release", "cta", frozenset(("shared",) if shared else ()))

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        for (at,), part in groups(wg, mask, address(wg)):
            cta, offset = locate(wg, at, form, i)
            barrier = machine.barrier(cta, offset, wg, part, i)
            machine.observer.barrier_used(wg, part, barrier, i)
            lanes = executing(wg, part)
            if not counted:
                count = int(np.count_nonzero(lanes))
                if barrier.pending + count > MAX_COUNT:
                    machine.fault(
                        "barrier-misuse", f"{barrier.name} expects too many arrivals", i, wg, part
                    )
                barrier.pending += count
            copies = CopyGroups.of(wg).signalled_by(lanes)
            # a mask may be a predicate register, which changes
            _submit_arrival(i, wg, part if part is None else part.copy(), barrier, copies)

    e.call(handler)


def _submit_arrival(
    site: Instruction, wg: Warpgroup, mask: Mask, barrier: Mbarrier, copies: list[AsyncOp]
) -> None:
    machine = wg.machine

    def finish() -> None:
        machine.observer.signalled(op, barrier)
        barrier.pending_time = max(barrier.pending_time, op.end_time)
        arrive_counted(wg, mask, barrier, 1, site)
        machine.progress()

    # the initialisation of the barrier was checked at the issue
    op = AsyncOp(
        "cp.async arrival", wg, wg.first_lane(mask), site, lambda: None, finish,
        after=tuple(copies), notes={"proxy": "generic", "tracks": copies, "init_checked": True},
    )  # fmt: skip
    machine.submit(op)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "cp.async.ca": _copy,
    "cp.async.cg": _copy,
    "cp.async.commit_group": _commit,
    "cp.async.wait_group": _wait_group,
    "cp.async.wait_all": _wait_all,
    "cp.async.mbarrier.arrive": _arrive,
}
