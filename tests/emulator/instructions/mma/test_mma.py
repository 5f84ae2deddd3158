"""``mma``: dense, sparse, of 4-bit and 1-bit integers, and four products of quads of lanes.

Operands are put into registers lane by lane, as the PTX ISA's formulas say; results are compared
with whole matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.emulator.instructions.tensor_cores import (
    TYPES,
    accumulators,
    dense,
    operand_registers,
    sparse_metadata,
    sparse_places,
)
from tests.emulator.kernel import launch, vector

FIRST, RESULT = 20, 40  # registers of operands and of D


def warp(text: str, parts: list[np.ndarray], count: int) -> tuple[np.ndarray, list[str]]:
    """``count`` registers from RESULT on, (32, count), after an instruction that reads ``parts``.

    The words of a lane, (32, registers) in each part, are in the registers from FIRST on.
    """
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1).T)
    bits = 8 * rows.itemsize
    letter, step = ("d", 256) if bits == 64 else ("r", 128)
    loads = "".join(
        f"ld.global.b{bits} %{letter}{FIRST + n}, [%d10+{step * n}];" for n in range(len(rows))
    )
    stores = "".join(
        f"st.global.b{bits} [%d11+{step * n}], %{letter}{RESULT + n};" for n in range(count)
    )
    body = f"""mov.u32 %r300, %tid.x; mul.wide.u32 %d12, %r300, {rows.itemsize};
    add.u64 %d10, %d0, %d12; add.u64 %d11, %d1, %d12; {loads} {text} {stores}"""
    out = np.zeros((count, 32), rows.dtype)
    report = launch(body, rows, out)
    return np.ascontiguousarray(out.T), [finding.kind for finding in report.findings]


def product(form: str, a: Any, b: Any, c: Any, metadata: Any = None, selector: int = 0) -> Any:
    """D of one mma, (m, 8), without findings: ``a`` (m, k), ``b`` (8, k), ``c`` (m, 8)."""
    held = accumulators(c)
    parts = [operand_registers(a, len(a)), operand_registers(b, 8)]
    parts.append(held.view(parts[0].dtype))
    names, at = [], FIRST
    for part in parts:
        names.append(vector(at, part.shape[1], "d" if part.itemsize == 8 else "r"))
        at += part.shape[1]
    count = parts[2].shape[1]
    if metadata is not None:
        parts.append(metadata[:, None])
        names.append(f"%r{at}, {selector}")
    result = vector(RESULT, count, "d" if held.itemsize == 8 else "r")
    found, kinds = warp(f"{form} {result}, {', '.join(names)};", parts, count)
    assert not kinds
    # who holds which element is what ``accumulators`` says of their numbers
    numbers = accumulators(np.arange(c.size).reshape(c.shape))
    whole = np.zeros(c.size, c.dtype)
    whole[numbers] = found.view(c.dtype)
    return whole.reshape(c.shape)


def numbers(rng: Any, kind: str, *shape: int) -> np.ndarray:
    """Small whole numbers, so that sums are exact in every type."""
    return rng.integers(0 if kind[0] == "u" else -4, 5, shape).astype(TYPES[kind])


@pytest.mark.parametrize(
    "form",
    [
        "m16n8k8.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.f16.f16.f32",
        "m16n8k8.row.col.f16.f16.f16.f16", "m16n8k16.row.col.f16.f16.f16.f16",
        "m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k4.row.col.f32.tf32.tf32.f32",
        "m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k16.row.col.s32.s8.u8.s32",
        "m16n8k32.row.col.s32.u8.u8.s32", "m8n8k16.row.col.s32.s8.s8.s32",
        "m16n8k16.row.col.f32.e5m2.e4m3.f32", "m16n8k32.row.col.f16.e4m3.e4m3.f16",
        "m8n8k4.row.col.f64.f64.f64.f64", "m16n8k4.row.col.f64.f64.f64.f64",
        "m16n8k8.row.col.f64.f64.f64.f64", "m16n8k16.row.col.f64.f64.f64.f64",
    ],
)  # fmt: skip
def test_products(form: str) -> None:
    shape, _, _, _, a_kind, b_kind, c_kind = form.split(".")
    m, k = int(shape[1:].split("n")[0]), int(shape.split("k")[1])
    rng = np.random.default_rng(k)
    a, b = numbers(rng, a_kind, m, k), numbers(rng, b_kind, 8, k)
    c = numbers(rng, c_kind, m, 8)
    wanted = a.astype(np.float64) @ b.astype(np.float64).T + c.astype(np.float64)
    found = product(f"mma.sync.aligned.{form}", a, b, c)
    np.testing.assert_array_equal(found, wanted.astype(c.dtype))


def test_sums_saturate_on_request() -> None:
    a, b = np.full((16, 32), 127, np.int8), np.full((8, 32), 127, np.int8)
    c = np.full((16, 8), 2**31 - 10, np.int32)
    form = "mma.sync.aligned.m16n8k32.row.col.{}s32.s8.s8.s32"
    assert (product(form.format("satfinite."), a, b, c) == 2**31 - 1).all()
    wrapped = (2**31 - 10 + 32 * 127 * 127) - 2**32
    assert (product(form.format(""), a, b, c) == wrapped).all()


def test_tf32_ignores_the_low_bits() -> None:
    a = np.full((16, 8), 1 + 2.0**-10 + 2.0**-11, np.float32)
    b, c = np.ones((8, 8), np.float32), np.zeros((16, 8), np.float32)
    got = product("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", a, b, c)
    assert (got == 8 * (1 + 2.0**-10)).all()


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
    packed = [(x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).astype(np.uint8) for x in (a, b)]
    form = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.{a_kind}.{b_kind}.s32"
    np.testing.assert_array_equal(product(form, *packed, c), a @ b.T + c)


@pytest.mark.parametrize(("m", "k"), [(8, 128), (16, 128), (16, 256)])
@pytest.mark.parametrize("operation", ["and", "xor"])
def test_single_bits(m: int, k: int, operation: str) -> None:
    rng = np.random.default_rng(k)
    a, b = rng.integers(0, 2, (m, k)), rng.integers(0, 2, (8, k))
    c = rng.integers(-100, 100, (m, 8)).astype(np.int32)
    packed = [np.packbits(x.astype(np.uint8), axis=1, bitorder="little") for x in (a, b)]
    form = f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{operation}.popc"
    pairs = a[:, None] & b if operation == "and" else a[:, None] ^ b
    np.testing.assert_array_equal(product(form, *packed, c), pairs.sum(axis=2) + c)


# ---- sparse A: shape, types, how many of four lanes share metadata, the selector


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("shape", "d_kind", "a_kind", "b_kind", "sharing", "selector"),
    [
        ("m16n8k16", "f32", "f16", "f16", 1, 2), ("m16n8k16", "f32", "bf16", "bf16", 1, 3),
        ("m16n8k32", "f32", "bf16", "bf16", 2, 0), ("m16n8k32", "f32", "f16", "f16", 2, 1),
        ("m16n8k8", "f32", "tf32", "tf32", 1, 1), ("m16n8k16", "f32", "tf32", "tf32", 2, 1),
        ("m16n8k64", "s32", "s8", "u8", 4, 0), ("m16n8k64", "f32", "e4m3", "e5m2", 4, 0),
        ("m16n8k32", "f16", "f16", "f16", 2, 1),
    ],
)  # fmt: skip
def test_sparse(
    shape: str, d_kind: str, a_kind: str, b_kind: str, sharing: int, selector: int, ordered: bool
) -> None:
    k = int(shape.split("k")[1])
    rng = np.random.default_rng(k + selector)
    places, codes = sparse_places(rng, 16, k, pairs=a_kind != "tf32", ordered=ordered)
    stored, b = numbers(rng, a_kind, 16, k // 2), numbers(rng, b_kind, 8, k)
    c = numbers(rng, d_kind, 16, 8)
    form = f"sync.aligned.{shape}.row.col.{d_kind}.{a_kind}.{b_kind}.{d_kind}"
    metadata = sparse_metadata(codes, sharing, selector, rng)
    variant = "sp::ordered_metadata" if ordered else "sp"
    found = product(f"mma.{variant}.{form}", stored, b, c, metadata, selector)
    wanted = dense(stored.astype(np.float64), places) @ b.astype(np.float64).T + c
    np.testing.assert_array_equal(found, wanted.astype(c.dtype))


@pytest.mark.parametrize(
    ("variant", "code", "wrong"),
    [("sp", 0b0101, True), ("sp", 0b0001, False), ("sp::ordered_metadata", 0b0001, True)],
)
def test_metadata_without_a_meaning_are_reported(variant: str, code: int, wrong: bool) -> None:
    words = np.zeros((32, 9), np.uint32)
    words[:, 8] = 0x44444444
    words[20, 8] = 0x44444440 | code
    text = f"""mma.{variant}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {vector(RESULT, 4)},
    {vector(FIRST, 2)}, {vector(FIRST + 2, 2)}, {vector(FIRST + 4, 4)}, %r{FIRST + 8}, 0;"""
    _, kinds = warp(text, [words], 4)
    assert ("illegal-instruction" in kinds) == wrong


# ---- four products of 8 by 8 by 4


def lanes_of(place: Callable[[int, int], tuple[int, ...]], matrix: np.ndarray, count: int) -> Any:
    """The elements of each lane, as words."""
    rows = [[matrix[place(lane, i)] for i in range(count)] for lane in range(32)]
    return np.array(rows, matrix.dtype).view(np.uint32)


@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize(("d", "c"), [("f32", "f32"), ("f16", "f16"), ("f32", "f16")])
def test_quads(a_layout: str, b_layout: str, d: str, c: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (4, 8, 4)).astype(np.float16)
    b = rng.integers(-3, 4, (4, 4, 8)).astype(np.float16)
    start = rng.integers(-9, 9, (4, 8, 8)).astype(TYPES[c])

    def a_place(lane: int, i: int) -> tuple[int, ...]:
        high = 4 * (lane >= 16)
        row, column = (lane % 4 + high, i) if a_layout == "row" else (i + high, lane % 4)
        return lane // 4 % 4, row, column

    def b_place(lane: int, i: int) -> tuple[int, ...]:
        high = 4 * (lane >= 16)
        row, column = (lane % 4, i + high) if b_layout == "row" else (i, lane % 4 + high)
        return lane // 4 % 4, row, column

    def c_place(kind: str, lane: int, i: int) -> tuple[int, ...]:
        high = 4 * (lane >= 16)
        if kind == "f16":
            return lane // 4 % 4, lane % 4 + high, i
        return lane // 4 % 4, (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    words = [
        lanes_of(a_place, a, 4), lanes_of(b_place, b, 4),
        lanes_of(lambda lane, i: c_place(c, lane, i), start, 8),
    ]  # fmt: skip
    count, given = (TYPES[kind](0).itemsize * 2 for kind in (d, c))
    text = f"""mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d}.f16.f16.{c}
    {vector(RESULT, count)}, {vector(FIRST, 2)}, {vector(FIRST + 2, 2)},
    {vector(FIRST + 4, given)};"""
    held, kinds = warp(text, words, count)
    assert not kinds
    values = held.view(TYPES[d])
    found = np.zeros((4, 8, 8))
    for lane in range(32):
        for i in range(8):
            found[c_place(d, lane, i)] = values[lane, i]
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b + start)
