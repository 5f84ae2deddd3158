"""The 32-bit instruction descriptor of tcgen05.mma (PTX ISA, "Instruction Descriptor").

It holds the shape, the element types, negation and which operands are stored MN-major. ptxas does
not look into it, so everything is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

BLOCK_SCALED: Final = ("mxf8f6f4", "mxf4", "mxf4nvf4")
KINDS: Final = ("f16", "tf32", "f8f6f4", "i8", *BLOCK_SCALED)

_NARROW: Final = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
# kind -> code -> element type of A and B
_INPUTS: Final[dict[str, dict[int, str]]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _NARROW,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _NARROW,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
# kind -> code -> element type of D
_OUTPUTS: Final[dict[str, dict[int, str]]] = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
# kind -> elements of K in one instruction
_DEPTH: Final = {
    "f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """A decoded descriptor.

    m, n, k        the whole instruction's, over both CTAs of a pair; k with the zeros of a sparse A
    a, b, d        element types: f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8; d: f16,
                   f32, s32
    packed         two elements of A and B in each byte, without padding
    transpose_a/b  stored MN-major
    selector       the column of the metadata of a sparse A
    scale          type of the block scale factors, ``ue8m0`` or ``ue4m3``, or None
    scale_a/b      the byte or half of its column that holds a scale factor
    problems       its errors, in words
    remarks        deviations that the PTX ISA allows and other sources do not
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    d: str
    packed: bool
    negate_a: bool
    negate_b: bool
    transpose_a: bool
    transpose_b: bool
    saturate: bool
    sparse: bool
    selector: int
    scale: str | None
    scale_a: int
    scale_b: int
    problems: tuple[str, ...]
    remarks: tuple[str, ...]


def _bits(value: int, low: int, count: int) -> int:
    return value >> low & (1 << count) - 1


@lru_cache(maxsize=256)
def decode(value: int, kind: str, group: int, ws: bool) -> InstructionDescriptor:
    """Decode for ``.kind::kind`` and ``.cta_group::group``; ``ws`` for tcgen05.mma.ws."""
    problems: list[str] = []
    remarks: list[str] = []
    scaled = kind in BLOCK_SCALED
    four = kind in ("mxf4", "mxf4nvf4")

    def element(table: dict[int, str], what: str, low: int, count: int) -> str:
        code = _bits(value, low, count)
        if code not in table:
            problems.append(f"type {code} of {what} does not exist for .kind::{kind}")
        return table.get(code, next(iter(table.values())))

    def zero(low: int, count: int) -> None:
        if _bits(value, low, count):
            last = low + count - 1
            where = f"bit {low} is" if count == 1 else f"bits {low} to {last} are"
            problems.append(f"{where} not zero")

    a = element(_INPUTS[kind], "A", 7, 3)
    b = element(_INPUTS[kind], "B", 10, 2 if four else 3)
    d = "f32" if scaled else element(_OUTPUTS[kind], "D", 4, 2)
    zero(6, 1)
    sparse = bool(_bits(value, 2, 1))
    if scaled:
        zero(0, 2)
        zero(3, 1)
        zero(24, 3)
    elif not sparse or kind in ("f8f6f4", "i8"):
        zero(0, 2)
    if four:
        zero(12, 1)
        zero(15, 2)
    if not scaled:
        zero(23, 1)
        zero(29, 1)
        if not ws:
            zero(30, 2)
        if kind != "i8":
            zero(3, 1)
        else:
            zero(13, 2)
    elif not four or value >> 31:
        zero(31, 1)
    m = _bits(value, 24, 5) << 4
    n = _bits(value, 17, 6) << 3
    problems += _shape_problems(kind, group, ws, sparse, m, n)
    if not problems and not ws and not scaled and group == 1 and m == 128 and n % 16:
        remarks.append(f"N = {n} with M = 128: the PTX ISA allows multiples of 8, CUTLASS only 16")
    depth = _DEPTH[kind]
    if d == "f16" and kind == "f16" and (a, b) != ("f16", "f16"):
        problems.append("D in f16 needs A and B in f16")
    bits_a, bits_b = _bits(value, 29, 2), _bits(value, 4, 2)
    if four and (bits_a % 2 or bits_b % 2):
        problems.append(f"scale factor ids {bits_a} and {bits_b}; 0 or 2")
    transpose_b = bool(_bits(value, 16, 1))
    step = 16 * group
    if transpose_b and kind in ("f8f6f4", "i8", "mxf8f6f4") and n % step:
        problems.append(f"N = {n} with a transposed B of 8-bit elements; multiples of {step}")
    scale = None
    if scaled:
        scale = "ue8m0" if _bits(value, 23, 1) else "ue4m3"
        if kind != "mxf4nvf4" and scale != "ue8m0":
            problems.append(f"scale factors in ue4m3 with .kind::{kind}")
    return InstructionDescriptor(
        m, n, depth * (1 + sparse), a, b, d, four,
        bool(_bits(value, 13, 1)), bool(_bits(value, 14, 1)),
        bool(_bits(value, 15, 1)), transpose_b,
        not scaled and bool(_bits(value, 3, 1)), sparse, _bits(value, 0, 2),
        scale, bits_a if scaled else 0, bits_b if scaled else 0,
        tuple(problems), tuple(remarks),
    )  # fmt: skip


def _shape_problems(
    kind: str, group: int, ws: bool, sparse: bool, m: int, n: int
) -> list[str]:  # fmt: skip
    """The errors in M and N, in words."""
    problems = []
    if ws:
        rows: tuple[int, ...] = (32, 64, 128)
    elif kind in BLOCK_SCALED and (group == 1 or sparse):
        rows = (128 * group,)
    else:
        rows = (64 * group, 128 * group)
    if m not in rows:
        problems.append(f"M = {m}; {' or '.join(map(str, rows))}")
    if ws:
        widths = (64, 128) if sparse else (64, 128, 256)
        if n not in widths:
            problems.append(f"N = {n}; {' or '.join(map(str, widths))}")
        return problems
    if kind == "i8" and group == 1:
        fits = n in (8, 24) or (n % 16 == 0 and n >= 16)
        what = "8, 16, 24, 32 and multiples of 16 from there"
    else:
        step = 32 if kind == "i8" else 8 * group
        fits = n % step == 0 and n >= step
        what = f"multiples of {step}"
    if not fits or n > 256:
        problems.append(f"N = {n}; {what} up to 256")
    return problems
