"""Matrix fragments: what each lane holds, by the formulas of the PTX documentation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Report
from fa4gen.emulator.errors import EmulatorError
from tests.emulator.kernel import kernel, run

_HEAD = """
    mov.u32 %r300, %tid.x; mul.wide.u32 %d50, %r300, 4;
    add.u64 %d51, %d0, %d50; add.u64 %d52, %d1, %d50;
"""


def launch(body: str, source: Any, out: Any, block: int = 64, **options: Any) -> Report:
    text = kernel(
        _HEAD + body, ("u64", "u64"), shared=options.pop("shared", 0),
        target=options.pop("target", "sm_90a"),
    )  # fmt: skip
    return run(text, source, out, block=block, **options)


def names(first: int, count: int, letter: str = "r") -> str:
    return ", ".join(f"%{letter}{n}" for n in range(first, first + count))


# Two warps; rows of 16 bytes at places that a permutation scatters over shared memory.
_FILL = """
    mov.u32 %r280, %r300;
FILL:
    mul.wide.u32 %d53, %r280, 4; add.u64 %d53, %d0, %d53; ld.global.b32 %r281, [%d53];
    mad.lo.u32 %r282, %r280, 4, tile; st.shared.b32 [%r282], %r281;
    add.u32 %r280, %r280, 64; setp.lt.u32 %p1, %r280, 256; @%p1 bra FILL;
    bar.sync 0;
    mul.lo.u32 %r290, %r300, 37; and.b32 %r290, %r290, 63; mad.lo.u32 %r290, %r290, 16, tile;
