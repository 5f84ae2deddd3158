"""Floating-point arithmetic of pairs (f16x2, bf16x2, f32x2): ``floating_point`` twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.floating_point import extreme_of, sign_function
from fa4gen.emulator.instructions.scalar.modifiers import ROUNDINGS, Words, compute, keys
from fa4gen.emulator.instructions.scalar.rows import float_functions
from fa4gen.emulator.instructions.scalar.rows import float_operations as arithmetic
from fa4gen.emulator.instructions.scalar.rows.float_operations import Function, Style
from fa4gen.emulator.instructions.scalar.rows.ieee import DTYPES
from fa4gen.emulator.ptx.syntax import Instruction, Register, Sink
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_HALVES: Final = ("f16x2", "bf16x2")


def _halves(function: Function, kind: str) -> Function:
    """The function of both parts of words (scalars too)."""
    dtype = DTYPES[kind]
    word = np.uint64 if kind == "f32" else np.uint32

    def apply(*rows: Any) -> Any:
        parts = [np.atleast_1d(row).view(dtype).reshape(-1, 2) for row in rows]
        return np.ascontiguousarray(function(*parts)).view(word)[:, 0]

    return apply


def _emit(i: Instruction, e: Emitter, kind: str, function: Function) -> None:
    bits = "b64" if kind == "f32" else "b32"
    count = len(i.operands) - 1
    compute(e, _halves(function, kind), bits, i.operands[0], i.operands[1:], [bits] * count)


def _into(i: Instruction, e: Emitter, function: Function) -> bool:
    """The plain f32x2 operations over whole rows of registers, without copies."""
    d, *sources = i.operands
    if e.masked or isinstance(d, Sink) or not all(isinstance(s, Register) for s in sources):
        return False

    def words(*rows: Any) -> Any:
        *inputs, out = (None if row is None else row.view(np.float32) for row in rows)
        result = function(*inputs, out)
        return result.view(np.uint64)

    if e.elementwise(words, "b64", d, sources, ["b64"] * len(sources), into=True):
        return True
    view = f".view({e.name(np.dtype(np.float32))})"
    texts = [e.get(source, "b64") + view for source in sources]
    e.line(f"{e.name(function)}({', '.join(texts)}, {e.target(d, 'b64')}{view})")
    return True


def _arithmetic(i: Instruction, e: Emitter) -> None:
    """Add, sub, mul and fma."""
    words = Words(i, e)
    mode = words.one(*ROUNDINGS)
    kind = words.kind(*_HALVES, "f32x2").removesuffix("x2")
    fused = i.opcode == "fma"
    if (kind != "f32" and mode not in (None, "rn")) or (fused and mode is None):
        raise e.refuse("this rounding mode does not exist here")
    ftz = kind != "bf16" and words.has("ftz")
    saturated = kind == "f16" and words.has("sat")
    relu = fused and kind != "f32" and not saturated and words.has("relu")
    words.end(4 if fused else 3)
    style = Style(kind, mode or "rn", ftz, saturated, relu)
    if kind == "f32" and style.plain and _into(i, e, arithmetic.INTO[i.opcode]):
        return
    function = arithmetic.fused(style) if fused else arithmetic.binary(i.opcode, style)
    if kind == "f32" and style.plain and fused:
        plain = arithmetic.INTO["fma"]
        _emit(i, e, kind, lambda a, b, c: plain(a, b, c, None))
        return
    _emit(i, e, kind, function)


def _extreme(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_HALVES).removesuffix("x2")
    function = extreme_of(words, i.opcode, kind, three=False)
    words.end(3)
    _emit(i, e, kind, function)


def _sign(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_HALVES).removesuffix("x2")
    ftz = kind == "f16" and words.has("ftz")
    words.end(2)
    _emit(i, e, kind, sign_function(i.opcode, kind, ftz))


def _transcendental(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("approx")
    kind = words.kind(*_HALVES).removesuffix("x2")
    ftz = kind == "bf16" and i.opcode == "ex2" and words.kind("ftz") == "ftz"
    words.end(2)
    _emit(i, e, kind, Style(kind, ftz=ftz).apply(float_functions.APPROXIMATE[i.opcode]))


_FTZ: Final = ("", "ftz")
_ROUNDED: Final = (("", *ROUNDINGS), _FTZ, ("", "sat"), (*_HALVES, "f32x2"))

TRANSLATIONS: Final[Mapping[str, Translate]] = {
    **{key: _arithmetic for opcode in ("add", "sub", "mul") for key in keys(opcode, *_ROUNDED)},
    **dict.fromkeys(
        keys("fma", ROUNDINGS, _FTZ, ("", "sat", "relu"), (*_HALVES, "f32x2")), _arithmetic
    ),
    **{
        key: _extreme
        for opcode in ("min", "max")
        for key in keys(opcode, _FTZ, ("", "NaN"), ("", "xorsign.abs"), _HALVES)
    },
    **{key: _sign for opcode in ("abs", "neg") for key in keys(opcode, _FTZ, _HALVES)},
    **{
        key: _transcendental
        for opcode in ("ex2", "tanh")
        for key in keys(opcode, ("approx",), _FTZ, _HALVES)
    },
}
