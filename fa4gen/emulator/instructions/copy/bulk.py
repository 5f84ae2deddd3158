"""Bulk copies of consecutive bytes, and bulk groups.

PTX ISA: "cp.async.bulk", "cp.reduce.async.bulk" and the sections after them. Addresses and sizes
are multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from fa4gen.emulator.instructions.copy import async_stores, bulk_groups, reductions
from fa4gen.emulator.instructions.copy.boxes import Combine
from fa4gen.emulator.instructions.copy.endpoints import (
    check_global,
    check_shared,
    check_single_issue,
    find_targets,
    issuers,
    only,
    pick,
)
from fa4gen.emulator.ptx.syntax import Immediate, Instruction
from fa4gen.emulator.ptx.types import dtype_of
from fa4gen.emulator.state.async_ops import GlobalRange
from fa4gen.emulator.state.machine import AsyncOp, SharedRange, Warpgroup
from fa4gen.emulator.state.memory import GLOBAL_BASE
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

ALIGN: Final = 16
BYTES_PER_CYCLE: Final = 64
_COMPLETES: Final = "mbarrier::complete_tx::bytes"
_SPACES: Final = ("global", "shared::cta", "shared::cluster")


def _form(
    i: Instruction, e: Emitter, allowed: tuple[str, ...]
) -> tuple[tuple[str, ...], list[str]]:
    """State spaces, and the other modifiers after ``bulk``."""
    spaces, rest = [], []
    for word in i.modifiers[i.modifiers.index("bulk") + 1 :]:
        if word in _SPACES:
            spaces.append(word)
        elif word in allowed:
            rest.append(word)
        else:
            raise e.refuse(f".{word}")
    if len(set(rest)) != len(rest):
        raise e.refuse("a modifier twice")
    return tuple(spaces), rest


def _count(i: Instruction, e: Emitter, expected: int) -> None:
    if len(i.operands) != expected:
        raise e.refuse(f"{len(i.operands)} operands instead of {expected}")


def _check_size(wg: Warpgroup, lane: int, site: Instruction, size: int, address: int) -> None:
    """Sizes and global addresses are multiples of 16."""
    for what, value in (("size", size), ("address", address)):
        if value % ALIGN:
            wg.machine.fault(
                "misaligned",
                f"the {what} {value:#x} of a bulk copy is not a multiple of {ALIGN}",
                site,
                wg,
                only(wg, lane),
            )


def _load(i: Instruction, e: Emitter, spaces: tuple[str, ...], words: list[str]) -> None:
    """From global memory into shared memory."""
    cluster, multicast = spaces[0] == "shared::cluster", "multicast::cluster" in words
    if _COMPLETES not in words or "bulk_group" in words or "cp_mask" in words:
        raise e.refuse("completion mechanism")
    if multicast and not cluster:
        raise e.refuse("multicast needs .shared::cluster")
    _count(i, e, 4 + multicast + ("L2::cache_hint" in words))
    goal, origin = e.address(i.operands[0], shared=True), e.address(i.operands[1])
    length, barrier = e.reader(i.operands[2], "u32"), e.address(i.operands[3], shared=True)
    to = e.reader(i.operands[4], "u16") if multicast else None

    def issue(
        wg: Warpgroup, lane: int, address: int, start: int, size: int, signal: int, ctas: int | None
    ) -> None:
        _check_size(wg, lane, i, size, start)
        targets = find_targets(
            wg, lane, i, address=address, barrier=signal, size=size, align=ALIGN,
            cluster=cluster, multicast=ctas,
        )  # fmt: skip
        if size:
            check_global(wg, lane, i, start, start + size, writes=False)
        memory = wg.machine.memory

        def run() -> None:
            at = start - GLOBAL_BASE
            for target in targets:
                target.cta.shared.data[target.offset : target.offset + size] = memory.data[
                    at : at + size
                ]

        def finish() -> None:
            for target in targets:
                target.barrier.signal_transaction(op, size)

        op = AsyncOp(
            "bulk copy", wg, lane, i, run, finish,
            reads=(GlobalRange(start, start + size),) if size else (),
            writes=tuple(
                SharedRange(one.cta, one.offset, one.offset + size) for one in targets if size
            ),
            unit="tma", cycles=size / BYTES_PER_CYCLE,
        )  # fmt: skip
        wg.machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        rows = (goal(wg), origin(wg), length(wg), barrier(wg))
        check_single_issue(wg, mask, i, *rows)
        masks = to(wg) if to is not None else None
        for lane in wg.lanes_of(mask).tolist():
            ctas = None if masks is None else pick(masks, lane)
            address, start, size, signal = (pick(row, lane) for row in rows)
            issue(wg, lane, address, start, size, signal, ctas)

    e.call(handler)


def _to_peer(
    i: Instruction, e: Emitter, combine: Combine | None, element: str, words: list[str]
) -> None:
    """From the CTA's shared memory into shared memory of the cluster."""
    if words != [_COMPLETES]:
        raise e.refuse("completion mechanism")
    _count(i, e, 4)
    goal, origin = (e.address(one, shared=True) for one in i.operands[:2])
    length, barrier = e.reader(i.operands[2], "u32"), e.address(i.operands[3], shared=True)
    kind = "bulk reduction" if combine else "bulk copy"
    dtype = dtype_of(element)

    def issue(wg: Warpgroup, lane: int, address: int, start: int, size: int, signal: int) -> None:
        machine = wg.machine
        _check_size(wg, lane, i, size, start)
        target = find_targets(
            wg, lane, i, address=address, barrier=signal, size=size, align=ALIGN, cluster=True
        )[0]
        cta, offset = machine.shared_at(wg, start, i, False)
        check_shared(wg, lane, i, cta, offset, size, ALIGN)

        def run() -> None:
            new = cta.shared.data[offset : offset + size].view(dtype)
            old = target.cta.shared.data[target.offset : target.offset + size].view(dtype)
            old[...] = combine(old, new) if combine else new

        def finish() -> None:
            target.barrier.signal_transaction(op, size)

        op = AsyncOp(
            kind, wg, lane, i, run, finish,
            reads=(SharedRange(cta, offset, offset + size),) if size else (),
            writes=(
                (SharedRange(target.cta, target.offset, target.offset + size),) if size else ()
            ),
            unit="tma", cycles=size / BYTES_PER_CYCLE,
        )  # fmt: skip
        if combine:
            op.notes["atomic"] = True
        machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        rows = (goal(wg), origin(wg), length(wg), barrier(wg))
        check_single_issue(wg, mask, i, *rows)
        for lane in wg.lanes_of(mask).tolist():
            issue(wg, lane, *(pick(row, lane) for row in rows))

    e.call(handler)


