"""setp, set and slct (PTX ISA, "Comparison and Selection")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from fa4gen.emulator.instructions.scalar.modifiers import Words, arguments, compute
from fa4gen.emulator.instructions.scalar.rows.ieee import flush
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Pair
from fa4gen.emulator.ptx.types import bits_of
from fa4gen.emulator.translate.emit import Emitter

_BITS: Final = ("b16", "b32", "b64")
_UNSIGNED: Final = ("u16", "u32", "u64")
_SIGNED: Final = ("s16", "s32", "s64")
_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_PACKED: Final = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}

_ORDERED: Final[dict[str, Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED_NAMES: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
# comparisons that hold for NaNs are the opposites of these
_UNORDERED: Final = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_ALL: Final = (*_ORDERED, *_UNSIGNED_NAMES, *_UNORDERED, "num", "nan")
_JOINS: Final = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name: str, kind: str, e: Emitter) -> Callable[[Any, Any], Any]:
    """Return the function of two rows for a comparison of a type; refuse what the type lacks."""
    if kind in _BITS:
        allowed: tuple[str, ...] = ("eq", "ne")
    elif kind in _UNSIGNED:
        allowed = (*_ORDERED, *_UNSIGNED_NAMES)
    elif kind in _SIGNED:
        allowed = tuple(_ORDERED)
    else:
        allowed = (*_ORDERED, *_UNORDERED, "num", "nan")
    if name not in allowed:
        raise e.refuse(f".{name} of .{kind}")
    if name == "ne" and kind not in (*_BITS, *_UNSIGNED, *_SIGNED):
        # in PTX only the unordered comparisons hold for NaNs; NumPy's != does too
        return lambda a, b: np.logical_or(np.less(a, b), np.greater(a, b))
    if name in _UNORDERED:
        if name == "neu":
            return np.not_equal
        opposite = comparison(_UNORDERED[name], kind, e)
        return lambda a, b: np.logical_not(opposite(a, b))
    if name == "num":
        return lambda a, b: np.logical_not(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    found: Callable[[Any, Any], Any] = _ORDERED[_UNSIGNED_NAMES.get(name, name)]
    return found


def flushing(function: Callable[[Any, Any], Any], kind: str) -> Callable[[Any, Any], Any]:
    """The comparison with subnormal operands taken as zeros."""
    return lambda a, b: function(flush(a, kind), flush(b, kind))


def _halves(function: Callable[[Any, Any], Any], kind: str) -> Callable[[Any, Any], Any]:
    """The comparison of both halves: shape (lanes, 2), lower half first."""
    dtype = _PACKED[kind]

    def compare(a: Any, b: Any) -> Any:
        x = np.atleast_1d(a).view(dtype).reshape(-1, 2)
        y = np.atleast_1d(b).view(dtype).reshape(-1, 2)
        return function(x, y)

    return compare


def _flush_of(words: Words, kind: str) -> bool:
    return kind in ("f32", "f16", "f16x2") and words.has("ftz")


def setp(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    name = words.kind(*_ALL)
    join = words.one(*_JOINS)
    kind = words.kind(*_BITS, *_UNSIGNED, *_SIGNED, *_FLOATS, *_PACKED)
    single = kind.removesuffix("x2") if kind in _PACKED else kind
    function = comparison(name, single, e)
    if _flush_of(words, kind):
        function = flushing(function, single)
    words.end(3 if join is None else 4)
    d, a, b = i.operands[:3]
    third = None if join is None else e.get(i.operands[3], "pred")
    joined = e.name(_JOINS[join]) if join is not None else ""
    if kind in _PACKED:
        _setp_packed(e, _halves(function, kind), d, (a, b), joined, third)
        return
    if isinstance(d, Pair):
        left, right = arguments(e, (a, b), (kind, kind))
        e.line(f"t = {e.name(function)}({left}, {right})")
        if third is None:
            first, second = "t", "~t"
        else:
            first, second = f"{joined}(t, {third})", f"{joined}(~t, {third})"
            # either destination may be the third operand
            e.line(f"t, u = {first}, {second}")
            first, second = "t", "u"
        e.assign("pred", d.first, first)
        e.assign("pred", d.second, second)
    elif third is not None:
        left, right = arguments(e, (a, b), (kind, kind))
        e.assign("pred", d, f"{joined}({e.name(function)}({left}, {right}), {third})")
    elif isinstance(function, np.ufunc):
        e.ufunc(function, "pred", d, e.get(a, kind), e.get(b, kind))
    else:
        compute(e, function, "pred", d, (a, b), (kind, kind))


def _setp_packed(
    e: Emitter,
    function: Callable[[Any, Any], Any],
    d: Operand,
    sources: tuple[Operand, Operand],
    joined: str,
    third: str | None,
) -> None:
    """Two destinations get the lower and the upper half's result; a single one is refused."""
    if not isinstance(d, Pair):
        raise e.refuse("packed comparisons have two destinations")
    left, right = arguments(e, sources, ("b32", "b32"))
    e.line(f"t = {e.name(function)}({left}, {right})")
    first, second = "t[:, 0]", "t[:, 1]"
    if third is not None:
        e.line(f"t, u = {joined}({first}, {third}), {joined}({second}, {third})")
        first, second = "t", "u"
    e.assign("pred", d.first, first)
    e.assign("pred", d.second, second)


