"""``mma.sync``: products of small matrices held by the lanes of a warp (PTX ISA, "mma").

Products are added exactly and rounded once; the hardware adds in an order of its own. ``mma.sp``
has a sparse A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma import quads, sparsity
from fa4gen.emulator.instructions.mma.layouts import (
    a_tile,
    accumulator_registers,
    accumulator_tile,
    b_tile,
    check_whole_warps,
    elements,
    registers,
)
from fa4gen.emulator.instructions.mma.operand_tiles import values_of
from fa4gen.emulator.instructions.mma.products import added, sums_of_products, whole_sums
from fa4gen.emulator.instructions.scalar.rows.ieee import canonical, settled_f64
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Operand, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter, Reader, Writer

_N: Final = 8
_LANES: Final = 32
_ELEMENT_BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f64": 64,
    "f32": 32, "s32": 32, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
_NARROW: Final = ("s4", "u4", "b1")
_HALF_SHAPES: Final = ("m16n8k8", "m16n8k16")
_BYTE_SHAPES: Final = ("m16n8k16", "m16n8k32")
# types of A and B -> shapes, types of the accumulator
_FORMS: Final[dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ("f16",): (_HALF_SHAPES, ("f32", "f16")),
    ("bf16",): (_HALF_SHAPES, ("f32",)),
    ("tf32",): (("m16n8k4", "m16n8k8"), ("f32",)),
    ("s8", "u8"): ((*_BYTE_SHAPES, "m8n8k16"), ("s32",)),
    ("s4", "u4"): (("m8n8k32", "m16n8k32", "m16n8k64"), ("s32",)),
    ("b1",): (("m8n8k128", "m16n8k128", "m16n8k256"), ("s32",)),
    ("e4m3", "e5m2"): (_BYTE_SHAPES, ("f32", "f16")),
    ("f64",): (("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",)),
}
_SPARSE: Final = ("sp", "sp::ordered_metadata")
_HALF_THREADS: Final = {"m16n8k16": 1, "m16n8k32": 2}
# types of A and B -> shapes and how many of four lanes have metadata, types of the accumulator
_SPARSE_FORMS: Final[dict[tuple[str, ...], tuple[dict[str, int], tuple[str, ...]]]] = {
    ("f16",): (_HALF_THREADS, ("f32", "f16")),
    ("bf16",): (_HALF_THREADS, ("f32",)),
    ("tf32",): ({"m16n8k8": 1, "m16n8k16": 2}, ("f32",)),
    ("s8", "u8"): ({"m16n8k64": 4}, ("s32",)),
    ("e4m3", "e5m2"): ({"m16n8k64": 4}, ("f32",)),
}
_IN_FIGURES: Final = {("s8", "u8"): ("m16n8k32",), ("s4", "u4"): ("m16n8k64", "m16n8k128")}


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers.

    ``bits`` is the operation on single bits; ``threads`` of each four lanes have metadata of a
    sparse A, the ``selector``-th such ones, with places ``ordered``; 0 for a dense A.
    """

    m: int
    k: int
    a: str
    b: str
    accumulator: str
    saturates: bool
    bits: str = ""
    threads: int = 0
    ordered: bool = False
    selector: int = 0

    @property
    def a_depth(self) -> int:
        """Elements of a row of A in registers."""
        return self.k // 2 if self.threads else self.k

    def count(self, kind: str, rows: int, columns: int) -> int:
        """Registers of a lane for a matrix."""
        return rows * columns * _ELEMENT_BITS[kind] // _LANES // max(32, _ELEMENT_BITS[kind])


def _parse(i: Instruction, e: Emitter) -> _Form:
    words = list(i.modifiers)
    variant = words.pop(0) if words[0] in _SPARSE else ""
    if words[:2] != ["sync", "aligned"] or words[3:5] != ["row", "col"]:
        raise e.refuse("the form .sync.aligned.shape.row.col was expected")
    shape, rest = words[2], words[5:]
    saturates = rest[:1] == ["satfinite"]
    rest = rest[saturates:]
    bits = ""
    if rest[-1:] == ["popc"]:
        bits = rest[-2]
        rest = rest[:-2]
    expected = 6 if variant else 4
    if len(rest) != 4 or len(i.operands) != expected:
        raise e.refuse(f"four types and {expected} operands were expected")
    d, a, b, c = rest
    if (bits in ("and", "xor")) != ((a, b) == ("b1", "b1")):
        raise e.refuse("single bits need .and.popc or .xor.popc, and nothing else has it")
    m, k = _shape(shape, e)
    if variant:
        threads, selector = _metadata(i, e, shape, (d, a, b, c))
        ordered = variant == "sp::ordered_metadata"
        form = _Form(m, k, a, b, d, saturates, bits, threads, ordered, selector)
    else:
        fits = (
            a in kinds and b in kinds and shape in shapes and d in accumulators and d == c
            for kinds, (shapes, accumulators) in _FORMS.items()
        )
        if not any(fits):
            raise e.refuse("this combination of shape and types")
        form = _Form(m, k, a, b, d, saturates, bits)
    if saturates and (d != "s32" or a == "b1"):
        raise e.refuse(".satfinite")
    return form


