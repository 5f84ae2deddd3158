"""Loads and stores of all state spaces, and cache hints.

PTX ISA: "ld", "ld.global.nc", "ldu", "st", "prefetch", "applypriority", "discard", "createpolicy".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.memory.access import (
    SPACES,
    Access,
    destination,
    lane_addresses,
    lane_values,
    put,
    word_of,
)
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import Address, Instruction, Operand, Vector
from fa4gen.emulator.ptx.types import bits_of
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_TYPES: Final = (
    "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
    "f32", "f64",
)  # fmt: skip
_L1: Final = (
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate",
)  # fmt: skip
_L2: Final = ("L2::evict_normal", "L2::evict_first", "L2::evict_last")
_PREFETCH: Final = ("L2::64B", "L2::128B", "L2::256B")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_READ_CACHE: Final = ("ca", "cg", "cs", "lu", "cv")
_WRITE_CACHE: Final = ("wb", "cg", "cs", "wt")
_PRIORITY_BYTES: Final = 128
# the value of discarded bytes: nothing that looks like data
_DISCARDED: Final = 0xA5


class _Form:
    """The modifiers of a load or store.

    order, scope  of an access that synchronises, else None
    count         elements of a vector, else 1
    """

    def __init__(self, i: Instruction, e: Emitter, orders: tuple[str, ...]) -> None:
        words = Words(i, e)
        self.scope: str | None = None
        self.order = words.one(*orders, "weak", "volatile", "mmio")
        if self.order == "mmio" and not words.has("relaxed"):
            raise e.refuse(".mmio goes with .relaxed")
        if self.order in (*orders, "mmio"):
            self.scope = words.kind(*_SCOPES)
        elif self.order == "volatile":
            self.scope = "sys"
        self.order = {"weak": None, "volatile": "relaxed", "mmio": "relaxed"}.get(
            self.order or "weak", self.order
        )
        self.space = words.one(*SPACES) or "generic"
        self.shared = self.space.startswith("shared")
        load = i.opcode != "st"
        self.plain = words.has("nc") if load else False
        if self.plain and (self.space != "global" or self.order):
            raise e.refuse(".nc goes with weak loads of .global")
        words.one(*(_READ_CACHE if load else _WRITE_CACHE))
        words.one(*_L1)
        words.one(*_L2)
        self.hinted = words.has("L2::cache_hint")
        if load:
            words.one(*_PREFETCH)
        vector = words.one("v2", "v4", "v8")
        self.count = int(vector[1:]) if vector else 1
        self.vector = vector is not None
        self.kind = words.kind(*_TYPES)
        self.size = bits_of(self.kind) // 8 * self.count
        if self.size > 32 or (self.kind == "b128" and vector):
            raise e.refuse("the vector is too large")
        words.end(3 if self.hinted else 2)

    def items(self, operand: Operand, e: Emitter) -> tuple[Operand, ...]:
        """The registers of the operand that holds the data; ptxas takes ``{%r}`` for one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != self.count or (self.vector and not isinstance(operand, Vector)):
            raise e.refuse(f"{self.count} registers were expected")
        return items


def _synchronise(access: Access, form: _Form, wg: Warpgroup, part: Any) -> None:
    """Tell the observer of a strong access of global memory; it knows those of shared memory."""
    if form.order and part.space == "global" and wg.machine.observer.enabled:
        wg.machine.observer.atomic_sync(
            wg, part.mask, part.addresses(), form.order, form.scope or "sys",
            access.kind == "read", access.kind == "write", access.site,
        )  # fmt: skip


def _load(i: Instruction, e: Emitter) -> None:
    form = _Form(i, e, ("relaxed", "acquire"))
    access = Access(i, form.space, form.size, "read")
    rows = [destination(e, item, form.kind) for item in form.items(i.operands[0], e)]
    address = e.address(i.operands[1], shared=form.shared)
    word = word_of(form.kind)
    count = form.size // word.itemsize
    whole = form.count == 1

    def handler(wg: Warpgroup, mask: Mask) -> None:
        parts = access.parts(wg, mask, lane_addresses(address(wg), mask))
        values: Any
        if len(parts) == 1:
            values = parts[0].gather(word, count)
        else:
            lanes = len(wg.lanes_of(mask))
            values = np.empty((lanes,) if count == 1 else (lanes, count), word)
            for part in parts:
                values[part.places] = part.gather(word, count)
        for part in parts:
            access.observe(wg, part)
            _synchronise(access, form, wg, part)
        for number, row in enumerate(rows):
            if row is not None:
                put(row(wg), values if whole else values[:, number], mask)

    e.call(handler)


