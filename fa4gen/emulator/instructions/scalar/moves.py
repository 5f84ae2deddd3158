"""Moves, packing and unpacking, and address spaces (PTX ISA, "mov", "cvta", "isspacep")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import (
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Vector,
)
from fa4gen.emulator.ptx.types import CLASS_BITS, bits_of, dtype_of, is_float
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.memory import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_MOVED: Final = (
    "pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "b128",
)  # fmt: skip
_WINDOWS: Final = {
    "global": 0,
    "const": 0,
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "param::entry": PARAM_WINDOW,
}


def _mov(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_MOVED)
    words.end(2)
    d, a = i.operands
    if isinstance(a, Immediate) and a.kind == "int" and is_float(kind):
        raise e.refuse("an integer moved as a floating-point number")
    moved = kind if kind == "pred" else f"b{bits_of(kind)}"
    if isinstance(a, Register) and moved != "pred" and CLASS_BITS[a.cls] != bits_of(moved):
        raise e.refuse(f"{a.name} is not as wide as .{kind}")
    if isinstance(d, Vector):
        _unpack(e, moved, d, a)
    elif isinstance(a, Vector):
        _pack(e, moved, d, a)
    elif moved == "b128":
        _copy_pair(e, d, a)
    elif not e.elementwise(_same, moved, d, [a], [moved], into=False):
        e.assign(moved, d, e.get(a, moved))


def _same(row: Any) -> Any:
    return row


def _copy_pair(e: Emitter, d: Operand, a: Operand) -> None:
    if not isinstance(a, Register) or a.cls != "q":
        raise e.refuse("a 128-bit register was expected")
    for half in (0, 1):
        _assign_part(e, f"{e.target(d, 'b128')}[:, {half}]", f"{e.get(a, 'b128')}[:, {half}]")


def _assign_part(e: Emitter, target: str, value: str) -> None:
    """Like ``e.assign``, to part of a row."""
    if e.masked:
        e.line(f"{e.name(np.copyto)}({target}, {value}, 'unsafe', {e.mask})")
    else:
        e.line(f"{target}[...] = {value}")


def _part_kind(e: Emitter, kind: str, vector: Vector) -> str:
    """The type of the parts that a vector splits a word into."""
    bits = bits_of(kind) if kind != "pred" else 0
    parts = len(vector.items)
    if parts not in (2, 4) or bits // parts not in (8, 16, 32, 64):
        raise e.refuse(f"{parts} parts")
    return f"b{bits // parts}"


def _parts(e: Emitter, kind: str, part: str, operand: Operand) -> list[str]:
    """Expressions for the parts of a register, lowest first."""
    count = bits_of(kind) // bits_of(part)
    if kind == "b128":
        row = e.target(operand, kind)
        return [f"{row}[:, {place}]" for place in range(count)]
    row = f"{e.target(operand, kind)}.view({e.name(np.dtype(dtype_of(part)))})"
    return [f"{row}[{place}::{count}]" for place in range(count)]


def _pack(e: Emitter, kind: str, d: Operand, vector: Vector) -> None:
    """The first element becomes the lowest part; a sink leaves zeros there."""
    part = _part_kind(e, kind, vector)
    if isinstance(d, Sink):
        return
    if (
        kind == "b64"
        and part == "b32"
        and e.elementwise(_join, kind, d, vector.items, [part, part], into=False)
    ):
        return
    zero = Immediate("int", 0)
    targets = _parts(e, kind, part, d)
    for target, item in zip(targets, vector.items, strict=True):
        _assign_part(e, target, e.get(zero if isinstance(item, Sink) else item, part))


def _join(low: Any, high: Any) -> Any:
    """Words of two halves; rows of any length."""
    return np.stack([low, high], axis=-1).view(np.uint64)[:, 0]


def _low(row: Any) -> Any:
    return row.view(np.uint32)[::2]


def _high(row: Any) -> Any:
    return row.view(np.uint32)[1::2]


def _unpack(e: Emitter, kind: str, vector: Vector, a: Operand) -> None:
    part = _part_kind(e, kind, vector)
    kept = [place for place, item in enumerate(vector.items) if not isinstance(item, Sink)]
    if kind == "b64" and part == "b32" and len(kept) == 1:
        half = (_low, _high)[kept[0]]
        if e.elementwise(half, part, vector.items[kept[0]], [a], [kind], into=False):
            return
    if isinstance(a, Register):
        # only looks like a destination
        texts = _parts(e, kind, part, a)
    elif kind == "b128":
        raise e.refuse("a 128-bit register was expected")
    else:
        dtype, bits = dtype_of(kind), bits_of(part)
        value = e.get(a, kind)
        texts = [
            f"({value} >> {e.name(dtype(place * bits))})" for place in range(len(vector.items))
        ]
    for item, text in zip(vector.items, texts, strict=True):
        if isinstance(item, Sink):
            continue
        if bits_of(part) == 8 and not isinstance(a, Register):
            text = f"{text}.astype({e.name(np.dtype(np.uint8))})"
        e.assign(part, item, text)


def _cvta(i: Instruction, e: Emitter) -> None:
    """To or from the generic address of a place in a space: plus or minus its window."""
    words = Words(i, e)
    back = words.has("to")
    window = _WINDOWS[words.kind(*_WINDOWS)]
    words.kind("u64")
    words.end(2)
    d, a = i.operands
    if window:
        e.ufunc("subtract" if back else "add", "u64", d, e.get(a, "u64"), e.name(np.uint64(window)))
    else:
        e.assign("u64", d, e.get(a, "u64"))


def _isspacep(i: Instruction, e: Emitter) -> None:
    """Whether a generic address is in a space's window; shared::cta: in this CTA's part."""
    words = Words(i, e)
    space = words.kind(*_WINDOWS)
    words.end(2)
    if space == "const":
        raise e.refuse("constants live in global memory here")
    read = e.reader(i.operands[1], "u64")
    write = e.writer(i.operands[0], "pred")
    own = space in ("shared", "shared::cta")
    window = np.uint64(_WINDOWS[space])
    size = np.uint64(WINDOW_BYTES)

    def handle(wg: Warpgroup, mask: Mask) -> None:
        address = np.asarray(read(wg))
        inside: Any
        if space == "global":
            inside = ~np.logical_or.reduce(
                [address - np.uint64(w) < size for w in (SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW)]
            )
        else:
            inside = address - window < size
            if own:
                rank = (address - window) >> np.uint64(RANK_SHIFT)
                inside = inside & ((rank == 0) | (rank == np.uint64(wg.cta.rank)))
        write(wg, inside, mask)

    e.call(handle)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "mov": _mov,
    "cvta": _cvta,
    "isspacep": _isspacep,
}
