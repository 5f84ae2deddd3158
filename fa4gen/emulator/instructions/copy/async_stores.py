"""Stores and reductions that signal an mbarrier (PTX ISA, "st.async", "red.async"), and st.bulk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy import reductions
from fa4gen.emulator.instructions.copy.boxes import Combine
from fa4gen.emulator.instructions.copy.endpoints import (
    Target,
    check_shared,
    find_targets,
    only,
    pick,
)
from fa4gen.emulator.instructions.memory.access import raw_bytes
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Vector
from fa4gen.emulator.ptx.types import bits_of, dtype_of
from fa4gen.emulator.state.machine import AsyncOp, SharedRange, Warpgroup
from fa4gen.emulator.state.memory import (
    OFFSET_MASK,
    RANK_SHIFT,
    RESERVED_SHARED,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import Cta

_COMPLETES: Final = "mbarrier::complete_tx::bytes"
_TYPES: Final = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")


def shared_address(wg: Warpgroup, lane: int, site: Instruction, address: int, generic: bool) -> int:
    """A shared address from one that may be generic."""
    if not generic:
        return address
    if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        wg.machine.fault(
            "out-of-bounds",
            f"generic address {address:#x} is not in shared memory",
            site,
            wg,
            only(wg, lane),
        )
    return address - SHARED_WINDOW


@dataclass(frozen=True, slots=True, eq=False)
class _Stores:
    """Stores of a warp's lanes into one CTA's shared memory, and the barrier that they signal.

    ``offsets`` are in bytes, ``raw`` the typed elements: (lanes, elements each).
    """

    lanes: NDArray[np.int64]
    target: Target
    offsets: NDArray[np.int64]
    raw: NDArray[Any]


def _issue(
    wg: Warpgroup, site: Instruction, kind: str, stores: _Stores, combine: Combine | None
) -> None:
    """The stores or reductions of a warp's lanes that signal one barrier, as one operation."""
    barrier, cta, raw = stores.target.barrier, stores.target.cta, stores.raw
    each = raw.nbytes // len(raw)

    def run() -> None:
        if combine is None:
            at = stores.offsets[:, None] + np.arange(each)
            cta.shared.data[at] = raw_bytes(raw)
            return
        for start, one in zip(stores.offsets.tolist(), raw, strict=True):
            old = cta.shared.data[start : start + each].view(raw.dtype)
            old[...] = combine(old, one)

    def finish() -> None:
        barrier.signal_transaction(op, raw.nbytes)

    first, last = int(stores.lanes[0]), int(stores.lanes[-1])
    op = AsyncOp(
        kind, wg, first, site, run, finish,
        writes=_joined(cta, stores.offsets, each),
        notes={"proxy": "generic", "issuers": (first, last + 1)},
    )  # fmt: skip
    if combine:
        op.notes["atomic"] = True
    wg.machine.submit(op)


def _joined(cta: Cta, offsets: NDArray[np.int64], size: int) -> tuple[SharedRange, ...]:
    """The bytes that are written, neighbours as one range."""
    starts = np.sort(offsets)
    breaks = np.flatnonzero(np.diff(starts) > size) + 1
    firsts = starts[np.concatenate([[0], breaks])].tolist()
    lasts = starts[np.concatenate([breaks - 1, [len(starts) - 1]])].tolist()
    return tuple(
        SharedRange(cta, first, last + size) for first, last in zip(firsts, lasts, strict=True)
    )


def _shared_rows(
    wg: Warpgroup, lanes: NDArray[np.int64], rows: tuple[Any, ...], generic: bool
) -> list[NDArray[np.int64]]:
    """Shared addresses of lanes from rows that may be generic."""
    result = []
    for row in rows:
        values = np.broadcast_to(row, wg.lanes)[lanes].astype(np.int64)
        if generic:
            values = values - SHARED_WINDOW
        result.append(values)
    return result


def _all_fit(
    wg: Warpgroup, goals: NDArray[np.int64], signals: NDArray[np.int64], size: int
) -> bool:
    """Whether every place is aligned, inside shared memory, and in the CTA of its barrier."""
    ranks, offsets = goals >> RANK_SHIFT, goals & OFFSET_MASK
    good = (ranks == signals >> RANK_SHIFT) & (offsets % size == 0) & (offsets >= RESERVED_SHARED)
    good &= (ranks >= 0) & (ranks < len(wg.cta.cluster.ctas))
    good &= offsets + size <= wg.cta.shared.size
    return bool(good.all())


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

    def handler(wg: Warpgroup, mask: Mask) -> None:
        rows = address(wg), barrier(wg)
        values = np.stack([np.broadcast_to(item(wg), wg.lanes) for item in items], axis=1)
        values = np.ascontiguousarray(values).view(dtype)
        size = values.nbytes // len(values)

        def find(lane: int) -> Target:
            goal, signal = (shared_address(wg, lane, i, pick(row, lane), generic) for row in rows)
            return find_targets(
                wg, lane, i, address=goal, barrier=signal, size=size, align=size, cluster=True
            )[0]

        lanes = wg.lanes_of(mask)
        goals, signals = _shared_rows(wg, lanes, rows, generic)
        if not _all_fit(wg, goals, signals, size):
            for lane in lanes.tolist():
                find(lane)  # stops at the first that does not fit
        groups: dict[tuple[int, int], list[int]] = {}
        for place, key in enumerate(
            zip((lanes // WARP_LANES).tolist(), signals.tolist(), strict=True)
        ):
            groups.setdefault(key, []).append(place)
        found = [(places, find(int(lanes[places[0]]))) for places in groups.values()]
        for places, target in found:
            mine = lanes[places]
            stores = _Stores(mine, target, goals[places] & OFFSET_MASK, values[mine])
            _issue(wg, i, kind, stores, combine)

    e.call(handler)


_MMIO: Final = "there are no devices here whose registers are in memory"


def _store(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers[1:])
    if "mmio" in words:
        raise e.refuse(_MMIO)
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
    if "mmio" in words:
        raise e.refuse(_MMIO)
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

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        if machine.sm < 100:
            machine.fault("illegal-instruction", "st.bulk needs sm_100", i, wg, mask)
        goals, sizes = address(wg), length(wg)
        for lane in wg.lanes_of(mask).tolist():
            goal = shared_address(wg, lane, i, pick(goals, lane), generic)
            size = pick(sizes, lane)
            cta, offset = machine.shared_at(wg, goal, i, False)
            if size % 8:
                machine.fault(
                    "misaligned",
                    f"st.bulk of {size} bytes, no multiple of 8",
                    i,
                    wg,
                    only(wg, lane),
                )
            check_shared(wg, lane, i, cta, offset, size, 8)
            if not size:
                continue
            cta.shared.data[offset : offset + size] = 0
            if machine.observer.enabled:
                machine.observer.shared_access(
                    wg, only(wg, lane), cta, np.array([offset]), size, "write", i
                )
        machine.progress()

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "st.async": _store,
    "red.async": _reduce,
    "st.bulk": _fill,
}