"""


def matrices(table: np.ndarray, count: int) -> np.ndarray:
    """The matrices (warp, matrix, 8, 8) whose rows lanes 8 j + r point at."""
    lanes = np.arange(64).reshape(2, 32)[:, : 8 * count]
    return table.reshape(64, 8)[lanes * 37 % 64].reshape(2, count, 8, 8)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count: int, transposed: bool, generic: bool) -> None:
    table = np.random.default_rng(count).integers(0, 1 << 16, 512, np.uint16)
    out = np.zeros((count, 64), np.uint32)
    trans = ".trans" if transposed else ""
    space, address = ("", "%d54") if generic else (".shared", "%r290")
    stores = "".join(f"st.global.b32 [%d52+{256 * n}], %r{n};" for n in range(count))
    body = f"""{_FILL} cvt.u64.u32 %d54, %r290; cvta.shared.u64 %d54, %d54;
    ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{names(0, count)}}}, [{address}];
    {stores}"""
    report = launch(body, table.view(np.uint32), out, shared=1024)
    assert report.verdict.value == "clean", report
    held = out.view(np.uint16).reshape(count, 2, 32, 2)
    for warp, group in enumerate(matrices(table, count)):
        for index, matrix in enumerate(group):
            for lane in range(32):
                row, column = lane // 4, 2 * (lane % 4)
                pair = (
                    matrix[column : column + 2, row]
                    if transposed
                    else (matrix[row, column : column + 2])
                )
                np.testing.assert_array_equal(held[index, warp, lane], pair)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_undoes_ldmatrix(count: int, transposed: bool) -> None:
    """Through the same addresses 1 KiB further, the rows are where they were."""
    table = np.random.default_rng(count).integers(0, 1 << 32, 256, np.uint32)
    out = np.zeros(256, np.uint32)
    trans = ".trans" if transposed else ""
    body = f"""{_FILL}
    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names(0, count)}}}, [%r290];
    mad.lo.u32 %r291, %r300, 16, tile;
    st.shared.v4.b32 [%r291+1024], {{0, 0, 0, 0}}; bar.sync 0;
    stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r290+1024], {{{names(0, count)}}};
    bar.sync 0; ld.shared.v4.b32 {{{names(8, 4)}}}, [%r291+1024];
    mul.wide.u32 %d53, %r300, 16; add.u64 %d53, %d1, %d53;
    st.global.v4.b32 [%d53], {{{names(8, 4)}}};"""
    report = launch(body, table, out, shared=2048)
    assert report.verdict.value == "clean", report
    lanes = np.arange(64).reshape(2, 32)[:, : 8 * count].reshape(-1)
    wanted = np.zeros((64, 4), np.uint32)
    wanted[lanes * 37 % 64] = table.reshape(64, 4)[lanes * 37 % 64]
    np.testing.assert_array_equal(out.reshape(64, 4), wanted)


def test_movmatrix() -> None:
    table = np.random.default_rng(9).integers(0, 1 << 16, (2, 8, 8), np.uint16)
    out = np.zeros_like(table)
    body = """ld.global.b32 %r1, [%d51]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
    st.global.b32 [%d52], %r2;"""
    assert launch(body, table, out).verdict.value == "clean"
    np.testing.assert_array_equal(out, table.swapaxes(1, 2))


@pytest.mark.parametrize(
    ("address", "kind"), [("%r290+8", "misaligned"), ("%r290+1024", "out-of-bounds")]
)
def test_bad_rows(address: str, kind: str) -> None:
    body = f"{_FILL} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r1}}, [{address}];"
    report = launch(body, np.zeros(256, np.uint32), np.zeros(1), shared=1024)
    assert [finding.kind for finding in report.findings] == [kind]


def test_part_of_a_warp() -> None:
    body = "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;"
    report = launch(body, np.zeros(1), np.zeros(1), block=48)
    assert [finding.kind for finding in report.findings] == ["partial-warp"]


# ---- mma: (form, m, k, type of A, of B, of C)

_E4M3, _E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
_PRODUCTS = [
    ("m16n8k8.row.col.f32.f16.f16.f32", 16, 8, "f2", "f2", "f4"),
    ("m16n8k16.row.col.f32.f16.f16.f32", 16, 16, "f2", "f2", "f4"),
    ("m16n8k8.row.col.f16.f16.f16.f16", 16, 8, "f2", "f2", "f2"),
    ("m16n8k16.row.col.f16.f16.f16.f16", 16, 16, "f2", "f2", "f2"),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, ml_dtypes.bfloat16, ml_dtypes.bfloat16, "f4"),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, "f4", "f4", "f4"),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, "f4", "f4", "f4"),
    ("m16n8k16.row.col.s32.s8.u8.s32", 16, 16, "i1", "u1", "i4"),
    ("m16n8k32.row.col.s32.u8.u8.s32", 16, 32, "u1", "u1", "i4"),
    ("m8n8k16.row.col.s32.s8.s8.s32", 8, 16, "i1", "i1", "i4"),
    ("m16n8k16.row.col.f32.e5m2.e4m3.f32", 16, 16, _E5M2, _E4M3, "f4"),
    ("m16n8k32.row.col.f16.e4m3.e4m3.f16", 16, 32, _E4M3, _E4M3, "f2"),
    ("m8n8k4.row.col.f64.f64.f64.f64", 8, 4, "f8", "f8", "f8"),
    ("m16n8k4.row.col.f64.f64.f64.f64", 16, 4, "f8", "f8", "f8"),
    ("m16n8k8.row.col.f64.f64.f64.f64", 16, 8, "f8", "f8", "f8"),
    ("m16n8k16.row.col.f64.f64.f64.f64", 16, 16, "f8", "f8", "f8"),
]


def a_place(lane: int, index: int, m: int, per: int) -> tuple[int, int]:
    """Row and column of element ``index`` of a lane; ``per`` elements to a register."""
    register, part = divmod(index, per)
    rows = m // 8
    return lane // 4 + 8 * (register % rows), (lane % 4) * per + part + 4 * per * (register // rows)


def c_place(lane: int, index: int) -> tuple[int, int]:
    return lane // 4 + 8 * (index // 2), 2 * (lane % 4) + index % 2


def product(
    form: str, m: int, k: int, a: np.ndarray, b: np.ndarray, c: np.ndarray, words: str = ""
) -> np.ndarray:
    """Run one mma on a warp: a (m, k), b (k, 8), c (m, 8)."""
    size, wide = a.dtype.itemsize, a.dtype.itemsize == 8
    per = 1 if wide else 4 // size
    letter, bits = ("d", 64) if wide else ("r", 32)
    lanes = range(32)
    left = np.array([[a[a_place(t, i, m, per)] for i in range(m * k // 32)] for t in lanes])
    right = np.array([[b[a_place(t, i, 8, per)[::-1]] for i in range(k // 4)] for t in lanes])
    start = np.array([[c[c_place(t, i)] for i in range(m // 4)] for t in lanes])
    unit = np.uint64 if wide else np.uint32
    parts = [np.ascontiguousarray(x).view(unit) for x in (left, right, start)]
    data = np.ascontiguousarray(np.concatenate(parts, axis=1).T)
    counts = [part.shape[1] for part in parts]
    first = 60 if not wide else 10
    size = bits // 8
    loads = "".join(
        f"ld.global.b{bits} %{letter}{first + n}, [%d53+{32 * size * n}];" for n in range(len(data))
    )
    out = np.zeros((counts[2], 32), unit)
    vectors, at = [], first
    for count in counts:
        vectors.append(names(at, count, letter))
        at += count
    stores = "".join(
        f"st.global.b{bits} [%d54+{32 * size * n}], %{letter}{at + n};" for n in range(counts[2])
    )
    shape, rest = form.split(".", 1)
    rest = rest.replace("row.col.", f"row.col.{words}")
    body = f"""mul.wide.u32 %d50, %r300, {size}; add.u64 %d53, %d0, %d50; add.u64 %d54, %d1, %d50;
    {loads} mma.sync.aligned.{shape}.{rest} {{{names(at, counts[2], letter)}}},
    {{{vectors[0]}}}, {{{vectors[1]}}}, {{{vectors[2]}}}; {stores}"""
    report = launch(body, data, out, block=32)
    assert report.verdict.value == "clean", report
    held = np.ascontiguousarray(out.T).view(c.dtype)
    result = np.zeros_like(c)
    for t in lanes:
        for i in range(m // 4):
            result[c_place(t, i)] = held[t, i]
    return result


def numbers(seed: int, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Small whole numbers, so that sums are exact in every type."""
    rng = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -4
    return rng.integers(low, 5, shape).astype(dtype)


