"""The forms of wgmma.mma_async, decoded from modifiers and operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fa4gen.emulator.instructions.wgmma.products import Shape
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Operand, Vector
from fa4gen.emulator.translate.emit import Emitter, Reader

_DEPTH: Final = {
    "bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256,
}  # fmt: skip
_SIXTEEN: Final = ("bf16", "f16")
_INTEGERS: Final = ("s8", "u8", "b1")


@dataclass(frozen=True, slots=True)
class Form:
    """The shape, and readers of the operands but D.

    ``a`` is None where A is in registers, ``fragments``; ``metadata`` are those of a sparse A, of
    the ``selector``-th lanes.
    """

    shape: Shape
    a: Reader | None
    fragments: list[Reader]
    b: Reader
    accumulate: Reader
    sign: int
    transpose_a: bool
    transpose_b: bool
    metadata: Reader | None
    selector: int


def _shape(i: Instruction, e: Emitter) -> Shape:
    words = list(i.modifiers[1:])
    sparse = words[:1] == ["sp"]
    words = words[sparse:]
    if words[:2] != ["sync", "aligned"] or len(words) < 6:
        raise e.refuse("the form .sync.aligned.shape.d.a.b was expected")
    size, *types = words[2:]
    saturate = types[-1] == "satfinite"
    types = types[: len(types) - saturate]
    bits = types[-2:] == ["and", "popc"]
    types = types[:3] if bits else types
    n, _, k = size.removeprefix("m64n").partition("k")
    if not size.startswith("m64n") or not n.isdigit() or not k.isdigit() or len(types) != 3:
        raise e.refuse(f".{size}")
    shape = Shape(int(n), int(k), *_types(types, bits, e), saturate, _threads(types[1], sparse))
    if shape.k != _DEPTH[shape.a] * (1 + sparse) or (sparse and bits):
        raise e.refuse(f".{size} of .{shape.a}")
    columns = shape.n
    wide = shape.integer and columns > 32
    if not 8 <= columns <= 256 or columns % (16 if wide else 8):
        raise e.refuse(f"n = {columns}")
    if saturate and (not shape.integer or bits):
        raise e.refuse(".satfinite")
    return shape


def _types(types: list[str], bits: bool, e: Emitter) -> tuple[str, str, str]:
    """The types of A, B and D."""
    d, a, b = types
    same = a == b or {a, b} <= {"e4m3", "e5m2"} or {a, b} <= {"s8", "u8"}
    if a not in _DEPTH or b not in _DEPTH or not same or bits != (a == "b1"):
        raise e.refuse(f".{d}.{a}.{b}")
    legal = ("s32",) if a in _INTEGERS else ("f32",) if a in ("bf16", "tf32") else ("f32", "f16")
    if d not in legal:
        raise e.refuse(f".{d} accumulators of .{a}")
    return a, b, d


def _threads(a: str, sparse: bool) -> int:
    """The number of lanes in four that have metadata."""
    return 0 if not sparse else 2 if a in ("f16", "bf16", "tf32") else 4


def _flag(operand: Operand, e: Emitter, allowed: tuple[int, ...]) -> int:
    if not isinstance(operand, Immediate) or operand.bits not in allowed:
        raise e.refuse(f"an operand is none of {allowed}")
    return operand.bits


def read_form(i: Instruction, e: Emitter) -> Form:
    """Decode modifiers and operands; refuse those that are not modelled."""
    shape = _shape(i, e)
    _, a, b, *rest = i.operands
    metadata, selector = None, 0
    if shape.threads:
        metadata = e.reader(rest.pop(0), "b32")
        selector = _flag(rest.pop(0), e, tuple(range(4 // shape.threads)))
    scale_d, *rest = rest
    from_registers = isinstance(a, Vector)
    sixteen = shape.a in _SIXTEEN
    expected = 0 if shape.integer else 2 + (0 if not sixteen else 1 if from_registers else 2)
    if len(rest) != expected:
        raise e.refuse(f"{len(i.operands) - len(rest) + expected} operands were expected")
    sign = 1
    transpose_a = transpose_b = 0
    if not shape.integer:
        sign = _flag(rest[0], e, (1, -1)) * _flag(rest[1], e, (1, -1))
        if sixteen:
            transpose_b = _flag(rest[-1], e, (0, 1))
            transpose_a = 0 if from_registers else _flag(rest[2], e, (0, 1))
    if isinstance(scale_d, Immediate):
        _flag(scale_d, e, (0, 1))
    fragments: list[Reader] = []
    if isinstance(a, Vector):
        if len(a.items) != 4:
            raise e.refuse("A takes four registers")
        fragments = [e.reader(item, "b32") for item in a.items]
    return Form(
        shape, None if from_registers else e.reader(a, "b64"), fragments, e.reader(b, "b64"),
        e.reader(scale_d, "pred"), sign, bool(transpose_a), bool(transpose_b), metadata, selector,
    )  # fmt: skip
