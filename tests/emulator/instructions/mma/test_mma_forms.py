"""``mma`` of sparse matrices, of 4-bit and 1-bit integers, and four products of quads of lanes.

Operands are put into registers lane by lane, as the PTX ISA's formulas say; results are compared
with whole matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.kernel import kernel, run

LANES = range(32)
_E4M3, _E5M2, _BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16


def vector(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + n}" for n in range(count)) + "}"


def warp(text: str, rows: np.ndarray, count: int) -> tuple[np.ndarray, list[str]]:
    """``count`` registers from %r200 on, (32, count), after an instruction that reads ``rows``.

    Row n of those, a word of each lane, is in register n.
    """
    loads = "".join(f"ld.global.b32 %r{n}, [%d10+{128 * n}];" for n in range(len(rows)))
    stores = "".join(f"st.global.b32 [%d11+{128 * n}], %r{200 + n};" for n in range(count))
    body = f"""mov.u32 %r300, %tid.x; mul.wide.u32 %d12, %r300, 4;
    add.u64 %d10, %d0, %d12; add.u64 %d11, %d1, %d12; {loads} {text} {stores}"""
    out = np.zeros((count, 32), np.uint32)
    report = run(kernel(body, ("u64", "u64")), np.ascontiguousarray(rows), out)
    return out.T, [finding.kind for finding in report.findings]


def words(place: Callable[[int, int], Any], elements: int, bits: int) -> np.ndarray:
    """Registers, (registers, 32), of lanes that hold ``elements`` codes of so many bits."""
    per = 32 // bits
    found = np.zeros((elements // per, 32), np.uint32)
    for lane in LANES:
        for index in range(elements):
            code = int(place(lane, index)) & (1 << bits) - 1
            found[index // per, lane] |= np.uint32(code << bits * (index % per))
    return found


def fragment(matrix: np.ndarray, m: int, bits: int) -> np.ndarray:
    """Registers of A, codes (m, k), or of B transposed, (8, k) with ``m`` 8."""
    per, rows = 32 // bits, m // 8

    def place(lane: int, index: int) -> Any:
        register, part = divmod(index, per)
        row = lane // 4 + 8 * (register % rows)
        return matrix[row, lane % 4 * per + part + 4 * per * (register // rows)]

    return words(place, matrix.size // 32, bits)


def accumulator(matrix: np.ndarray) -> np.ndarray:
    return words(lambda t, i: matrix.view(np.uint32)[t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2],
                 matrix.size // 32, 32)  # fmt: skip


def from_accumulator(held: np.ndarray, dtype: Any) -> np.ndarray:
    result = np.zeros((held.shape[1] * 4, 8), dtype)
    for lane in LANES:
        for index in range(held.shape[1]):
            result[lane // 4 + 8 * (index // 2), lane % 4 * 2 + index % 2] = held[
                lane, index : index + 1
            ].view(dtype)[0]
    return result


def result_of(form: str, parts: list[np.ndarray], dtype: Any, tail: str = ""):
    """D of an mma whose operands' registers are ``parts``: A, B, C and more."""
    rows = np.concatenate(parts)
    names, at = [], 0
    for part in parts:
        names.append(vector(at, len(part)))
        at += len(part)
    count = len(parts[2])
    operands = ", ".join(names[:3]) + (f", %r{at - 1}{tail}" if tail else "")
    held, kinds = warp(f"mma.{form} {vector(200, count)}, {operands};", rows, count)
    return from_accumulator(held, dtype), kinds


# ---- 4-bit and 1-bit integers


@pytest.mark.parametrize(
    ("m", "k", "a_kind", "b_kind"),
    [(8, 32, "s4", "u4"), (16, 32, "u4", "s4"), (16, 64, "s4", "s4"), (16, 64, "u4", "u4")],
)
def test_four_bits(m: int, k: int, a_kind: str, b_kind: str) -> None:
    rng = np.random.default_rng(k)
    a, b = (
        rng.integers(-8 if kind[0] == "s" else 0, 8 if kind[0] == "s" else 16, (rows, k))
        for kind, rows in ((a_kind, m), (b_kind, 8))
    )
    c = rng.integers(-100, 100, (m, 8)).astype(np.int32)
    form = f"sync.aligned.m{m}n8k{k}.row.col.s32.{a_kind}.{b_kind}.s32"
    parts = [fragment(a, m, 4), fragment(b, 8, 4), accumulator(c)]
    found, kinds = result_of(form, parts, np.int32)
    assert not kinds
    np.testing.assert_array_equal(found, a @ b.T + c)