def _store(
    i: Instruction, e: Emitter, combine: Combine | None, element: str, words: list[str]
) -> None:
    """From shared memory into global memory."""
    masked, hint = "cp_mask" in words, "L2::cache_hint" in words
    if "bulk_group" not in words or set(words) - {"bulk_group", "cp_mask", "L2::cache_hint"}:
        raise e.refuse("completion mechanism")
    _count(i, e, 3 + masked + hint)
    goal, origin = e.address(i.operands[0]), e.address(i.operands[1], shared=True)
    length = e.reader(i.operands[2], "u32")
    chosen: Reader | None = e.reader(i.operands[3 + hint], "u16") if masked else None
    dtype = dtype_of(element)
    kind = "bulk reduction" if combine else "bulk store"

    def issue(wg: Warpgroup, lanes: range, start: int, address: int, size: int, bits: int) -> None:
        machine = wg.machine
        lane = lanes.start
        _check_size(wg, lane, i, size, start)
        cta, offset = machine.shared_at(wg, address, i, False)
        check_shared(wg, lane, i, cta, offset, size, ALIGN)
        if size:
            check_global(wg, lane, i, start, start + size, writes=True)

        def run() -> None:
            at = start - GLOBAL_BASE
            new = cta.shared.data[offset : offset + size]
            old = machine.memory.data[at : at + size]
            if combine:
                typed = old.view(dtype)
                typed[...] = combine(typed, new.view(dtype))
            elif chosen is not None:
                written = np.array([bits >> byte & 1 for byte in range(ALIGN)], np.bool_)
                np.copyto(old.reshape(-1, ALIGN), new.reshape(-1, ALIGN), where=written)
            else:
                old[...] = new

        op = AsyncOp(
            kind, wg, lane, i, run,
            reads=(SharedRange(cta, offset, offset + size),) if size else (),
            writes=(GlobalRange(start, start + size),) if size else (),
            unit="tma", cycles=len(lanes) * size / BYTES_PER_CYCLE,
        )  # fmt: skip
        if combine:
            op.notes["atomic"] = True
        bulk_groups.add(wg, lanes, op)
        machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        if masked and wg.machine.sm < 100:
            wg.machine.fault(
                "illegal-instruction", ".cp_mask does not exist before sm_100", i, wg, mask
            )
        rows = (goal(wg), origin(wg), length(wg))
        chosen_bits = chosen(wg) if chosen is not None else 0
        alike = check_single_issue(wg, mask, i, *rows, chosen_bits)
        for lanes in issuers(wg, mask, alike if combine is None else []):
            start, address, size = (pick(row, lanes.start) for row in rows)
            issue(wg, lanes, start, address, size, pick(chosen_bits, lanes.start))

    e.call(handler)


