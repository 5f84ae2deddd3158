"""Floating-point arithmetic of single numbers (PTX ISA, "Floating Point" and "Half Precision").

Also the mixed-precision forms. Packed types are translated by ``packed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.modifiers import ROUNDINGS, Words, compute, compute_into
from fa4gen.emulator.instructions.scalar.rows import float_functions, ieee
from fa4gen.emulator.instructions.scalar.rows import float_operations as arithmetic
from fa4gen.emulator.instructions.scalar.rows.float_operations import Function, Style
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_KINDS: Final = ("f32", "f64", "f16", "bf16")


def _style(words: Words, e: Emitter, *kinds: str, relu: bool = False) -> Style:
    """Take rounding, .ftz, .sat, .relu and the type."""
    mode = words.one(*ROUNDINGS)
    kind = words.kind(*kinds)
    if kind in ("f16", "bf16") and mode not in (None, "rn"):
        raise e.refuse(f".{mode} of .{kind}")
    ftz = kind in ("f32", "f16") and words.has("ftz")
    saturated = kind in ("f32", "f16") and words.has("sat")
    positive = relu and kind in ("f16", "bf16") and words.has("relu")
    return Style(kind, mode or "rn", ftz, saturated, positive)


def _emit(i: Instruction, e: Emitter, name: str, style: Style, function: Function) -> None:
    """A function of operands of one type; the fast one if there is one."""
    kinds = [style.kind] * (len(i.operands) - 1)
    if style.kind == "f32" and style.plain:
        compute_into(e, arithmetic.INTO[name], "f32", i.operands[0], i.operands[1:], kinds)
    else:
        compute(e, function, style.kind, i.operands[0], i.operands[1:], kinds)


def _mixed(i: Instruction, e: Emitter, words: Words, narrow: str, style: Style) -> None:
    """Operands of a narrow type, and a float32 one in the last place; float32 arithmetic."""
    if style.ftz:
        raise e.refuse("mixed precision has no .ftz")
    name = i.opcode
    words.end(4 if name == "fma" else 3)
    function = arithmetic.fused(style) if name == "fma" else arithmetic.binary(name, style)

    def apply(*rows: Any) -> Any:
        return function(*(row.astype(np.float32) for row in rows))

    kinds = [narrow] * (len(i.operands) - 2) + ["f32"]
    compute(e, apply, "f32", i.operands[0], i.operands[1:], kinds)


def _binary(i: Instruction, e: Emitter) -> None:
    """Add, sub and mul."""
    words = Words(i, e)
    style = _style(words, e, *_KINDS)
    narrow = words.one("f16", "bf16") if style.kind == "f32" and i.opcode != "mul" else None
    if narrow is not None:
        _mixed(i, e, words, narrow, style)
        return
    words.end(3)
    _emit(i, e, i.opcode, style, arithmetic.binary(i.opcode, style))


def _fma(i: Instruction, e: Emitter) -> None:
    """fma, and mad of floating-point types, which is the same."""
    if "oob" in i.modifiers:
        raise e.refuse("which NaNs .oob takes for that of the fill mode is not documented")
    words = Words(i, e)
    kinds = _KINDS if i.opcode == "fma" else ("f32", "f64")
    style = _style(words, e, *kinds, relu=i.opcode == "fma")
    if not set(i.modifiers) & set(ROUNDINGS):
        raise e.refuse("a rounding mode was expected")
    narrow = words.one("f16", "bf16") if style.kind == "f32" and i.opcode == "fma" else None
    if narrow is not None:
        _mixed(i, e, words, narrow, style)
        return
    words.end(4)
    _emit(i, e, "fma", style, arithmetic.fused(style))


def extreme_of(words: Words, opcode: str, kind: str, three: bool) -> Function:
    """Take .ftz, .NaN and .xorsign.abs (three operands: .abs); the function of the rows."""
    largest = opcode == "max"
    ftz = kind in ("f32", "f16") and words.has("ftz")
    propagate = kind != "f64" and words.has("NaN")
    magnitude = kind == "f32" and three and words.has("abs")
    signs = kind != "f64" and not three and words.has("xorsign")
    if signs:
        words.kind("abs")
    if kind == "f32" and not (ftz or propagate or magnitude or signs):
        pair = arithmetic.extreme_f32(largest)
    else:
        pair = arithmetic.extreme(largest, propagate, signs)
        if kind != "f64":
            pair = Style(kind, ftz=ftz).apply(pair)
    if not three:
        return pair
    if magnitude:
        return lambda a, b, c: pair(pair(np.abs(a), np.abs(b)), np.abs(c))
    return lambda a, b, c: pair(pair(a, b), c)


def _extreme(i: Instruction, e: Emitter) -> None:
    """Min and max of two numbers, or of three float32."""
    words = Words(i, e)
    kind = words.kind(*_KINDS)
    count = len(i.operands) - 1
    function = extreme_of(words, i.opcode, kind, count == 3)
    words.end(*((3, 4) if kind == "f32" else (3,)))
    compute(e, function, kind, i.operands[0], i.operands[1:], [kind] * count)


def sign_function(opcode: str, kind: str, ftz: bool) -> Function:
    """Abs or neg, which only touch the sign bit; NaNs become canonical."""
    function = float_functions.absolute if opcode == "abs" else float_functions.negated
    return Style(kind, ftz=ftz).apply(function)


def _sign(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_KINDS)
    ftz = kind in ("f32", "f16") and words.has("ftz")
    words.end(2)
    d, a = i.operands
    if kind == "f32" and not ftz:
        compute_into(e, arithmetic.INTO[i.opcode], kind, d, [a], [kind])
    elif kind == "f64":
        function: Function = np.absolute if i.opcode == "abs" else float_functions.negate_f64
        compute(e, function, kind, d, [a], [kind])
    else:
        compute(e, sign_function(i.opcode, kind, ftz), kind, d, [a], [kind])


def _copysign(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind("f32", "f64")
    words.end(3)
    compute(e, float_functions.copy_sign, kind, i.operands[0], i.operands[1:], [kind, kind])


def _div(i: Instruction, e: Emitter) -> None:
    """Division with a rounding mode, or .full or .approx of float32."""
    words = Words(i, e)
    rough = words.one("approx", "full")
    mode = None if rough else words.kind(*ROUNDINGS)
    kind = words.kind("f32") if rough else words.kind("f32", "f64")
    style = Style(kind, mode or "rn", kind == "f32" and words.has("ftz"))
    words.end(3)
    function: Function
    if rough == "approx":
        function = style.apply(float_functions.divide_approximately)
    elif style.mode == "rn":
        function = style.apply(np.divide)
    else:
        function = style.apply(partial(ieee.divide, kind=kind, mode=style.mode))
    compute(e, function, kind, i.operands[0], i.operands[1:], [kind, kind])


def _root(i: Instruction, e: Emitter) -> None:
    """Rcp and sqrt, and rsqrt, which has approximate forms only."""
    words = Words(i, e)
    name = i.opcode
    rough = words.has("approx")
    mode = None if rough else words.kind(*(ROUNDINGS if name != "rsqrt" else ("approx",)))
    kind = words.kind("f32", "f64")
    ftz = words.has("ftz")
    words.end(2)
    function: Function
    if kind == "f64" and (rough or ftz):
        if not rough or name == "sqrt" or not (ftz or name == "rsqrt"):
            raise e.refuse("this form does not exist")
        exact = float_functions.RECIPROCALS[name]
        function = float_functions.coarse_f64(exact) if ftz else Style(kind).apply(exact)
    elif rough:
        function = Style(kind, ftz=ftz).apply(float_functions.APPROXIMATE[name])
    elif name == "rcp":
        function = Style(kind, ftz=ftz).apply(
            lambda a: ieee.divide(np.ones(1, a.dtype), a, kind, mode or "rn")
        )
    else:
        function = Style(kind, ftz=ftz).apply(
            partial(ieee.square_root, kind=kind, mode=mode or "rn")
        )
    compute(e, function, kind, i.operands[0], i.operands[1:], [kind])


def _transcendental(i: Instruction, e: Emitter) -> None:
    """Sin, cos and lg2 of float32; ex2 and tanh of all but float64."""
    words = Words(i, e)
    words.kind("approx")
    name = i.opcode
    kind = words.kind("f32", *(("f16", "bf16") if name in ("ex2", "tanh") else ()))
    # ex2 of bf16 only exists with .ftz
    ftz = (kind == "f32" and name != "tanh" and words.has("ftz")) or (
        kind == "bf16" and name == "ex2" and words.kind("ftz") == "ftz"
    )
    words.end(2)
    if name == "ex2" and kind == "f32":
        function = arithmetic.exponential_flushed_f32 if ftz else arithmetic.exponential_f32
        compute_into(e, function, kind, i.operands[0], i.operands[1:], [kind])
        return
    style = Style(kind, ftz=ftz)
    compute(
        e,
        style.apply(float_functions.APPROXIMATE[name]),
        kind,
        i.operands[0],
        i.operands[1:],
        [kind],
    )


def _testp(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    classify = float_functions.CLASSES[words.kind(*float_functions.CLASSES)]
    kind = words.kind("f32", "f64")
    words.end(2)
    compute(e, lambda a: classify(a, kind), "pred", i.operands[0], i.operands[1:], [kind])


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "add": _binary,
    "sub": _binary,
    "mul": _binary,
    "fma": _fma,
    "mad": _fma,
    "min": _extreme,
    "max": _extreme,
    "abs": _sign,
    "neg": _sign,
    "copysign": _copysign,
    "div": _div,
    "rcp": _root,
    "sqrt": _root,
    "rsqrt": _root,
    "sin": _transcendental,
    "cos": _transcendental,
    "lg2": _transcendental,
    "ex2": _transcendental,
    "tanh": _transcendental,
    "testp": _testp,
}