def _store(i: Instruction, e: Emitter) -> None:
    form = _Form(i, e, ("relaxed", "release"))
    if form.space in ("const", "param", "param::entry"):
        raise e.refuse(f".{form.space} is read only")
    access = Access(i, form.space, form.size, "write")
    kind = "b128" if form.kind == "b128" else f"b{bits_of(form.kind)}"
    operands = form.items(i.operands[1], e)
    items = [e.reader(item, form.kind) for item in operands]
    address = e.address(i.operands[0], shared=form.shared)
    word = word_of(kind)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        parts = access.parts(wg, mask, lane_addresses(address(wg), mask))
        if len(items) == 1:
            values = lane_values(items[0](wg), wg, mask).view(word)
        else:
            lanes = wg.lanes if mask is None else int(np.count_nonzero(mask))
            values = np.empty((lanes, len(items)), word)
            for number, item in enumerate(items):
                row = item(wg)
                if row.ndim and mask is not None:
                    row = row[mask]
                values[:, number] = row.view(word)
        for part in parts:
            taken = values if part.places is None else values[part.places]
            access.observe(wg, part, taken)
            part.scatter(taken)
            _synchronise(access, form, wg, part)
        wg.machine.progress()

    e.call(handler)


# ---- hints


def _address_only(i: Instruction, e: Emitter) -> None:
    """Refuse an operand that is not an address."""
    if not isinstance(i.operands[0], Address):
        raise e.refuse("an address was expected")


def _prefetch(i: Instruction, e: Emitter) -> None:
    """``prefetch`` and ``prefetchu``: nothing that a program could see."""
    words = Words(i, e)
    if i.opcode == "prefetchu":
        words.kind("L1")
    elif words.has("tensormap"):
        words.one("const", "param", "param::entry")
    else:
        words.one("global", "local")
        words.kind("L1", "L2", "L2::evict_last", "L2::evict_normal")
    words.end(1)
    _address_only(i, e)


def _apply_priority(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.one("global")
    words.kind("L2::evict_normal")
    words.end(2)
    _address_only(i, e)
    _check_line(i, e)


def _check_line(i: Instruction, e: Emitter) -> None:
    size = e.constant(i.operands[1], "u32")
    if int(size) != _PRIORITY_BYTES:
        raise e.refuse(f"the size is {_PRIORITY_BYTES}")


def _discard(i: Instruction, e: Emitter) -> None:
    """``discard``: 128 bytes lose their value."""
    words = Words(i, e)
    space = words.one("global") or "generic"
    words.kind("L2")
    words.end(2)
    _address_only(i, e)
    _check_line(i, e)
    access = Access(i, space, _PRIORITY_BYTES, "write")
    address = e.address(i.operands[0])

    def handler(wg: Warpgroup, mask: Mask) -> None:
        for part in access.parts(wg, mask, lane_addresses(address(wg), mask)):
            part.scatter(np.full((len(part.offsets), _PRIORITY_BYTES), _DISCARDED, np.uint8))
            access.observe(wg, part)
        wg.machine.progress()

    e.call(handler)


def _policy(i: Instruction, e: Emitter) -> None:
    """``createpolicy``: a word that only caches look at."""
    words = Words(i, e)
    form = words.kind("fractional", "range", "cvt")
    if form == "cvt":
        words.kind("L2")
        counts: tuple[int, ...] = (2,)
    else:
        if form == "range":
            words.one("global")
        words.kind(*_L2, "L2::evict_unchanged")
        words.one("L2::evict_first", "L2::evict_unchanged")
        counts = (1, 2) if form == "fractional" else (4,)
    words.kind("b64")
    words.end(*counts)
    write = e.writer(i.operands[0], "b64")
    e.call(lambda wg, mask: write(wg, np.uint64(0), mask))


def _load_uniform(i: Instruction, e: Emitter) -> None:
    """``ldu``: a load of global memory, read only, from one address for the warp."""
    if "shared" in i.modifiers or "local" in i.modifiers:
        raise e.refuse("only .global")
    _load(i, e)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "ld": _load,
    "ldu": _load_uniform,
    "st": _store,
    "prefetch": _prefetch,
    "prefetchu": _prefetch,
    "applypriority": _apply_priority,
    "discard": _discard,
    "createpolicy": _policy,
}