@pytest.mark.parametrize(("m", "k"), [(8, 128), (16, 128), (16, 256)])
@pytest.mark.parametrize("operation", ["and", "xor"])
def test_single_bits(m: int, k: int, operation: str) -> None:
    rng = np.random.default_rng(k)
    a, b = rng.integers(0, 2, (m, k)), rng.integers(0, 2, (8, k))
    c = rng.integers(-100, 100, (m, 8)).astype(np.int32)
    form = f"sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc"
    parts = [fragment(a, m, 1), fragment(b, 8, 1), accumulator(c)]
    found, kinds = result_of(form, parts, np.int32)
    assert not kinds
    pairs = a[:, None] & b if operation == "and" else a[:, None] ^ b
    np.testing.assert_array_equal(found, pairs.sum(axis=2) + c)


# ---- sparse A


def sparse_rows(rng, m: int, k: int, pairs: bool, ordered: bool):
    """(where elements are, codes of chunks): places (m, k / 2), codes (m, chunks)."""
    chunk = 4 if pairs else 2
    places, codes = np.zeros((m, k // 2), int), np.zeros((m, k // chunk), int)
    for row in range(m):
        for number in range(k // chunk):
            if pairs:
                two = rng.choice(4, 2, replace=False)
                if ordered:
                    two.sort()
                places[row, 2 * number : 2 * number + 2] = 4 * number + two
                codes[row, number] = two[0] | two[1] << 2
            else:
                second = rng.integers(2)
                places[row, number] = 2 * number + second
                codes[row, number] = 0b1110 if second else 0b0100
    return places, codes


def metadata(codes: np.ndarray, threads: int, selector: int, rng) -> np.ndarray:
    """A register of each lane; lanes that are not selected have noise."""
    found = rng.integers(0, 1 << 32, (1, 32), np.uint32)
    for lane in LANES:
        group, part = lane // 4, lane % 4
        if threads == 4:
            own = codes[group + 8 * (part % 2), 8 * (part // 2) : 8 * (part // 2) + 8]
        elif part // threads == selector:
            first = 4 * (part % threads)
            own = [*codes[group, first : first + 4], *codes[group + 8, first : first + 4]]
        else:
            continue
        found[0, lane] = sum(int(code) << 4 * n for n, code in enumerate(own))
    return found


SPARSE = [
    ("m16n8k16", "f16", "f16", np.float16, np.float16, 16, 1, 2),
    ("m16n8k16", "bf16", "bf16", _BF16, _BF16, 16, 1, 3),
    ("m16n8k32", "bf16", "bf16", _BF16, _BF16, 32, 2, 0),
    ("m16n8k32", "f16", "f16", np.float16, np.float16, 32, 2, 1),
    ("m16n8k8", "tf32", "tf32", np.float32, np.float32, 8, 1, 1),
    ("m16n8k16", "tf32", "tf32", np.float32, np.float32, 16, 2, 1),
    ("m16n8k64", "s8", "u8", np.int8, np.uint8, 64, 4, 0),
    ("m16n8k64", "e4m3", "e5m2", _E4M3, _E5M2, 64, 4, 0),
]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("case", SPARSE, ids=lambda case: f"{case[0]}.{case[1]}.{case[7]}")
def test_sparse(case, ordered: bool) -> None:
    shape, a_kind, b_kind, a_type, b_type, k, threads, selector = case
    rng = np.random.default_rng(k + selector)
    places, codes = sparse_rows(rng, 16, k, a_kind != "tf32", ordered)
    stored = rng.integers(-3, 4, (16, k // 2)).astype(a_type)
    b = rng.integers(0, 4, (8, k)).astype(b_type)
    whole = np.zeros((16, k))
    np.put_along_axis(whole, places, stored.astype(np.float64), axis=1)
    integer = a_kind == "s8"
    accumulated = np.int32 if integer else np.float32
    c = rng.integers(-9, 9, (16, 8)).astype(accumulated)
    bits = 8 * np.dtype(a_type).itemsize
    raw = np.dtype(f"u{bits // 8}")
    parts = [
        fragment(stored.view(raw), 16, bits), fragment(b.view(raw), 8, bits), accumulator(c),
        metadata(codes, threads, selector, rng),
    ]  # fmt: skip
    d = "s32" if integer else "f32"
    variant = "sp::ordered_metadata" if ordered else "sp"
    form = f"{variant}.sync.aligned.{shape}.row.col.{d}.{a_kind}.{b_kind}.{d}"
    found, kinds = result_of(form, parts, accumulated, f", {selector}")
    assert not kinds
    np.testing.assert_array_equal(found, whole @ b.astype(np.float64).T + c)


def test_a_sparse_product_in_half_precision() -> None:
    """Accumulators of f16: two to a register."""
    rng = np.random.default_rng(3)
    places, codes = sparse_rows(rng, 16, 32, True, True)
    stored, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((16, 16), (8, 32)))
    whole = np.zeros((16, 32))
    np.put_along_axis(whole, places, stored.astype(np.float64), axis=1)
    rows = np.concatenate([
        fragment(stored.view(np.uint16), 16, 16), fragment(b.view(np.uint16), 8, 16),
        np.zeros((2, 32), np.uint32), metadata(codes, 2, 1, rng),
    ])  # fmt: skip
    text = f"""mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {vector(200, 2)},
    {vector(0, 4)}, {vector(4, 4)}, {vector(8, 2)}, %r10, 1;"""
    held, kinds = warp(text, rows, 2)
    assert not kinds
    found = np.zeros((16, 8))
    halves = np.ascontiguousarray(held).view(np.float16)
    for lane in LANES:
        for index in range(4):
            found[lane // 4 + 8 * (index // 2), lane % 4 * 2 + index % 2] = halves[lane, index]
    np.testing.assert_array_equal(found, whole @ b.astype(np.float64).T)


@pytest.mark.parametrize(
    ("variant", "code", "wrong"),
    [("sp", 0b0101, True), ("sp", 0b0001, False), ("sp::ordered_metadata", 0b0001, True)],
)
def test_metadata_without_a_meaning_are_reported(variant: str, code: int, wrong: bool) -> None:
    rows = np.zeros((11, 32), np.uint32)
    rows[10] = 0x44444444
    rows[10, 20] = 0x44444440 | code
    text = f"""mma.{variant}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {vector(200, 4)},
    {vector(0, 2)}, {vector(2, 2)}, {vector(4, 4)}, %r10, 0;"""
    _, kinds = warp(text, rows, 4)
    assert ("illegal-instruction" in kinds) == wrong


# ---- four products of 8 by 8 by 4


@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize(("d", "c"), [("f32", "f32"), ("f16", "f16"), ("f32", "f16")])
def test_quads(a_layout: str, b_layout: str, d: str, c: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (4, 8, 4)).astype(np.float16)
    b = rng.integers(-3, 4, (4, 4, 8)).astype(np.float16)
    types = {"f16": np.float16, "f32": np.float32}
    start = rng.integers(-9, 9, (4, 8, 8)).astype(types[c])

    def a_place(lane: int, i: int) -> Any:
        high = 4 * (lane >= 16)
        row, column = (lane % 4 + high, i) if a_layout == "row" else (i + high, lane % 4)
        return a.view(np.uint16)[lane // 4 % 4, row, column]

    def b_place(lane: int, i: int) -> Any:
        high = 4 * (lane >= 16)
        row, column = (lane % 4, i + high) if b_layout == "row" else (i, lane % 4 + high)
        return b.view(np.uint16)[lane // 4 % 4, row, column]

    def c_place(kind: str, lane: int, i: int) -> tuple[int, int, int]:
        high = 4 * (lane >= 16)
        if kind == "f16":
            return lane // 4 % 4, lane % 4 + high, i
        return lane // 4 % 4, (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    bits = {"f16": 16, "f32": 32}
    raw = start.view(f"u{bits[c] // 8}")
    rows = np.concatenate([
        words(a_place, 4, 16), words(b_place, 4, 16),
        words(lambda lane, i: raw[c_place(c, lane, i)], 8, bits[c]),
    ])  # fmt: skip
    count, given = bits[d] // 4, bits[c] // 4
    text = f"""mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d}.f16.f16.{c} {vector(200, count)},
    {vector(0, 2)}, {vector(2, 2)}, {vector(4, given)};"""
    held, kinds = warp(text, rows, count)
    assert not kinds
    values = np.ascontiguousarray(held).view(types[d])
    found = np.zeros((4, 8, 8))
    for lane in LANES:
        for i in range(8):
            found[c_place(d, lane, i)] = values[lane, i]
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b + start)
