"""Logic, shifts, comparisons and selections (PTX ISA, "Logic and Shift", "Comparison")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.comparison import set_value, setp, slct
from fa4gen.emulator.instructions.scalar.modifiers import Words, arguments, compute
from fa4gen.emulator.instructions.scalar.rows.permutation import permute, permute_by
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Pair
from fa4gen.emulator.ptx.types import bits_of
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_LOGICAL: Final = ("pred", "b16", "b32", "b64")
_SHIFTED: Final = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
_SELECTED: Final = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


def _bitwise(function: str) -> Translate:
    def translate(i: Instruction, e: Emitter) -> None:
        words = Words(i, e)
        kind = words.kind(*_LOGICAL)
        words.end(3)
        d, a, b = i.operands
        e.ufunc(function, kind, d, e.get(a, kind), e.get(b, kind))

    return translate


def _not(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_LOGICAL)
    words.end(2)
    e.ufunc("invert", kind, i.operands[0], e.get(i.operands[1], kind))


def _cnot(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind("b16", "b32", "b64")
    words.end(2)
    compute(e, lambda a: a == 0, kind, i.operands[0], i.operands[1:], [kind])


def _shift(i: Instruction, e: Emitter) -> None:
    """Counts from the width of the type on shift everything out; NumPy sees to that too."""
    words = Words(i, e)
    left = i.opcode == "shl"
    kind = words.kind(*(_SHIFTED[:3] if left else _SHIFTED))
    words.end(3)
    d, a, b = i.operands
    bits = bits_of(kind)
    if isinstance(b, Immediate):
        # a constant of the value's own type spares NumPy a conversion
        count = Immediate("int", min(b.bits & 0xFFFFFFFF, bits if kind[0] != "s" else bits - 1))
        amount = e.get(count, kind)
    else:
        amount = e.get(b, "u32")
    e.ufunc("left_shift" if left else "right_shift", kind, d, e.get(a, kind), amount)


def _funnel(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    left = words.kind("l", "r") == "l"
    wrap = words.kind("wrap", "clamp") == "wrap"
    words.kind("b32")
    words.end(4)
    shift = partial(funnel_shift, left=left, wrap=wrap)
    compute(e, shift, "b32", i.operands[0], i.operands[1:], ("u32", "u32", "u32"))


def funnel_shift(low: Any, high: Any, count: Any, left: bool, wrap: bool) -> Any:
    """shf: the pair ``high:low`` shifted; its upper word (left) or lower one (right)."""
    count = count & np.uint32(31) if wrap else np.minimum(count, np.uint32(32))
    pair = (high.astype(np.uint64) << np.uint64(32)) | low
    if left:
        return ((pair << count.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    return (pair >> count.astype(np.uint64)).astype(np.uint32)


def table_expression(table: int, a: str, b: str, c: str) -> str:
    """The Python expression of a three-input function: bit ``4a + 2b + c`` of ``table``."""
    if table == 0:
        return f"{a} & ~{a}"
    if table == 255:
        return f"{a} | ~{a}"
    high, low = table >> 4, table & 15
    if high == low:
        return _of_two(high, b, c)
    if low == 0:
        return a if high == 15 else f"{a} & ({_of_two(high, b, c)})"
    if high == 15:
        return f"{a} | ({_of_two(low, b, c)})"
    if high == 0:
        return f"~{a}" if low == 15 else f"~{a} & ({_of_two(low, b, c)})"
    if low == 15:
        return f"~{a} | ({_of_two(high, b, c)})"
    if high == low ^ 15:
        return f"{a} ^ ({_of_two(low, b, c)})"
    return f"(({_of_two(high ^ low, b, c)}) & {a}) ^ ({_of_two(low, b, c)})"


def _of_two(table: int, b: str, c: str) -> str:
    """A function of ``b`` and ``c``: bit ``2b + c`` of ``table``, as an expression."""
    texts = {
        0: f"{b} ^ {b}", 1: f"~({b} | {c})", 2: f"~{b} & {c}", 3: f"~{b}",
        4: f"{b} & ~{c}", 5: f"~{c}", 6: f"{b} ^ {c}", 7: f"~({b} & {c})",
        8: f"{b} & {c}", 9: f"~({b} ^ {c})", 10: c, 11: f"~{b} | {c}",
        12: b, 13: f"{b} | ~{c}", 14: f"{b} | {c}", 15: f"{b} | ~{b}",
    }  # fmt: skip
    return texts[table]


def _lop3(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    joined = words.one("or", "and")
    words.kind("b32")
    words.end(5 if joined is None else 6)
    d = i.operands[0]
    table = i.operands[4]
    if not isinstance(table, Immediate) or not 0 <= table.bits <= 255:
        raise e.refuse("the table is a literal from 0 to 255")
    a, b, c = arguments(e, i.operands[1:4], ("b32", "b32", "b32"))
    text = table_expression(table.bits, a, b, c)
    if joined is None:
        if isinstance(d, Pair):
            raise e.refuse("a predicate destination without .or or .and")
        e.assign("b32", d, text)
        return
    if not isinstance(d, Pair):
        raise e.refuse("a predicate destination was expected")
    e.line(f"t = {text}")
    predicate = e.get(i.operands[5], "pred")
    e.assign("b32", d.first, "t")
    e.assign("pred", d.second, f"(t != 0) {'|' if joined == 'or' else '&'} {predicate}")


def _prmt(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("b32")
    mode = words.one("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    words.end(4)
    d, a, b, selector = i.operands
    function: Callable[..., Any]
    if isinstance(selector, Immediate):
        function = permute(selector.bits & 0xFFFFFFFF, mode)
        compute(e, function, "b32", d, (a, b), ("u32", "u32"))
    else:
        function = partial(permute_by, mode=mode)
        compute(e, function, "b32", d, (a, b, selector), ("u32", "u32", "u32"))


def _selp(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    kind = words.kind(*_SELECTED)
    words.end(4)
    d, a, b, condition = i.operands
    # moved as bits: NaNs stay as they are
    kind = f"b{bits_of(kind)}"
    where = e.name(np.where)
    e.assign(kind, d, f"{where}({e.get(condition, 'pred')}, {e.get(a, kind)}, {e.get(b, kind)})")


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "and": _bitwise("bitwise_and"),
    "or": _bitwise("bitwise_or"),
    "xor": _bitwise("bitwise_xor"),
    "not": _not,
    "cnot": _cnot,
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "lop3": _lop3,
    "prmt": _prmt,
    "setp": setp,
    "set": set_value,
    "selp": _selp,
    "slct": slct,
}
