"""``mma.sync``: products of small matrices held by the lanes of a warp (PTX ISA, "mma").

Products are added exactly and rounded once; the hardware adds in an order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma.layouts import (
    a_tile,
    accumulator_registers,
    accumulator_tile,
    b_tile,
    check_whole_warps,
    registers,
)
from fa4gen.emulator.instructions.mma.operand_tiles import values_of
from fa4gen.emulator.instructions.mma.products import added, sums_of_products, whole_sums
from fa4gen.emulator.instructions.scalar.rows.ieee import canonical, settled_f64
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter, Reader, Writer

_N: Final = 8
_LANES: Final = 32
_ELEMENT_BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f64": 64,
    "f32": 32, "s32": 32,
}  # fmt: skip
_HALF_SHAPES: Final = ("m16n8k8", "m16n8k16")
_BYTE_SHAPES: Final = ("m16n8k16", "m16n8k32")
# types of A and B -> shapes, types of the accumulator
_FORMS: Final[dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ("f16",): (_HALF_SHAPES, ("f32", "f16")),
    ("bf16",): (_HALF_SHAPES, ("f32",)),
    ("tf32",): (("m16n8k4", "m16n8k8"), ("f32",)),
    ("s8", "u8"): ((*_BYTE_SHAPES, "m8n8k16"), ("s32",)),
    ("e4m3", "e5m2"): (_BYTE_SHAPES, ("f32", "f16")),
    ("f64",): (("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",)),
}


@dataclass(frozen=True, slots=True)
class _Form:
    m: int
    k: int
    a: str
    b: str
    accumulator: str
    saturates: bool

    def count(self, kind: str, rows: int, columns: int) -> int:
        """Registers of a lane for a matrix."""
        return rows * columns * _ELEMENT_BITS[kind] // _LANES // max(32, _ELEMENT_BITS[kind])


def _parse(i: Instruction, e: Emitter) -> _Form:
    words = list(i.modifiers)
    if words[:2] != ["sync", "aligned"] or words[3:5] != ["row", "col"]:
        raise e.refuse("the form .sync.aligned.shape.row.col was expected")
    shape, rest = words[2], words[5:]
    saturates = rest[:1] == ["satfinite"]
    rest = rest[saturates:]
    if len(rest) != 4 or len(i.operands) != 4:
        raise e.refuse("four types and four operands were expected")
    d, a, b, c = rest
    for kinds, (shapes, accumulators) in _FORMS.items():
        if a in kinds and b in kinds and shape in shapes and d in accumulators and d == c:
            if saturates and d != "s32":
                raise e.refuse(".satfinite")
            m, k = shape[1:].split("n8k")
            return _Form(int(m), int(k), a, b, d, saturates)
    raise e.refuse("this combination of shape and types")


def _items(operand: Operand, count: int, e: Emitter) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector) or len(operand.items) != count:
        raise e.refuse(f"a vector of {count} registers was expected")
    return operand.items


def _raw(kind: str) -> Any:
    """The type of an element's bits."""
    return np.dtype(f"u{_ELEMENT_BITS[kind] // 8}")


def _numbers(raw: NDArray[Any], kind: str) -> NDArray[Any]:
    """Elements of A or B as float32, which holds them exactly; f64 as it is."""
    if kind == "f64":
        return raw.view(np.float64)
    values: NDArray[Any] = values_of(raw, kind)
    return values.astype(np.float32, copy=False)


def multiply_add(
    a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], saturates: bool
) -> NDArray[Any]:
    """``a b^T + c`` with the type of ``c``: (warps, m, n) from (warps, m, k) and (warps, n, k)."""
    if c.dtype == np.int32:
        total = whole_sums(a, b) + c
        if saturates:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return np.asarray(total.astype(np.int32))
    if c.dtype == np.float64:
        return _sums_f64(a, b, c)
    kind = "f16" if c.dtype == np.float16 else "f32"
    sums = added(c.astype(np.float32), sums_of_products(a, b))
    result: NDArray[Any] = canonical(sums.astype(c.dtype), kind)
    return result


def _sums_f64(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """Float64: product after product, from the first on, and ``c`` last."""
    total: NDArray[Any] = a[:, :, None, 0] * b[:, None, :, 0]
    for step in range(1, a.shape[2]):
        total = total + a[:, :, None, step] * b[:, None, :, step]
    return np.asarray(settled_f64(total + c))


def translate(i: Instruction, e: Emitter) -> None:
    """``mma.sync``."""
    form = _parse(i, e)
    m, k, kind = form.m, form.k, form.accumulator
    word_bits = 64 if kind == "f64" else 32
    word = np.dtype(f"u{word_bits // 8}")
    whole, bits = ("f64", 64) if kind == "f64" else (f"b{word_bits}", word_bits)
    accumulator_word = {"f16": "b32", "s32": "s32"}.get(kind, kind)
    c_dtype: Any = {"f16": np.float16, "s32": np.int32, "f32": np.float32, "f64": np.float64}[kind]
    counts = form.count(kind, m, _N), form.count(form.a, m, k), form.count(form.b, k, _N)
    d, a, b, c = i.operands
    writers: list[Writer] = [e.writer(item, accumulator_word) for item in _items(d, counts[0], e)]
    read_a: list[Reader] = [e.reader(item, whole) for item in _items(a, counts[1], e)]
    read_b: list[Reader] = [e.reader(item, whole) for item in _items(b, counts[2], e)]
    read_c = [e.reader(item, accumulator_word) for item in _items(c, counts[0], e)]
    c_word = np.uint32 if kind == "f16" else c_dtype
    a_word = np.float64 if bits == 64 else word

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        left = a_tile(registers(wg, read_a, a_word), _raw(form.a), m)
        right = b_tile(registers(wg, read_b, a_word), _raw(form.b))
        start = accumulator_tile(registers(wg, read_c, c_word), c_dtype, m)
        result = multiply_add(
            _numbers(left, form.a), _numbers(right, form.b), start, form.saturates
        )
        rows = accumulator_registers(result, kind == "f16")
        for write, row in zip(writers, rows, strict=True):
            write(wg, row[: wg.lanes], mask)

    e.call(handler)
