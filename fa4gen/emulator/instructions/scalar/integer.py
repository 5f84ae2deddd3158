"""Integer arithmetic (PTX ISA, "Integer Arithmetic" and "Extended-Precision" instructions)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.scalar.modifiers import INTEGERS, Words, compute, keys
from fa4gen.emulator.instructions.scalar.rows import integer_operations as arithmetic
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_WIDE: Final = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_CARRYING: Final = ("u32", "s32", "u64", "s64")


def _ufunc(function: str) -> Translate:
    """A two-operand instruction that is a NumPy ufunc."""

    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        kind = words.kind(*INTEGERS)
        words.end(3)
        d, a, b = i.operands
        e.ufunc(function, kind, d, e.get(a, kind), e.get(b, kind))

    return translate


def _function(function: Callable[..., Any], count: int, *kinds: str) -> Translate:
    """``count`` operands of the instruction's type, and a result of that type."""

    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        kind = words.kind(*kinds)
        words.end(count + 1)
        compute(e, function, kind, i.operands[0], i.operands[1:], [kind] * count)

    return translate


def _saturating(function: Callable[..., Any]) -> Translate:
    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        words.kind("sat")
        words.kind("s32")
        words.end(3)
        compute(e, function, "s32", i.operands[0], i.operands[1:], ["s32", "s32"])

    return translate


def _halves(function: Callable[..., Any], signed: bool) -> Callable[..., Any]:
    """An operation on the two 16-bit halves of 32-bit words."""
    dtype = np.int16 if signed else np.uint16

    def apply(a: Any, b: Any) -> Any:
        x = np.atleast_1d(a).view(dtype).reshape(-1, 2)
        y = np.atleast_1d(b).view(dtype).reshape(-1, 2)
        return np.ascontiguousarray(function(x, y)).view(np.uint32)[:, 0]

    return apply


def _paired(function: Callable[..., Any]) -> Translate:
    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        kind = words.kind("u16x2", "s16x2")
        relu = kind == "s16x2" and function is not np.add and words.has("relu")
        words.end(3)
        apply = _halves(_with_relu(function) if relu else function, kind == "s16x2")
        compute(e, apply, "b32", i.operands[0], i.operands[1:], ["b32", "b32"])

    return translate