def set_value(i: Instruction, e: Emitter) -> None:
    """set: all ones (integers) or 1.0 where the comparison holds, else 0."""
    words = Words(i, e)
    name = words.kind(*_ALL)
    join = words.one(*_JOINS)
    result = words.kind("u32", "s32", "f32", "u16", "s16", "f16", "bf16", "f16x2", "bf16x2")
    kind = words.kind(*_BITS, *_UNSIGNED, *_SIGNED, *_FLOATS, *_PACKED)
    if kind in _PACKED and result not in (kind, "u32", "s32"):
        raise e.refuse(f".{result} of .{kind}")
    if (result in _PACKED) != (kind in _PACKED and result == kind):
        raise e.refuse(f".{result} of .{kind}")
    single = kind.removesuffix("x2") if kind in _PACKED else kind
    function = comparison(name, single, e)
    if _flush_of(words, kind):
        function = flushing(function, single)
    words.end(3 if join is None else 4)
    third = [] if join is None else [i.operands[3]]
    combine = None if join is None else _JOINS[join]
    packed = kind in _PACKED
    compare = _halves(function, kind) if packed else function
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    bits = 16 if packed else bits_of(result)
    dtype = np.dtype(f"u{bits // 8}").type
    true = dtype(ones.get(result, (1 << bits) - 1))

    def value(a: Any, b: Any, *condition: Any) -> Any:
        holds = compare(a, b)
        if combine is not None:
            (other,) = condition
            holds = combine(holds, np.atleast_1d(other)[:, None] if packed else other)
        values = np.where(holds, true, dtype(0))
        return np.ascontiguousarray(values).view(np.uint32)[:, 0] if packed else values

    source = "b32" if packed else kind
    kinds = [source, source, *(["pred"] * len(third))]
    target = f"b{bits_of(result)}"
    compute(e, value, target, i.operands[0], [*i.operands[1:3], *third], kinds)


def slct(i: Instruction, e: Emitter) -> None:
    """The first operand where the third is at least zero (a NaN is not), else the second."""
    words = Words(i, e)
    kind = words.kind(*_BITS, *_UNSIGNED, *_SIGNED, "f32", "f64")
    # .dtype may be .f32 or .s32 as well as .ctype
    control = words.kind("s32", "f32")
    flushed = control == "f32" and words.has("ftz")
    words.end(4)
    moved = f"b{bits_of(kind)}"

    def select(a: Any, b: Any, c: Any) -> Any:
        return np.where((flush(c, "f32") if flushed else c) >= 0, a, b)

    compute(e, select, moved, i.operands[0], i.operands[1:], (moved, moved, control))
