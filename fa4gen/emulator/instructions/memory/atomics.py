"""Atomic operations on global and shared memory (PTX ISA, "atom", "red").

Lanes of one instruction go one after the other, in lane order. Lanes with addresses of their own
are treated together: of those that share one, the first of each, then the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.memory.access import (
    Access,
    Part,
    RowOf,
    destination,
    lane_addresses,
    lane_values,
    put,
)
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.instructions.scalar.rows.ieee import canonical, extreme_of, flush, settled
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Vector
from fa4gen.emulator.ptx.types import bits_of
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

Words2D: TypeAlias = NDArray[Any]
Update: TypeAlias = Callable[[Words2D, Words2D, "Words2D | None"], Words2D]
"""(old, b, c) -> new"""

_TYPES: Final = {
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
    "min": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
}
_HALVES: Final = ("f16", "f16x2", "bf16", "bf16x2")
_SPACES: Final = ("global", "shared", "shared::cta", "shared::cluster")
_ELEMENTS: Final[dict[str, Any]] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
# Updates in any order, which NumPy does in one call where no lane needs the old value.
_UNORDERED: Final[dict[str, Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_VECTOR_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers: ``count`` elements of ``kind``, in words of ``dtype``."""

    order: str
    scope: str
    space: str
    operation: str
    kind: str
    count: int
    hinted: bool

    @property
    def dtype(self) -> Any:
        """The type of the numbers; 128 bits are two words."""
        if self.kind == "b128":
            return np.dtype(np.uint64)
        element = self.kind.removesuffix("x2")
        if element in _ELEMENTS:
            return np.dtype(_ELEMENTS[element])
        return np.dtype(f"{'i' if self.kind[0] == 's' else 'u'}{bits_of(self.kind) // 8}")

    @property
    def size(self) -> int:
        return bits_of(self.kind) // 8 * self.count


def _parse(i: Instruction, e: Emitter) -> _Form:
    words = Words(i, e)
    orders = ("relaxed", "acquire", "release", "acq_rel")
    order = words.one(*orders[:3:2] if i.opcode == "red" else orders)
    scope = words.one("cta", "cluster", "gpu", "sys")
    space = words.one(*_SPACES) or "generic"
    operation = words.kind(*_TYPES)
    unflushed = words.has("noftz")
    hinted = words.has("L2::cache_hint")
    vector = words.one("v2", "v4", "v8")
    kind = words.kind(*_TYPES[operation])
    if i.opcode == "red" and operation in ("exch", "cas"):
        raise e.refuse(f".{operation} has a result")
    if unflushed != (kind in _HALVES):
        raise e.refuse(".noftz goes with f16 and bf16")
    count = int(vector[1:]) if vector else 1
    if vector:
        if kind not in (*_HALVES, "f32") or space not in ("global", "generic"):
            raise e.refuse("no such vector")
        if bits_of(kind) // 8 * count > _VECTOR_BYTES:
            raise e.refuse("the vector is too large")
    elif operation != "add" and kind in _HALVES:
        raise e.refuse("only vectors")
    words.end((3 if i.opcode == "atom" else 2) + (operation == "cas") + hinted)
    return _Form(order or "relaxed", scope or "gpu", space, operation, kind, count, hinted)


# ---- use of the old values; arrays are (lanes, words)


def _extreme(form: _Form) -> Update:
    """Minimum or maximum: a NaN loses, and -0 is less than +0."""
    dtype = form.dtype
    largest = form.operation == "max"
    if dtype.kind in "iu":
        return lambda old, b, _c: np.maximum(old, b) if largest else np.minimum(old, b)
    kind = form.kind.removesuffix("x2")

    def update(old: Words2D, b: Words2D, _c: Any) -> Words2D:
        number: Words2D = canonical(extreme_of(old, b, largest), kind)
        return number

    return update


def _sum(form: _Form, flushes: bool) -> Update:
    """A sum rounded to nearest; f32 in global memory flushes subnormal numbers."""
    dtype = form.dtype
    if dtype.kind in "iu":
        return lambda old, b, _c: old + b
    kind = form.kind.removesuffix("x2")

    def update(old: Words2D, b: Words2D, _c: Any) -> Words2D:
        if flushes:
            old, b = flush(old, kind), flush(b, kind)
        total = (old + b).astype(dtype)
        result: Words2D = settled(flush(total, kind) if flushes else total, kind, old, b)
        return result

    return update


def _update_of(form: _Form, space: str) -> Update:
    """The update in global or shared memory."""
    operation = form.operation
    if operation == "add":
        return _sum(form, form.kind == "f32" and space == "global")
    if operation in ("min", "max"):
        return _extreme(form)
    one = form.dtype.type(1)
    table: dict[str, Update] = {
        "inc": lambda old, b, _c: np.where(old >= b, old.dtype.type(0), old + one),
        "dec": lambda old, b, _c: np.where((old == 0) | (old > b), b, old - one),
        "and": lambda old, b, _c: old & b,
        "or": lambda old, b, _c: old | b,
        "xor": lambda old, b, _c: old ^ b,
        "exch": lambda old, b, _c: b,
        "cas": _swap_if_equal,
    }
    return table[operation]


