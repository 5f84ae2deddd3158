"""Non-bulk asynchronous copies (PTX ISA, "cp.async"): 4 to 16 bytes a thread, generic proxy.

One operation stands for one instruction of a gang. Groups are kept with the lanes that committed
them, so that lanes which diverge wait for their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.access import Access, Part, lane_addresses, lane_values
from fa4gen.emulator.async_ops import AsyncOp, GlobalRange, SharedRange
from fa4gen.emulator.emit import Emitter, Reader
from fa4gen.emulator.gang import Gang, Mask
from fa4gen.emulator.instructions.mbarrier import groups as equal_groups
from fa4gen.emulator.instructions.mbarrier import locate, parse_form, size_of
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, NotPredicate, Operand, Register

_HINTS: Final = ("L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")


@dataclass(slots=True)
class Copies:
    """Copies of a gang: not yet committed, and groups in the order of their commits."""

    open: list[tuple[AsyncOp, NDArray[np.bool_]]] = field(default_factory=list)
    groups: list[tuple[list[AsyncOp], NDArray[np.bool_]]] = field(default_factory=list)


def _copies(gang: Gang) -> Copies:
    copies: Copies = gang.state.setdefault("cp.async", Copies())
    return copies


def _lanes(gang: Gang, mask: Mask) -> NDArray[np.bool_]:
    return np.ones(gang.lanes, np.bool_) if mask is None else mask.copy()


def _is_predicate(operand: Operand) -> bool:
    return isinstance(operand, NotPredicate) or (
        isinstance(operand, Register) and operand.cls == "p"
    )


def _copy(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers)
    if words[0] != "async" or words[1:2] not in (["ca"], ["cg"]):
        raise e.refuse("cp.async.ca or .cg was expected")
    if words[2:4] not in (["shared", "global"], ["shared::cta", "global"]):
        raise e.refuse("from .global to .shared")
    if any(word not in _HINTS for word in words[4:]):
        raise e.refuse(f".{words[4]}")
    operands = list(i.operands)
    if "L2::cache_hint" in words:
        operands.pop()
    if not 3 <= len(operands) <= 4 or not isinstance(operands[2], Immediate):
        raise e.refuse("[dst], [src], size {, source size or predicate} was expected")
    size = operands[2].bits
    if size not in ((16,) if words[1] == "cg" else (4, 8, 16)):
        raise e.refuse(f"{size} bytes")
    count: Callable[[Gang], Any] | None = None
    if len(operands) == 4:
        count = _source_bytes(operands[3], size, e)
    target, source = e.address(operands[0]), e.address(operands[1])
    write = Access(i, "shared", size, "write")
    read = Access(i, "global", size, "read")

    def handler(gang: Gang, mask: Mask) -> None:
        taken = None if count is None else lane_values(count(gang), gang, mask).astype(np.int64)
        if taken is not None and (taken > size).any():
            gang.machine.fault(
                "illegal-instruction", f"a source of more than {size} bytes", i, gang, mask
            )
        _issue(gang, mask, i, write, read, target, source, taken, size)

    e.call(handler)


def _source_bytes(operand: Operand, size: int, e: Emitter) -> Callable[[Gang], Any]:
    """How many bytes each lane copies; the rest of its ``size`` is zero."""
    if not _is_predicate(operand):
        return e.reader(operand, "u32")
    ignore: Reader = e.reader(operand, "pred")
    return lambda gang: np.where(ignore(gang), np.uint32(0), np.uint32(size))


def _issue(
    gang: Gang, mask: Mask, i: Instruction, write: Access, read: Access, target: Reader,
    source: Reader, taken: NDArray[np.int64] | None, size: int,
) -> None:  # fmt: skip
    machine = gang.machine
    lanes = size_of(gang, mask)
    into = write.parts(gang, mask, lane_addresses(target(gang), mask))[0]
    addresses = np.broadcast_to(lane_addresses(source(gang), mask), lanes)
    places = np.arange(lanes) if taken is None else np.flatnonzero(taken)
    part: Part | None = None
    if len(places):
        members = np.zeros(gang.lanes, np.bool_)
        members[gang.lanes_of(mask)[places]] = True
        part = read.parts(gang, members, np.asarray(addresses[places]))[0]

    def run() -> None:
        values = np.zeros((lanes, size), np.uint8)
        if part is not None:
            raw = part.gather(np.uint8, size)
            values[places] = raw
        if taken is not None:
            values[np.arange(size)[None, :] >= taken[:, None]] = 0
        into.scatter(values)

    assert into.cta is not None
    owner = into.cta
    op = AsyncOp(
        "cp.async", gang, gang.first_lane(mask), i, run,
        reads=() if part is None else tuple(
            GlobalRange(start, stop) for start, stop in joined(part.addresses(), size)
        ),
        writes=tuple(SharedRange(owner, a, b) for a, b in joined(into.offsets, size)),
        notes={"proxy": "generic"},
    )  # fmt: skip
    _copies(gang).open.append((op, _lanes(gang, mask)))
    machine.submit(op)


def joined(starts: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Stretches of ``size`` bytes, those that touch joined."""
    ordered = np.unique(starts)
    breaks = np.flatnonzero(np.diff(ordered) > size)
    first = ordered[np.concatenate([[0], breaks + 1])]
    last = ordered[np.concatenate([breaks, [len(ordered) - 1]])] + size
    return [(int(a), int(b)) for a, b in zip(first, last, strict=True)]