def _shape(shape: str, e: Emitter) -> tuple[int, int]:
    """M and K; N is always 8."""
    m, _, k = shape[1:].partition("n8k")
    if not m.isdigit() or not k.isdigit():
        raise e.refuse(f".{shape}")
    return int(m), int(k)


def _metadata(i: Instruction, e: Emitter, shape: str, types: tuple[str, ...]) -> tuple[int, int]:
    """The number of lanes in four that have the metadata of a sparse A, and their places."""
    d, a, b, c = types
    for kinds, (shapes, accumulators) in _SPARSE_FORMS.items():
        if a in kinds and b in kinds and shape in shapes and d in accumulators and d == c:
            break
    else:
        if any(a in kinds and shape in shapes for kinds, shapes in _IN_FIGURES.items()):
            raise e.refuse("which lanes have the metadata of which rows: the PTX ISA says that in "
                           "figures only")  # fmt: skip
        raise e.refuse("this combination of shape and types with a sparse A")
    threads, selector = shapes[shape], i.operands[5]
    if not isinstance(selector, Immediate) or not 0 <= selector.bits < 4 // threads:
        raise e.refuse(f"a sparsity selector below {4 // threads} was expected")
    return threads, selector.bits


def _items(operand: Operand, count: int, e: Emitter) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector) or len(operand.items) != count:
        raise e.refuse(f"a vector of {count} registers was expected")
    return operand.items


def _numbers(raw: NDArray[Any], kind: str) -> NDArray[Any]:
    """Elements of A or B as float32, which holds them exactly; f64 as it is."""
    if kind == "f64":
        return raw.view(np.float64)
    if kind in _NARROW:
        whole = raw.astype(np.float32)
        return whole - 16 * (whole >= 8) if kind == "s4" else whole
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
    if i.modifiers[2:3] == (quads.SHAPE,) and "f64" not in i.modifiers:
        quads.translate(i, e)
        return
    form = _parse(i, e)
    m, k, kind = form.m, form.k, form.accumulator
    word_bits = 64 if kind == "f64" else 32
    word = np.dtype(f"u{word_bits // 8}")
    whole, bits = ("f64", 64) if kind == "f64" else (f"b{word_bits}", word_bits)
    accumulator_word = {"f16": "b32", "s32": "s32"}.get(kind, kind)
    c_dtype: Any = {"f16": np.float16, "s32": np.int32, "f32": np.float32, "f64": np.float64}[kind]
    counts = (
        form.count(kind, m, _N), form.count(form.a, m, form.a_depth), form.count(form.b, k, _N)
    )  # fmt: skip
    d, a, b, c, *more = i.operands
    writers: list[Writer] = [e.writer(item, accumulator_word) for item in _items(d, counts[0], e)]
    read_a: list[Reader] = [e.reader(item, whole) for item in _items(a, counts[1], e)]
    read_b: list[Reader] = [e.reader(item, whole) for item in _items(b, counts[2], e)]
    read_c = [e.reader(item, accumulator_word) for item in _items(c, counts[0], e)]
    read_e = [e.reader(more[0], "b32")] if form.threads else []
    c_word = np.uint32 if kind == "f16" else c_dtype
    a_word = np.float64 if bits == 64 else word

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        left = a_tile(elements(registers(wg, read_a, a_word), _ELEMENT_BITS[form.a]), m)
        right = b_tile(elements(registers(wg, read_b, a_word), _ELEMENT_BITS[form.b]))
        if form.threads:
            left = _with_zeros(i, wg, mask, form, left, registers(wg, read_e, np.uint32)[0])
        start = accumulator_tile(registers(wg, read_c, c_word), c_dtype, m)
        numbers = _numbers(left, form.a), _numbers(right, form.b)
        if form.bits == "xor":
            result = start + _differing(*numbers)
        else:
            result = multiply_add(*numbers, start, form.saturates)
        rows = accumulator_registers(result, kind == "f16")
        for write, row in zip(writers, rows, strict=True):
            write(wg, row[: wg.lanes], mask)

    e.call(handler)


def _differing(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int32]:
    """The number of bits in which rows of A and B differ."""
    both = whole_sums(a, b)
    ones = a.sum(axis=-1)[..., :, None] + b.sum(axis=-1)[..., None, :]
    return np.asarray((ones - 2 * both).astype(np.int32))


def _with_zeros(
    site: Instruction, wg: Warpgroup, mask: Mask, form: _Form, tile: NDArray[Any], words: Any
) -> NDArray[Any]:
    """A with its zeros, from its elements and the metadata, a register of each lane."""
    codes = sparsity.lanes_codes(words, form.threads, form.selector)
    pairs = form.a != "tf32"
    if mask is None:
        wrong = sparsity.first_wrong(codes, sparsity.valid_codes(pairs, form.ordered))
        if wrong:
            wg.machine.find("illegal-instruction", wrong, site, wg, mask)
    return sparsity.expanded(tile, codes, pairs)
