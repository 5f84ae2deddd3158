"""``multimem``: memory of several devices at one address (PTX ISA, "multimem.ld_reduce").

There is one device here, so that an address stands for one place: the reduction of a load is the
value itself, and stores and reductions are those of ordinary memory. Where an address comes from
does not matter: an array's is as good as another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fa4gen.emulator.instructions.memory import atomics, loads_and_stores
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_INTEGERS: Final = ("b32", "b64", "u32", "u64", "s32", "s64")
_HALVES: Final = ("f16", "f16x2", "bf16", "bf16x2")
_BYTES: Final = ("e4m3", "e4m3x2", "e4m3x4", "e5m2", "e5m2x2", "e5m2x4")
_TYPES: Final = (*_INTEGERS, *_HALVES, *_BYTES, "f32", "f64")
_BITS: Final = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8}
_EXTREMES: Final = ("u32", "s32", "u64", "s64", *_HALVES, *_BYTES)
_OPERATIONS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("u32", "u64", "s32", *_HALVES, *_BYTES, "f32", "f64"),
    "min": _EXTREMES,
    "max": _EXTREMES,
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_VECTORS: Final = ("v2", "v4", "v8")


def _raw(kind: str) -> str:
    """The type as ``ld`` and ``st`` know it."""
    base, _, count = kind.partition("x")
    return f"b{_BITS[base] * int(count or 1)}" if base in _BITS else kind


def _present(*words: str | None) -> tuple[str, ...]:
    return tuple(word for word in words if word is not None)


class _Form:
    """The modifiers of all three."""

    def __init__(self, i: Instruction, e: Emitter, what: str, orders: tuple[str, ...]) -> None:
        words = Words(i, e)
        words.kind(what)
        self.order = words.one(*orders)
        self.scope = words.one(*_SCOPES)
        self.space = words.one("global")
        self.operation = None if what == "st" else words.kind(*_OPERATIONS)
        precision = words.one("acc::f32", "acc::f16") if what == "ld_reduce" else None
        self.vector = words.one(*_VECTORS)
        self.kind = words.kind(*_TYPES)
        words.end(2)
        if self.operation and self.kind not in _OPERATIONS[self.operation]:
            raise e.refuse(f".{self.operation} of .{self.kind}")
        if precision and self.kind not in (_HALVES if precision == "acc::f32" else _BYTES):
            raise e.refuse(f".{precision} of .{self.kind}")
        if self.vector and self.kind in (*_INTEGERS, "f64"):
            raise e.refuse(f".{self.vector} of .{self.kind}")


def _load(i: Instruction, e: Emitter) -> None:
    form = _Form(i, e, "ld_reduce", ("weak", "relaxed", "acquire"))
    words = _present(form.order, form.scope, form.space, form.vector, _raw(form.kind))
    loads_and_stores.TRANSLATIONS["ld"](replace(i, opcode="ld", modifiers=words), e)


def _store(i: Instruction, e: Emitter) -> None:
    form = _Form(i, e, "st", ("weak", "relaxed", "release"))
    words = _present(form.order, form.scope, form.space, form.vector, _raw(form.kind))
    loads_and_stores.TRANSLATIONS["st"](replace(i, opcode="st", modifiers=words), e)


def _reduce(i: Instruction, e: Emitter) -> None:
    form = _Form(i, e, "red", ("relaxed", "release"))
    if form.kind in _BYTES:
        raise e.refuse(f".red of .{form.kind}")
    if form.kind in _HALVES and form.operation != "add":
        raise e.refuse(f".{form.operation} of .{form.kind} in memory")
    rest = "noftz" if form.kind in _HALVES else None
    words = _present(
        form.order, form.scope or "sys", form.space, form.operation, rest, form.vector, form.kind
    )
    atomics.TRANSLATIONS["red"](replace(i, opcode="red", modifiers=words), e)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "multimem.ld_reduce": _load,
    "multimem.st": _store,
    "multimem.red": _reduce,
}