@pytest.mark.parametrize("case", _PRODUCTS, ids=lambda case: case[0])
def test_mma(case: tuple[str, int, int, Any, Any, Any]) -> None:
    form, m, k, a_type, b_type, c_type = case
    a, b = numbers(1, (m, k), a_type), numbers(2, (k, 8), b_type)
    c = numbers(3, (m, 8), c_type)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(product(form, m, k, a, b, c), wanted.astype(c.dtype))


def test_mma_saturates_on_request() -> None:
    a, b = np.full((16, 32), 127, np.int8), np.full((32, 8), 127, np.int8)
    c = np.full((16, 8), 2**31 - 10, np.int32)
    form = "m16n8k32.row.col.s32.s8.s8.s32"
    assert (product(form, 16, 32, a, b, c, "satfinite.") == 2**31 - 1).all()
    wrapped = (2**31 - 10 + 32 * 127 * 127) - 2**32
    assert (product(form, 16, 32, a, b, c) == wrapped).all()


def test_tf32_ignores_the_low_bits() -> None:
    a = np.full((16, 8), 1 + 2.0**-10 + 2.0**-11, np.float32)
    b, c = np.ones((8, 8), np.float32), np.zeros((16, 8), np.float32)
    got = product("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, a, b, c)
    assert (got == 8 * (1 + 2.0**-10)).all()


@pytest.mark.parametrize(
    "text",
    [
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r1}, [%r2];",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r3}, [%r2];",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%r2];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r2];",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r2], {%r1};",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8x16.b4x16_p64 [%r2], {%r1};",
        "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2}, {%r1,%r2,%r3,%r4};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r1,%r2,%r3,%r4};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
        "{%r1}, {%r1,%r2,%r3,%r4};",
        "mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, "
        "{%r1,%r2}, {%r1,%r2,%r3,%r4}, %r1, 0;",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, "
        "{%r1,%r2}, {%r1,%r2,%r3,%r4}, %r1, 4;",
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2}, {%r1,%r2,%r3,%r4};",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
        "{%r1,%r2}, {%r1,%r2,%r3,%r4};",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.bf16.f32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, "
        "{%r1,%r2}, {%r1,%r2}, {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8};",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(EmulatorError, match="not modelled"):
        launch(text, np.zeros(1), np.zeros(1), target="sm_100a")
