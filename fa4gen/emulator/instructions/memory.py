"""Loads, stores and prefetches (PTX ISA, "Data Movement": ld, st, prefetch, createpolicy)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.access import Access, accesses
from fa4gen.emulator.emit import Emitter
from fa4gen.emulator.gang import Gang, Mask
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.ptx.syntax import Address, Instruction, Operand, Symbol, Vector
from fa4gen.emulator.types import bits_of, dtype_of, is_type

SPACES: Final = {
    "global": "global", "shared": "shared", "shared::cta": "shared",
    "shared::cluster": "shared::cluster", "local": "local", "const": "const", "param": "param",
    "param::entry": "param",
}  # fmt: skip
SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_HINTS: Final = frozenset((
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "mmio", "weak",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate", "L2::evict_normal", "L2::evict_first", "L2::evict_last",
    "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers of a load or store: ``order`` is weak, volatile, relaxed, acquire, release."""

    space: str
    order: str
    scope: str
    count: int
    kind: str
    hinted: bool

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return max(bits_of(self.kind), 8) // 8

    @property
    def size(self) -> int:
        """Bytes that a lane accesses."""
        return self.element * self.count


def _form(i: Instruction, e: Emitter) -> Form:
    space, order, scope, count, kind = "", "weak", "", 1, ""
    for word in i.modifiers:
        if word in SPACES:
            space = SPACES[word]
        elif word in ("relaxed", "acquire", "release", "volatile"):
            order = word
        elif word in SCOPES:
            scope = word
        elif word in ("v2", "v4", "v8"):
            count = int(word[1:])
        elif is_type(word) and not kind and word != "pred":
            kind = word
        elif word not in _HINTS:
            raise e.refuse(f".{word}")
    if not kind:
        raise e.refuse("it has no type")
    return Form(space, order, scope, count, kind, "L2::cache_hint" in i.modifiers)


def _items(operand: Operand, form: Form, e: Emitter) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != form.count:
        raise e.refuse(f"{form.count} registers were expected")
    return items


def _operands(i: Instruction, e: Emitter, form: Form) -> None:
    if len(i.operands) != 2 + form.hinted:
        raise e.refuse("the number of operands")


def _ld(i: Instruction, e: Emitter) -> None:
    form = _form(i, e)
    _operands(i, e, form)
    writers = [e.writer(item, form.kind) for item in _items(i.operands[0], form, e)]
    if form.space == "param" and _fixed_parameter(i.operands[1]):
        _ld_parameter(i, e, form, writers)
        return
    address = e.address(i.operands[1])
    element, size = form.element, form.size
    dtype = np.uint64 if form.kind == "b128" else dtype_of(form.kind)

    def handler(gang: Gang, mask: Mask) -> None:
        raw: NDArray[np.uint8] | None = None
        for access in accesses(gang, mask, address(gang), form.space, size, i):
            access.observe("read", i)
            found = access.read()
            _synchronise(access, form, i, reads=True)
            if len(found) == gang.lanes:
                raw = found
            else:
                if raw is None:
                    raw = np.zeros((gang.lanes, size), np.uint8)
                raw[access.lanes] = found
        assert raw is not None
        for position, write in enumerate(writers):
            part = raw[:, position * element : (position + 1) * element]
            values = np.ascontiguousarray(part).view(dtype)
            write(gang, values if form.kind == "b128" else values[:, 0], mask)

    e.call(handler)


def _fixed_parameter(operand: Operand) -> bool:
    return isinstance(operand, Address) and isinstance(operand.base, Symbol)


def _ld_parameter(i: Instruction, e: Emitter, form: Form, writers: list[Any]) -> None:
    """A parameter at a place known beforehand: the same for all threads."""
    address = e.address(i.operands[1])
    dtype = dtype_of(form.kind)

    def handler(gang: Gang, mask: Mask) -> None:
        at = int(address(gang))
        if at + form.size > gang.machine.layout.parameter_bytes:
            gang.machine.fault(
                "out-of-bounds", f"{form.size} bytes at {at} of the parameters", i, gang, mask
            )
        raw = gang.machine.parameters[at : at + form.size].copy().view(dtype)
        for position, write in enumerate(writers):
            write(gang, raw[position], mask)

    e.call(handler)


def _st(i: Instruction, e: Emitter) -> None:
    form = _form(i, e)
    _operands(i, e, form)
    if form.space in ("param", "const"):
        raise e.refuse(f"no stores to .{form.space}")
    element, size = form.element, form.size
    raw_kind = form.kind if form.kind == "b128" else f"b{element * 8}"
    readers = [e.reader(item, raw_kind) for item in _items(i.operands[1], form, e)]
    address = e.address(i.operands[0])
    unsigned = np.dtype(np.uint64 if form.kind == "b128" else f"u{element}")

    def handler(gang: Gang, mask: Mask) -> None:
        machine = gang.machine
        machine.progress()
        values = np.empty((gang.lanes, form.count, element // unsigned.itemsize), unsigned)
        for position, read in enumerate(readers):
            row = np.asarray(read(gang))
            values[:, position] = row[:, None] if row.ndim == 1 else row
        raw = values.view(np.uint8).reshape(gang.lanes, size)
        for access in accesses(gang, mask, address(gang), form.space, size, i):
            stored = raw if len(access.lanes) == gang.lanes else raw[access.lanes]
            _writable(access, i)
            _synchronise(access, form, i, reads=False)
            access.observe("write", i, stored)
            access.write(stored)

    e.call(handler)


def _writable(access: Access, site: Instruction) -> None:
    """Fault for stores to read-only memory."""
    if access.addresses is None:
        return
    gang = access.gang
    for address in (int(access.addresses.min()), int(access.addresses.max())):
        region = gang.machine.memory.region(address)
        if region is not None and not region.writable:
            gang.machine.fault(
                "out-of-bounds",
                f"a store to {region.name}, which is read-only",
                site,
                gang,
                access.mask,
            )


def _synchronise(access: Access, form: Form, site: Instruction, *, reads: bool) -> None:
    """Strong loads and stores order what other threads see."""
    observer = access.gang.machine.observer
    if form.order == "weak" or access.addresses is None or not observer.enabled:
        return
    order = form.order if form.order in ("acquire", "release") else "relaxed"
    observer.atomic_sync(
        access.gang, access.mask, access.addresses, order, form.scope or "sys", reads, not reads,
        site,
    )  # fmt: skip


def _hint(i: Instruction, e: Emitter) -> None:
    """Prefetches and cache policies change nothing that a kernel could notice."""
    if i.opcode == "prefetch" and "tensormap" in i.modifiers and len(i.operands) == 1:
        e.address(i.operands[0])


def _policy(i: Instruction, e: Emitter) -> None:
    """createpolicy: the policy's bits mean nothing here, but they are a value."""
    e.assign("b64", i.operands[0], e.name(np.uint64(1)))


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "ld": _ld,
    "ldu": _ld,
    "st": _st,
    "prefetch": _hint,
    "prefetchu": _hint,
    "applypriority": _hint,
    "discard": _hint,
    "createpolicy": _policy,
}