def _with_relu(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: np.maximum(function(a, b), 0)


def _relu(function: Callable[..., Any]) -> Translate:
    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        words.kind("relu")
        kind = words.kind("s32")
        words.end(3)
        compute(e, _with_relu(function), kind, i.operands[0], i.operands[1:], [kind] * 2)

    return translate


def _mul_wide(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("wide")
    kind = words.kind(*_WIDE)
    words.end(3)
    d, a, b = i.operands
    compute(e, arithmetic.multiply_wide, _WIDE[kind], d, (a, b), (kind, kind))


def _mul_lo(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("lo")
    kind = words.kind(*INTEGERS)
    words.end(3)
    d, a, b = i.operands
    e.ufunc("multiply", kind, d, e.get(a, kind), e.get(b, kind))


def _mul_hi(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("hi")
    kind = words.kind(*INTEGERS)
    words.end(3)
    compute(e, arithmetic.multiply_high, kind, i.operands[0], i.operands[1:], (kind, kind))


def _mad(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    half = words.kind("lo", "hi", "wide")
    saturated = half == "hi" and words.has("sat")
    kind = words.kind("s32") if saturated else words.kind(*(_WIDE if half == "wide" else INTEGERS))
    words.end(4)
    d, a, b, c = i.operands
    if half == "lo":
        product = f"{e.name(np.multiply)}({e.get(a, kind)}, {e.get(b, kind)})"
        e.ufunc("add", kind, d, product, e.get(c, kind))
        return
    multiply = arithmetic.multiply_wide if half == "wide" else arithmetic.multiply_high
    result = _WIDE[kind] if half == "wide" else kind
    add: Callable[..., Any] = arithmetic.add_saturated if saturated else np.add
    compute(e, lambda x, y, z: add(multiply(x, y), z), result, d, (a, b, c), (kind, kind, result))


def _mul24(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    high = words.kind("lo", "hi") == "hi"
    kind = words.kind("u32", "s32")
    words.end(3)
    multiply = partial(arithmetic.multiply_24, high=high)
    compute(e, multiply, kind, i.operands[0], i.operands[1:], (kind, kind))


def _mad24(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    high = words.kind("lo", "hi") == "hi"
    saturated = high and words.has("sat")
    kind = words.kind("s32") if saturated else words.kind("u32", "s32")
    words.end(4)
    add: Callable[..., Any] = arithmetic.add_saturated if saturated else np.add
    compute(
        e,
        lambda a, b, c: add(arithmetic.multiply_24(a, b, high), c),
        kind,
        i.operands[0],
        i.operands[1:],
        [kind] * 3,
    )


def _sad(a: Any, b: Any, c: Any) -> Any:
    return c + arithmetic.absolute_difference(a, b)


def _counting(function: Callable[..., Any]) -> Translate:
    """Emit an operation on b32 or b64 with a 32-bit result."""

    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        kind = words.kind("b32", "b64")
        words.end(2)
        compute(e, function, "u32", i.operands[0], i.operands[1:], [kind])

    return translate


def _bfind(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    find = partial(arithmetic.find_highest, shift_amount=words.has("shiftamt"))
    kind = words.kind(*_CARRYING)
    words.end(2)
    compute(e, find, "u32", i.operands[0], i.operands[1:], [kind])


def _bfe(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_CARRYING)
    words.end(4)
    compute(e, arithmetic.extract_field, kind, i.operands[0], i.operands[1:], (kind, "u32", "u32"))


def _bfi(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind("b32", "b64")
    words.end(5)
    kinds = (kind, kind, "u32", "u32")
    compute(e, arithmetic.insert_field, kind, i.operands[0], i.operands[1:], kinds)


def _bmsk(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    wrap = words.kind("wrap", "clamp") == "wrap"
    words.kind("b32")
    words.end(3)
    make = partial(arithmetic.bit_mask, wrap=wrap)
    compute(e, make, "b32", i.operands[0], i.operands[1:], ("u32", "u32"))


def _szext(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    wrap = words.kind("wrap", "clamp") == "wrap"
    kind = words.kind("u32", "s32")
    words.end(3)
    extend = partial(arithmetic.extend, wrap=wrap)
    compute(e, extend, kind, i.operands[0], i.operands[1:], (kind, "u32"))


def _fns(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("b32")
    words.end(4)
    kinds = ("u32", "u32", "s32")
    compute(e, arithmetic.find_nth_set, "b32", i.operands[0], i.operands[1:], kinds)


def _dot(i: Instruction, e: Emitter) -> None:
    """dp4a and dp2a; the result is signed if an operand is, which makes no difference to bits."""
    words = Words(i, e)
    function: Callable[..., Any] = arithmetic.dot_bytes
    if i.opcode == "dp2a":
        function = partial(arithmetic.dot_halves, high=words.kind("lo", "hi") == "hi")
    left, right = words.kind("u32", "s32"), words.kind("u32", "s32")
    words.end(4)
    compute(e, function, "u32", i.operands[0], i.operands[1:], (left, right, "u32"))


_CARRY: Final = Attached[Warpgroup, NDArray[np.bool_]](lambda wg: np.zeros(wg.lanes, np.bool_))
"""The condition code's carry flag: one bool per lane."""


def _extended(i: Instruction, e: Emitter) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc and madc: unsigned arithmetic, whatever the type says."""
    words = Words(i, e)
    consumes = i.opcode in ("addc", "subc", "madc")
    multiplies = i.opcode in ("mad", "madc")
    high = multiplies and words.kind("lo", "hi") == "hi"
    produces = words.has("cc")
    kind = words.kind(*_CARRYING)
    words.end(4 if multiplies else 3)
    unsigned = f"u{kind[1:]}"
    kinds = [kind, kind] if multiplies else [unsigned]
    readers = [e.reader(o, k) for o, k in zip(i.operands[1:], (*kinds, unsigned), strict=True)]
    write = e.writer(i.operands[0], unsigned)
    step = (
        arithmetic.subtract_with_carry if i.opcode in ("sub", "subc") else arithmetic.add_with_carry
    )
    dtype = np.dtype(f"u{int(kind[1:]) // 8}")
    # nothing borrowed, nothing carried
    start = np.array([i.opcode == "sub"])

    def handle(wg: Warpgroup, mask: Mask) -> None:
        values = [np.atleast_1d(read(wg)) for read in readers]
        if multiplies:
            a, b = values[:2]
            product = arithmetic.multiply_high(a, b) if high else a * b
            values = [product.view(dtype), values[2]]
        row = _CARRY.of(wg)
        result, carry = step(values[0], values[1], row if consumes else start)
        write(wg, np.broadcast_to(result, wg.lanes), mask)
        if produces:
            np.copyto(row, carry, where=True if mask is None else mask)

    e.call(handle)


_UFUNCS: Final = {
    "add": "add",
    "sub": "subtract",
    "min": "minimum",
    "max": "maximum",
}

TRANSLATIONS: Final[Mapping[str, Translate]] = {
    **{key: _ufunc(name) for opcode, name in _UFUNCS.items() for key in keys(opcode, INTEGERS)},
    "add.sat.s32": _saturating(arithmetic.add_saturated),
    "sub.sat.s32": _saturating(arithmetic.subtract_saturated),
    "add.u16x2": _paired(np.add),
    "add.s16x2": _paired(np.add),
    **dict.fromkeys(keys("min", ["u16x2", "s16x2", "relu.s16x2"]), _paired(np.minimum)),
    **dict.fromkeys(keys("max", ["u16x2", "s16x2", "relu.s16x2"]), _paired(np.maximum)),
    "min.relu.s32": _relu(np.minimum),
    "max.relu.s32": _relu(np.maximum),
    "mul.lo": _mul_lo,
    "mul.hi": _mul_hi,
    "mul.wide": _mul_wide,
    "mad.lo": _mad,
    "mad.hi": _mad,
    "mad.wide": _mad,
    "mul24": _mul24,
    "mad24": _mad24,
    "sad": _function(_sad, 3, *INTEGERS),
    **dict.fromkeys(keys("div", INTEGERS), _function(arithmetic.divide, 2, *INTEGERS)),
    "rem": _function(arithmetic.remainder, 2, *INTEGERS),
    **dict.fromkeys(keys("abs", ["s16", "s32", "s64"]), _function(np.abs, 1, *INTEGERS)),
    **dict.fromkeys(keys("neg", ["s16", "s32", "s64"]), _function(np.negative, 1, *INTEGERS)),
    "popc": _counting(np.bitwise_count),
    "clz": _counting(arithmetic.count_leading_zeros),
    "brev": _function(arithmetic.reverse_bits, 1, "b32", "b64"),
    "bfind": _bfind,
    "bfe": _bfe,
    "bfi": _bfi,
    "bmsk": _bmsk,
    "szext": _szext,
    "fns": _fns,
    "dp4a": _dot,
    "dp2a": _dot,
    "add.cc": _extended,
    "addc": _extended,
    "sub.cc": _extended,
    "subc": _extended,
    **dict.fromkeys(keys("mad", ["lo.cc", "hi.cc"]), _extended),
    "madc": _extended,
}