def _commit(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("async", "commit_group"):
        raise e.refuse("")

    def handler(gang: Gang, mask: Mask) -> None:
        copies = _copies(gang)
        here = _lanes(gang, mask)
        mine = [op for op, lanes in copies.open if (lanes & here).any()]
        copies.open = [(op, lanes) for op, lanes in copies.open if not (lanes & here).any()]
        copies.groups.append((mine, here))

    e.call(handler)


def _wait(i: Instruction, e: Emitter) -> None:
    everything = i.modifiers == ("async", "wait_all")
    newest = 0
    if not everything:
        if i.modifiers != ("async", "wait_group") or not isinstance(i.operands[0], Immediate):
            raise e.refuse("cp.async.wait_group with a literal was expected")
        newest = i.operands[0].bits

    def handler(gang: Gang, mask: Mask) -> None:
        copies = _copies(gang)
        here = _lanes(gang, mask)
        mine = [group for group in copies.groups if (group[1] & here).any()]
        finished = mine[: len(mine) - newest] if newest else mine
        ops = [op for group, _ in finished for op in group]
        if everything:
            ops += [op for op, lanes in copies.open if (lanes & here).any()]
        for op in ops:
            gang.machine.complete(op)
        done = {id(group) for group, lanes in finished if not (lanes & ~here).any()}
        copies.groups = [group for group in copies.groups if id(group[0]) not in done]
        if everything:
            copies.open = [(op, lanes) for op, lanes in copies.open if (lanes & ~here).any()]
        if ops:
            gang.machine.observer.observed(gang, mask, ops, "complete")

    e.call(handler)


def _arrive(i: Instruction, e: Emitter) -> None:
    """``cp.async.mbarrier.arrive``: each lane's arrival follows its copies so far."""
    counted = "noinc" not in i.modifiers
    form = parse_form(i, e, ("arrive", "noinc", "mbarrier"), "relaxed")
    address = e.address(i.operands[0])

    def handler(gang: Gang, mask: Mask) -> None:
        machine = gang.machine
        copies = _copies(gang)
        for (at,), part in equal_groups(gang, mask, address(gang)):
            cta, offset = locate(gang, at, form, i)
            barrier = machine.barrier(cta, offset, gang, part, i)
            machine.observer.barrier_used(gang, part, barrier, i)
            here = _lanes(gang, part)
            count = size_of(gang, part)
            before = [op for op, lanes in copies.open if (lanes & here).any()]
            before += [op for ops, lanes in copies.groups if (lanes & here).any() for op in ops]
            if counted:
                barrier.pending += count
            op = AsyncOp(
                "cp.async arrival", gang, gang.first_lane(part), i, lambda: None,
                after=tuple(before), notes={"proxy": "generic", "tracks": before},
            )  # fmt: skip

            def finish(op: AsyncOp = op, count: int = count, barrier: Any = barrier) -> None:
                for _ in range(count):
                    barrier.signal_arrival(op)

            op.finish = finish
            machine.submit(op)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "cp.async.ca": _copy,
    "cp.async.cg": _copy,
    "cp.async.commit_group": _commit,
    "cp.async.wait_group": _wait,
    "cp.async.wait_all": _wait,
    "cp.async.mbarrier.arrive": _arrive,
}