def _copy(i: Instruction, e: Emitter) -> None:
    spaces, words = _form(
        i, e, (_COMPLETES, "bulk_group", "multicast::cluster", "L2::cache_hint", "cp_mask")
    )
    if spaces == ("global", "shared::cta"):
        _store(i, e, None, "u8", words)
    elif spaces == ("shared::cluster", "shared::cta"):
        _to_peer(i, e, None, "u8", words)
    elif spaces in (("shared::cluster", "global"), ("shared::cta", "global")):
        _load(i, e, spaces, words)
    else:
        raise e.refuse("state spaces")


def _reduce(i: Instruction, e: Emitter) -> None:
    element = i.modifiers[-1]
    spaces, words = _form(
        i, e,
        (_COMPLETES, "bulk_group", "L2::cache_hint", "noftz", element, *reductions.OPERATIONS),
    )  # fmt: skip
    operations = [word for word in words if word in reductions.OPERATIONS]
    if len(operations) != 1 or words[-1] != element:
        raise e.refuse("one operation and one type were expected")
    operation = operations[0]
    noftz = "noftz" in words
    if noftz != (operation == "add" and element in ("f16", "bf16")):
        raise e.refuse(".noftz belongs to additions of f16 and bf16")
    words = [word for word in words if word not in (operation, element, "noftz")]
    to_global = spaces == ("global", "shared::cta")
    if not to_global and spaces != ("shared::cluster", "shared::cta"):
        raise e.refuse("state spaces")
    look_up: Callable[[str, str], Combine | None] = (
        reductions.find if to_global else reductions.find_shared
    )
    combine = look_up(operation, element)
    logical = operation in ("and", "or", "xor")
    if combine is None or (logical and element[0] != "b"):
        raise e.refuse(f".{operation} does not work on .{element}")
    (_store if to_global else _to_peer)(i, e, combine, element, words)


def _prefetch(i: Instruction, e: Emitter) -> None:
    words = i.modifiers[i.modifiers.index("prefetch") + 1 :]
    hint = words[-1] == "L2::cache_hint"
    if words not in (("L2", "global"), ("L2", "global", "L2::cache_hint")):
        raise e.refuse("modifiers")
    _count(i, e, 2 + hint)
    origin, length = e.address(i.operands[0]), e.reader(i.operands[1], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        starts, sizes = origin(wg), length(wg)
        for lane in wg.lanes_of(mask).tolist():
            start, size = pick(starts, lane), pick(sizes, lane)
            _check_size(wg, lane, i, size, start)
            if size:
                check_global(wg, lane, i, start, start + size, writes=False)

    e.call(handler)


def _commit(i: Instruction, e: Emitter) -> None:
    if i.modifiers[2:] != ("commit_group",):
        raise e.refuse("modifiers")
    _count(i, e, 0)
    e.call(bulk_groups.commit)


def _wait(i: Instruction, e: Emitter) -> None:
    reads_only = i.modifiers[2:] == ("wait_group", "read")
    if not reads_only and i.modifiers[2:] != ("wait_group",):
        raise e.refuse("modifiers")
    _count(i, e, 1)
    number = i.operands[0]
    if not isinstance(number, Immediate) or number.kind != "int" or number.bits < 0:
        raise e.refuse("the number of groups is a constant")
    pending = number.bits
    e.call(lambda wg, mask: bulk_groups.wait(wg, mask, pending, reads_only))


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "cp.async.bulk": _copy,
    "cp.reduce.async.bulk": _reduce,
    "cp.async.bulk.prefetch": _prefetch,
    "cp.async.bulk.commit_group": _commit,
    "cp.async.bulk.wait_group": _wait,
    **async_stores.TRANSLATIONS,
}