def _swap_if_equal(old: Words2D, b: Words2D, c: Words2D | None) -> Words2D:
    assert c is not None
    return np.where((old == b).all(axis=1, keepdims=True), c, old)


# ---- execution


def turns(index: NDArray[np.int64]) -> Iterator[NDArray[np.int64] | slice]:
    """Lanes to treat together, in order: no two of a turn have the same place in memory."""
    count = len(index)
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    repeats = ranked[1:] == ranked[:-1]
    if not repeats.any():
        yield slice(None)
        return
    position = np.arange(count)
    starts = np.where(np.concatenate(([False], repeats)), 0, position)
    turn = position - np.maximum.accumulate(starts)
    for number in range(int(turn.max()) + 1):
        yield order[turn == number]


def _apply(
    part: Part, form: _Form, update: Update, b: Words2D, c: Words2D | None, wanted: bool
) -> Words2D | None:
    """Update the memory of a part with the operands of its lanes; the old words if wanted."""
    dtype = form.dtype
    width = form.size // dtype.itemsize
    memory, index = part.words(dtype, width)
    if width == 1:
        memory = memory[:, None]
    if len(index) == 1:
        index = np.broadcast_to(index, len(b))
    if not wanted and width == 1 and dtype.kind in "iu" and form.operation in _UNORDERED:
        _UNORDERED[form.operation].at(memory[:, 0], index, b[:, 0])
        return None
    olds = np.empty_like(b) if wanted else None
    for lanes in turns(index):
        at = index[lanes]
        old = memory[at]
        if olds is not None:
            olds[lanes] = old
        memory[at] = update(old, b[lanes], None if c is None else c[lanes])
    return olds


def _operand(form: _Form, operand: Operand, e: Emitter) -> Callable[[Warpgroup, Mask], Words2D]:
    """Reads a value operand: (lanes, words)."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != form.count or isinstance(operand, Vector) != (form.count > 1):
        raise e.refuse(f"{form.count} values were expected")
    bits = "b128" if form.kind == "b128" else f"b{bits_of(form.kind)}"
    # a number has to be read as such for the sake of literals
    kind = form.kind if form.kind in ("f32", "f64") else bits
    readers = [e.reader(item, kind) for item in items]
    dtype = form.dtype

    def read(wg: Warpgroup, mask: Mask) -> Words2D:
        values: Words2D
        if len(readers) == 1:
            values = np.ascontiguousarray(lane_values(readers[0](wg), wg, mask))
            values = values.view(dtype).reshape(len(values), -1)
            return values
        rows = [lane_values(reader(wg), wg, mask) for reader in readers]
        values = np.stack(rows, axis=1).view(dtype)
        return values

    return read


def _results(form: _Form, operand: Operand, e: Emitter) -> list[RowOf | None]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != form.count or isinstance(operand, Vector) != (form.count > 1):
        raise e.refuse(f"{form.count} results were expected")
    kind = "b128" if form.kind == "b128" else f"b{bits_of(form.kind)}"
    return [destination(e, item, kind) for item in items]


def _write(form: _Form, rows: list[RowOf | None], wg: Warpgroup, mask: Mask, olds: Words2D) -> None:
    words = olds if form.kind == "b128" else olds.view(f"u{bits_of(form.kind) // 8}")
    for number, row in enumerate(rows):
        if row is not None:
            put(row(wg), words if form.kind == "b128" else words[:, number], mask)


def _atomic(i: Instruction, e: Emitter) -> None:
    form = _parse(i, e)
    access = Access(i, form.space, form.size, "atomic")
    operands = list(i.operands)
    rows = _results(form, operands.pop(0), e) if i.opcode == "atom" else []
    address = e.address(operands[0], shared=form.space.startswith("shared"))
    read_b = _operand(form, operands[1], e)
    read_c = _operand(form, operands[2], e) if form.operation == "cas" else None
    wanted = any(row is not None for row in rows)
    updates = {space: _update_of(form, space) for space in ("global", "shared")}

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        parts = access.parts(wg, mask, lane_addresses(address(wg), mask))
        b = read_b(wg, mask)
        c = read_c(wg, mask) if read_c is not None else None
        olds = np.empty_like(b) if wanted else None
        for part in parts:
            update = updates.get(part.space)
            if update is None:
                machine.fault(
                    "illegal-instruction",
                    f"an atomic operation on {part.space} memory",
                    i,
                    wg,
                    part.mask,
                )
            places: Any = slice(None) if part.places is None else part.places
            old = _apply(part, form, update, b[places], c if c is None else c[places], wanted)
            if olds is not None:
                olds[places] = old
            _observe(access, form, wg, part)
        if olds is not None:
            _write(form, rows, wg, mask, olds)
        machine.progress()

    e.call(handler)


def _observe(access: Access, form: _Form, wg: Warpgroup, part: Part) -> None:
    access.observe(wg, part)
    observer = wg.machine.observer
    if observer.enabled and part.space == "global":
        observer.atomic_sync(
            wg, part.mask, part.addresses(), form.order, form.scope, True, True, access.site
        )


TRANSLATIONS: Final[Mapping[str, Translate]] = {"atom": _atomic, "red": _atomic}
