"""Video instructions: 32-bit integers, pairs of 16 bits, quads of 8 (PTX ISA, "Video").

Results are worked out in 64 bits and cut to 32 at the end. Operands with selectors (``%r1.h0``) are
not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.modifiers import Words, compute
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_TYPES: Final = ("u32", "s32")
_COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "absdiff": lambda a, b: abs(a - b), "min": np.minimum,
    "max": np.maximum, "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}  # fmt: skip
_SECOND: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_SCALES: Final = {"shr7": 7, "shr15": 15}
_LONGEST_SHIFT: Final = 32


def _clamped(value: Any, bits: int, signed: bool) -> Any:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return np.clip(value, low, high)


def _word(value: Any) -> Any:
    """The low 32 bits."""
    return value.astype(np.uint64).astype(np.uint32)


def _scalar(
    i: Instruction, e: Emitter, words: Words, d: str, kinds: tuple[str, str],
    operation: Callable[..., Any], saturated: bool,
) -> None:  # fmt: skip
    """Emit an operation on two numbers, and a second one with a third number."""
    second = words.one(*_SECOND)
    words.end(4 if second else 3)

    def apply(a: Any, b: Any, *c: Any) -> Any:
        value = operation(a.astype(np.int64), b.astype(np.int64))
        if saturated:
            value = _clamped(value, 32, d == "s32")
        if second:
            value = _SECOND[second](value, c[0].astype(np.int64))
        return _word(value)

    types = (*kinds, d) if second else kinds
    compute(e, apply, "b32", i.operands[0], i.operands[1:], types)


def _plain(i: Instruction, e: Emitter) -> None:
    """vadd, vsub, vabsdiff, vmin and vmax."""
    words = Words(i, e)
    d, *kinds = (words.kind(*_TYPES) for _ in range(3))
    saturated = words.has("sat")
    operation = _OPERATIONS[i.opcode[1:]]
    _scalar(i, e, words, d, (kinds[0], kinds[1]), operation, saturated)


def _compare(i: Instruction, e: Emitter) -> None:
    """vset: 1 or 0."""
    words = Words(i, e)
    kinds = words.kind(*_TYPES), words.kind(*_TYPES)
    test = _COMPARISONS[words.kind(*_COMPARISONS)]
    _scalar(i, e, words, "u32", kinds, lambda a, b: test(a, b).astype(np.int64), False)


def _shift(i: Instruction, e: Emitter) -> None:
    """Vshl and vshr."""
    words = Words(i, e)
    d, kind = words.kind(*_TYPES), words.kind(*_TYPES)
    if words.kind(*_TYPES) != "u32":
        raise e.refuse("the count is .u32")
    saturated = words.has("sat")
    wraps = words.kind("clamp", "wrap") == "wrap"
    left = i.opcode == "vshl"
    if left and saturated:
        raise e.refuse("how many bits a left shift keeps before .sat is not documented")

    def operation(a: Any, b: Any) -> Any:
        count = b & 31 if wraps else np.minimum(b, _LONGEST_SHIFT)
        return a << count if left else a >> count

    _scalar(i, e, words, d, (kind, "u32"), operation, saturated)


def _multiply(i: Instruction, e: Emitter) -> None:
    """vmad, without negated operands."""
    words = Words(i, e)
    words.kind(*_TYPES)
    kinds = words.kind(*_TYPES), words.kind(*_TYPES)
    one, saturated = int(words.has("po")), words.has("sat")
    scale = words.one(*_SCALES)
    words.end(4)
    signed = "s32" in kinds
    wide: Any = np.int64 if signed else np.uint64
    shift = wide(_SCALES[scale] if scale else 0)

    def apply(a: Any, b: Any, c: Any) -> Any:
        total = (a.astype(wide) * b.astype(wide) + c.astype(wide) + wide(one)) >> shift
        return _word(_clamped(total, 32, signed) if saturated else total)

    third = "s32" if signed else "u32"
    compute(e, apply, "b32", i.operands[0], i.operands[1:], (*kinds, third))


def _lanes(word: Any, count: int, signed: bool) -> Any:
    """The parts of words, low bits first: (parts, words)."""
    bits = 32 // count
    places = (np.arange(count) * bits)[:, None]
    parts = word.astype(np.int64) >> places & (1 << bits) - 1
    return parts - (parts >> bits - 1 << bits) if signed else parts


def _parts(i: Instruction, e: Emitter) -> None:
    """The instructions on two or four parts; with .add their sum and a third number."""
    words = Words(i, e)
    name, count = i.opcode[1:-1], int(i.opcode[-1])
    test = name == "set"
    d = "u32" if test else words.kind(*_TYPES)
    kinds = words.kind(*_TYPES), words.kind(*_TYPES)
    if test:
        compared = _COMPARISONS[words.kind(*_COMPARISONS)]
    operation = compared if test else _OPERATIONS[name]
    saturated, adds = words.has("sat"), words.has("add")
    words.end(4)
    if saturated and (adds or test):
        raise e.refuse(".sat with a comparison or with .add")
    bits = 32 // count

    def apply(a: Any, b: Any, c: Any) -> Any:
        left, right = (
            _lanes(word, count, kind == "s32") for word, kind in zip((a, b), kinds, strict=True)
        )
        values = operation(left, right).astype(np.int64)
        if adds:
            return _word(values.sum(axis=0) + c.astype(np.int64))
        if saturated:
            values = _clamped(values, bits, d == "s32")
        places = (np.arange(count) * bits)[:, None]
        return _word(((values & (1 << bits) - 1) << places).sum(axis=0))

    compute(e, apply, "b32", i.operands[0], i.operands[1:], ("b32", "b32", "b32"))


_SIMD: Final = ("add", "sub", "avrg", "absdiff", "min", "max", "set")
TRANSLATIONS: Final[Mapping[str, Translate]] = {
    **{f"v{name}": _plain for name in ("add", "sub", "absdiff", "min", "max")},
    **{f"v{name}{count}": _parts for name in _SIMD for count in (2, 4)},
    "vset": _compare,
    "vshl": _shift,
    "vshr": _shift,
    "vmad": _multiply,
}
