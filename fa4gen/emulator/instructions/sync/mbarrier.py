"""mbarrier instructions (PTX ISA, "Parallel Synchronization: mbarrier")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.sync.mbarrier_operands import Form, locate, parse_form
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Sink
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.findings import Threads
from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Mbarrier, Warpgroup
from fa4gen.emulator.state.mbarriers import MAX_COUNT
from fa4gen.emulator.state.registers import Mask, as_row
from fa4gen.emulator.translate.emit import Emitter, Reader, Writer
from fa4gen.emulator.translate.outcome import MakeWaiting, Outcome, Wait, Waiting
from fa4gen.emulator.translate.registry import Translate

# How often a wait that could not be granted at once reports failure instead of waiting, so that
# the retry loop runs too.
_FAIL_ONE_IN: Final = 32


def groups(wg: Warpgroup, mask: Mask, *rows: Any) -> list[tuple[tuple[int, ...], Mask]]:
    """Split lanes into sets with equal values in all rows: [(values, mask), …]."""
    first = wg.first_lane(mask)
    values = tuple(int(row[first]) if getattr(row, "ndim", 0) else int(row) for row in rows)
    if (mask is not None and np.count_nonzero(mask) == 1) or all(
        _is(row if mask is None else row[mask], value)
        for row, value in zip(rows, values, strict=True)
        if getattr(row, "ndim", 0)
    ):
        return [(values, mask)]
    rows = tuple(as_row(row, wg.lanes) for row in rows)
    lanes = wg.lanes_of(mask)
    columns = rows if mask is None else [row[lanes] for row in rows]
    found: dict[tuple[int, ...], list[int]] = {}
    for position, lane in enumerate(lanes):
        key = tuple(int(column[position]) for column in columns)
        found.setdefault(key, []).append(int(lane))
    result: list[tuple[tuple[int, ...], Mask]] = []
    for key, members in found.items():
        part = np.zeros(wg.lanes, np.bool_)
        part[members] = True
        result.append((key, part))
    return result


def _is(column: Any, value: int) -> bool:
    """Whether all entries of a column have a value."""
    return bool(np.count_nonzero(column == value) == len(column))


def size_of(wg: Warpgroup, mask: Mask) -> int:
    return wg.lanes if mask is None else int(np.count_nonzero(mask))


def arrive_counted(
    wg: Warpgroup,
    mask: Mask,
    barrier: Mbarrier,
    count: int,
    site: Instruction,
    *,
    drop: bool = False,
    expect: int | None = None,
) -> None:
    """Every lane arrives ``count`` times, one after the other, as the hardware does.

    With ``expect`` each lane first adds that number of bytes to the phase's expected transactions.
    """
    machine = wg.machine
    who = Threads(wg.machine, wg, mask)
    left, phase = size_of(wg, mask), barrier.phase
    while left:
        if barrier.phase == phase + 1:
            _find_spilled(wg, mask, barrier, left, site)
        if expect is not None:
            _expect(machine, barrier, expect, site, wg, mask)
        lanes = 1 if expect is not None else min(left, max(barrier.pending // count, 1))
        if barrier.pending < count:
            machine.fault(
                "over-arrival",
                f"{barrier.describe()}: {left} of the arrivals are more than the phase has left",
                site,
                wg,
                mask,
            )
        if drop:
            barrier.drop(count * lanes, who)
        else:
            barrier.arrive(count * lanes, who)
        left -= lanes
    machine.progress()


def _find_spilled(
    wg: Warpgroup, mask: Mask, barrier: Mbarrier, left: int, site: Instruction
) -> None:
    """Report lanes that arrive after others of theirs have completed the phase."""
    lanes = size_of(wg, mask)
    wg.machine.find(
        "over-arrival",
        f"{barrier.name}: {lanes - left} of the {lanes} threads that arrive here complete phase "
        f"{barrier.phase - 1}, and the others count in what comes after it",
        site,
        wg,
        mask,
    )


def _init(i: Instruction, e: Emitter) -> None:
    form = parse_form(i, e, (), "relaxed")
    address, count = e.address(i.operands[0], shared=form.shared), e.reader(i.operands[1], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        for (at, arrivals), part in groups(wg, mask, address(wg), count(wg)):
            cta, offset = locate(wg, at, form, i)
            if offset % 8:
                machine.fault(
                    "misaligned",
                    f"mbarrier.init at offset {offset} of shared memory, "
                    "which is not 8-byte aligned",
                    i,
                    wg,
                    part,
                )
            if not 1 <= arrivals <= MAX_COUNT:
                machine.fault(
                    "barrier-misuse",
                    f"mbarrier.init with {arrivals} arrivals; 1 to {MAX_COUNT} are possible",
                    i,
                    wg,
                    part,
                )
            if offset + 8 > cta.shared.size:
                machine.fault(
                    "out-of-bounds",
                    f"mbarrier.init at offset {offset}, past the end of "
                    f"shared memory ({cta.shared.size} bytes)",
                    i,
                    wg,
                    part,
                )
            if offset in cta.barriers:
                machine.tally.retire(cta, cta.barriers[offset])
                machine.find(
                    "barrier-misuse",
                    f"{cta.name_of(offset)} is initialised again without mbarrier.inval",
                    i,
                    wg,
                    part,
                )
            if size_of(wg, part) > 1:
                machine.find(
                    "barrier-misuse",
                    f"{size_of(wg, part)} threads initialise {cta.name_of(offset)}",
                    i,
                    wg,
                    part,
                    Severity.REVIEW,
                )
            barrier = Mbarrier(offset, arrivals, arrivals, cta=cta, site=i)
            cta.barriers[offset] = barrier
            machine.progress()
            machine.observer.barrier_init(wg, wg.first_lane(part), barrier, i)

    e.call(handler)


def _inval(i: Instruction, e: Emitter) -> None:
    form = parse_form(i, e, (), "relaxed")
    address = e.address(i.operands[0], shared=form.shared)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        for (at,), part in groups(wg, mask, address(wg)):
            cta, offset = locate(wg, at, form, i)
            barrier = wg.machine.barrier(cta, offset, wg, part, i)
            wg.machine.observer.barrier_used(wg, part, barrier, i)
            if wg.machine.scheduler.waiting_at(id(barrier)):
                wg.machine.find(
                    "barrier-misuse",
                    f"{barrier.name} is invalidated while threads wait at it",
                    i,
                    wg,
                    part,
                )
            wg.machine.tally.retire(barrier.cta, barrier)
            del cta.barriers[offset]

    e.call(handler)


def _arrive(i: Instruction, e: Emitter) -> None:
    form = parse_form(i, e, ("expect_tx", "noComplete", "noinc"), "release")
    drop = i.modifiers[0] == "arrive_drop"
    operands = list(i.operands)
    state: Operand | None = None
    from fa4gen.emulator.ptx.syntax import Address

    if not isinstance(operands[0], Address):
        state = operands.pop(0)
        if form.cluster and "shared" in form.words and not isinstance(state, Sink):
            raise e.refuse("a remote arrive returns no state")
    if len(operands) > 2:
        raise e.refuse("more operands than an arrive has")
    address = e.address(operands[0], shared=form.shared)
    expect = "expect_tx" in form.words
    extra = e.reader(operands[1], "u32") if len(operands) == 2 else None
    if expect and extra is None:
        raise e.refuse("expect_tx needs a number of bytes")
    write = e.writer(state, "b64") if state is not None else None
    release = "none" if form.order == "relaxed" else form.scope

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        values = extra(wg) if extra is not None else np.uint32(0 if expect else 1)
        parts = groups(wg, mask, address(wg), values)
        for value, part, barrier in _counted(wg, mask, parts, form, i):
            machine.observer.arrived(wg, part, barrier, release, i)
            token = np.uint64(barrier.phase << 20 | barrier.pending)
            if expect:
                arrive_counted(wg, part, barrier, 1, i, drop=drop, expect=value)
            elif value < 1:
                machine.fault(
                    "barrier-misuse", f"{barrier.name}: an arrival of {value}", i, wg, part
                )
            else:
                arrive_counted(wg, part, barrier, value, i, drop=drop)
            if write is not None:
                write(wg, token, part)

    e.call(handler)


def _counted(
    wg: Warpgroup,
    mask: Mask,
    parts: list[tuple[tuple[int, ...], Mask]],
    form: Form,
    site: Instruction,
) -> list[tuple[int, Mask, Mbarrier]]:
    """The number, the lanes and the barrier of each part, all of which are about to count."""
    machine = wg.machine
    result = []
    for (at, value), part in parts:
        cta, offset = locate(wg, at, form, site)
        barrier = machine.barrier(cta, offset, wg, part, site)
        machine.observer.barrier_used(wg, part, barrier, site)
        machine.observer.counted(wg, part, mask, barrier, site)
        result.append((value, part, barrier))
    return result


def _expect(
    machine: Any, barrier: Mbarrier, count: int, site: Instruction, wg: Warpgroup, mask: Mask
) -> None:
    if count > MAX_COUNT or abs(barrier.transactions + count) > MAX_COUNT:
        machine.find(
            "transaction-bytes",
            f"{barrier.name}: {count} more bytes than the "
            f"{barrier.transactions} outstanding do not fit into its count",
            site,
            wg,
            mask,
        )
    barrier.expect(count)


def _transactions(i: Instruction, e: Emitter) -> None:
    form = parse_form(i, e, (), "relaxed")
    address, count = e.address(i.operands[0], shared=form.shared), e.reader(i.operands[1], "u32")
    completes = i.modifiers[0] == "complete_tx"

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        parts = groups(wg, mask, address(wg), count(wg))
        for value, part, barrier in _counted(wg, mask, parts, form, i):
            for _ in range(size_of(wg, part)):
                if completes:
                    barrier.complete_transaction(value, Threads(wg.machine, wg, part))
                else:
                    _expect(machine, barrier, value, i, wg, part)
            machine.progress()

    e.call(handler)


def _pending_count(i: Instruction, e: Emitter) -> None:
    state, write = e.reader(i.operands[1], "b64"), e.writer(i.operands[0], "b32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        write(wg, (state(wg) & np.uint64(MAX_COUNT)).astype(np.uint32), mask)

    e.call(handler)


def make_wait(i: Instruction, e: Emitter) -> Waiting:
    """``mbarrier.try_wait`` and ``test_wait``, by parity or by state.

    Both may report failure at any time; waiting until the phase is over is one of the legal
    outcomes, and the one that leaves the other threads most to do.
    """
    form = parse_form(i, e, ("parity",), "acquire")
    if form.cluster and "shared" in form.words:
        raise e.refuse("a wait is local to the CTA")
    parity = "parity" in form.words
    if not 3 <= len(i.operands) <= 4:
        raise e.refuse("a wait has three or four operands")
    write: Writer = e.writer(i.operands[0], "pred")
    address: Reader = e.address(i.operands[1], shared=form.shared)
    value: Reader = e.reader(i.operands[2], "u32" if parity else "b64")
    acquire = "none" if form.order == "relaxed" else form.scope

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        machine = wg.machine
        done: list[Mask] = []
        waits: list[Wait] = []
        for (at, wanted), part in groups(wg, lanes.mask, address(wg), value(wg)):
            cta, offset = locate(wg, at, form, i)
            if cta is not wg.cta:
                machine.fault("barrier-misuse", "a wait on another CTA's mbarrier", i, wg, part)
            barrier = machine.barrier(cta, offset, wg, part, i)
            if parity and wanted > 1:
                machine.find(
                    "barrier-misuse",
                    f"{barrier.name}: parity {wanted} is neither 0 nor 1; the low bit counts",
                    i,
                    wg,
                    part,
                    Severity.REVIEW,
                )
                wanted &= 1  # ptxas: shifted left by 31
            machine.observer.barrier_used(wg, part, barrier, i)
            phase = barrier.phase - 1 if parity else wanted >> 20
            if barrier.passed(wanted) if parity else barrier.phase > phase:
                write(wg, True, part)
                barrier.passes += 1
                machine.observer.waited(wg, part, barrier, phase, acquire, i)
                done.append(part)
            elif timed_out or machine.random.randrange(_FAIL_ONE_IN) == 0:
                write(wg, False, part)
                done.append(part)
            else:
                if parity:
                    machine.observer.blocked(wg, part, barrier, i)
                barrier.parks += 1
                waits.append(Wait(Lanes(part), id(barrier), _reason(barrier, wanted, parity), True))
        return Outcome(join(wg, done), waits)

    return end


def join(wg: Warpgroup, parts: list[Mask]) -> Lanes | None:
    """The union of lane sets; None if there is none."""
    if not parts:
        return None
    if len(parts) == 1:
        return Lanes(parts[0])
    result = Lanes(parts[0])
    for part in parts[1:]:
        result = result.join(Lanes(part))
    return result


def _reason(barrier: Mbarrier, wanted: int, parity: bool) -> Callable[[], str]:
    kind = "parity" if parity else "state"
    shown = wanted if parity else f"of phase {wanted >> 20}"
    return lambda: f"waits for {kind} {shown} of {barrier.describe()}"


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "mbarrier.init": _init,
    "mbarrier.inval": _inval,
    "mbarrier.arrive": _arrive,
    "mbarrier.arrive_drop": _arrive,
    "mbarrier.expect_tx": _transactions,
    "mbarrier.complete_tx": _transactions,
    "mbarrier.pending_count": _pending_count,
}

WAITING: Final[Mapping[str, MakeWaiting]] = {
    "mbarrier.try_wait": make_wait,
    "mbarrier.test_wait": make_wait,
}
