"""Stores and reductions that signal an mbarrier (PTX ISA, "st.async", "red.async"), and st.bulk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.async_ops import AsyncOp, SharedRange
from fa4gen.emulator.boxes import Combine
from fa4gen.emulator.emit import Emitter, Reader
from fa4gen.emulator.gang import WARP_LANES, Gang, Mask
from fa4gen.emulator.instructions import reductions
from fa4gen.emulator.instructions.copy_places import Target, check_shared, find_targets, only, pick
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.memory import SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Vector
from fa4gen.emulator.types import bits_of, dtype_of

_COMPLETES: Final = "mbarrier::complete_tx::bytes"
_TYPES: Final = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")


def shared_address(gang: Gang, lane: int, site: Instruction, address: int, generic: bool) -> int:
    """A shared address from one that may be generic."""
    if not generic:
        return address
    if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        gang.machine.fault(
            "out-of-bounds",
            f"generic address {address:#x} is not in shared memory",
            site,
            gang,
            only(gang, lane),
        )
    return address - SHARED_WINDOW


@dataclass(frozen=True, slots=True)
class _Store:
    """What one thread stores: ``raw`` are typed elements."""

    lane: int
    target: Target
    raw: NDArray[Any]


def _issue(
    gang: Gang, site: Instruction, kind: str, stores: list[_Store], combine: Combine | None
) -> None:
    """The stores or reductions of a warp's lanes that signal one barrier, as one operation."""
    barrier = stores[0].target.barrier
    size = sum(one.raw.nbytes for one in stores)

    def run() -> None:
        for one in stores:
            start = one.target.offset
            memory = one.target.cta.shared.data[start : start + one.raw.nbytes]
            old = memory.view(one.raw.dtype)
            old[...] = combine(old, one.raw) if combine else one.raw

    def finish() -> None:
        barrier.signal_transaction(op, size)

    first, last = stores[0].lane, stores[-1].lane
    op = AsyncOp(
        kind, gang, first, site, run, finish,
        writes=_joined(stores), notes={"proxy": "generic", "issuers": (first, last + 1)},
    )  # fmt: skip
    if combine:
        op.notes["atomic"] = True
    gang.machine.submit(op)


def _joined(stores: list[_Store]) -> tuple[SharedRange, ...]:
    """The bytes that are written, neighbours as one range."""
    joined: list[SharedRange] = []
    for one in sorted(stores, key=lambda one: (one.target.cta.rank, one.target.offset)):
        cta, start = one.target.cta, one.target.offset
        stop = start + one.raw.nbytes
        last = joined[-1] if joined else None
        if last is not None and last.cta is cta and last.stop >= start:
            joined[-1] = SharedRange(cta, last.start, max(last.stop, stop))
        else:
            joined.append(SharedRange(cta, start, stop))
    return tuple(joined)


def _handle(
    i: Instruction,
    e: Emitter,
    kind: str,
    items: list[Reader],
    dtype: Any,
    generic: bool,
    combine: Combine | None,
) -> None:
    address, barrier = (e.address(i.operands[n], shared=not generic) for n in (0, 2))

    def handler(gang: Gang, mask: Mask) -> None:
        goals, signals = address(gang), barrier(gang)
        values = np.stack([np.broadcast_to(item(gang), gang.lanes) for item in items], axis=1)
        values = np.ascontiguousarray(values).view(dtype)
        groups: dict[tuple[int, int, int], list[_Store]] = {}
        for lane in gang.lanes_of(mask).tolist():
            goal, signal = (
                shared_address(gang, lane, i, pick(row, lane), generic) for row in (goals, signals)
            )
            raw = values[lane].copy()
            target = find_targets(
                gang, lane, i,
                address=goal, barrier=signal, size=raw.nbytes, align=raw.nbytes, cluster=True,
            )[0]  # fmt: skip
            place = target.barrier.cta.rank, target.barrier.offset
            groups.setdefault((lane // WARP_LANES, *place), []).append(_Store(lane, target, raw))
        for stores in groups.values():
            _issue(gang, i, kind, stores, combine)

    e.call(handler)


def _store(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers[1:])
    element = words.pop()
    width = 1
    if words and words[-1] in ("v2", "v4"):
        width = int(words.pop()[1])
    if set(words) - {"weak", "shared::cluster", _COMPLETES} or _COMPLETES not in words:
        raise e.refuse("modifiers")
    if element not in _TYPES or width * bits_of(element) > 128 or len(i.operands) != 3:
        raise e.refuse("type or operands")
    value = i.operands[1]
    operands = list(value.items) if isinstance(value, Vector) else [value]
    if len(operands) != width:
        raise e.refuse(f"{len(operands)} values instead of {width}")
    items = [e.reader(operand, element) for operand in operands]
    _handle(i, e, "st.async", items, dtype_of(element), "shared::cluster" not in words, None)


def _reduce(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers[1:])
    element = words.pop()
    operation = words.pop()
    if set(words) - {"relaxed", "cluster", "shared::cluster", _COMPLETES}:
        raise e.refuse("modifiers")
    if not {"relaxed", "cluster", _COMPLETES} <= set(words) or len(i.operands) != 3:
        raise e.refuse("modifiers or operands")
    if operation not in reductions.OPERATIONS:
        raise e.refuse(f".{operation}")
    combine = reductions.find_shared(operation, "u64" if element == "s64" else element)
    if combine is None:
        raise e.refuse(f".{operation} does not work on .{element}")
    items = [e.reader(i.operands[1], element)]
    _handle(i, e, "red.async", items, dtype_of(element), "shared::cluster" not in words, combine)


def _fill(i: Instruction, e: Emitter) -> None:
    """``st.bulk``: zeros into the CTA's shared memory, like a store (sm_100)."""
    words = set(i.modifiers[1:])
    if words - {"weak", "shared::cta"} or len(i.operands) != 3:
        raise e.refuse("modifiers or operands")
    initial = i.operands[2]
    if not isinstance(initial, Immediate) or initial.bits != 0:
        raise e.refuse("only zeros can be stored")
    generic = "shared::cta" not in words
    address, length = e.address(i.operands[0], shared=not generic), e.reader(i.operands[1], "u64")

    def handler(gang: Gang, mask: Mask) -> None:
        machine = gang.machine
        if machine.sm < 100:
            machine.fault("illegal-instruction", "st.bulk needs sm_100", i, gang, mask)
        goals, sizes = address(gang), length(gang)
        for lane in gang.lanes_of(mask).tolist():
            goal = shared_address(gang, lane, i, pick(goals, lane), generic)
            size = pick(sizes, lane)
            cta, offset = machine.shared_at(gang, goal, i, False)
            if size % 8:
                machine.fault(
                    "misaligned",
                    f"st.bulk of {size} bytes, no multiple of 8",
                    i,
                    gang,
                    only(gang, lane),
                )
            check_shared(gang, lane, i, cta, offset, size, 8)
            if not size:
                continue
            cta.shared.data[offset : offset + size] = 0
            if machine.observer.enabled:
                machine.observer.shared_access(
                    gang, only(gang, lane), cta, np.array([offset]), size, "write", i
                )
        machine.progress()

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "st.async": _store,
    "red.async": _reduce,
    "st.bulk": _fill,
}
