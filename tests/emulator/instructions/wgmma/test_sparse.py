"""wgmma of sparse A and of single bits, against whole matrices put together element by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.kernel import kernel, run

N = 24
B_AT = 16_384
SIZE = 32_768
TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}


def text(form: str, operands: str, swizzle: int, steps: int = 1, count: int = N // 2) -> str:
    """Thread t loads its accumulators, 4 registers of A and one of metadata, and stores D."""
    leading, stride = (4096, 8 * swizzle) if swizzle else (1024, 128)
    high = stride >> 4 | SWIZZLES[swizzle] << 30
    d = ", ".join(f"%r{100 + i}" for i in range(count))
    product = f"wgmma.mma_async.{form} {{{d}}}, {operands};"
    return kernel(
        f"""
    mov.u32 %r70, tile; mov.u32 %r71, %tid.x; mov.u32 %r72, %r71;
FILL:
    shl.b32 %r73, %r72, 4; cvt.u64.u32 %d10, %r73; add.u64 %d11, %d1, %d10;
    ld.global.v4.b32 {{%r74, %r75, %r76, %r77}}, [%d11];
    add.u32 %r78, %r70, %r73; st.shared.v4.b32 [%r78], {{%r74, %r75, %r76, %r77}};
    add.u32 %r72, %r72, 128; setp.lt.u32 %p1, %r72, {SIZE // 16}; @%p1 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r80, %r70, 4; or.b32 %r81, %r80, {leading >> 4 << 16};
    mov.b64 %d20, {{%r81, {high}}}; add.u32 %r82, %r81, {B_AT >> 4}; mov.b64 %d21, {{%r82, {high}}};
    mul.wide.u32 %d12, %r71, {4 * count}; add.u64 %d13, %d0, %d12;
    {" ".join(f"ld.global.b32 %r{100 + i}, [%d13+{4 * i}];" for i in range(count))}
    mul.wide.u32 %d14, %r71, 20; add.u64 %d15, %d2, %d14;
    {" ".join(f"ld.global.b32 %r{90 + i}, [%d15+{4 * i}];" for i in range(5))}
    wgmma.fence.sync.aligned;
    {product * steps}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {" ".join(f"st.global.b32 [%d13+{4 * i}], %r{100 + i};" for i in range(count))}
""",
        ("u64", "u64", "u64"),
        shared=SIZE,
        directives=".maxntid 128",
    )


def put(buffer: np.ndarray, at: int, matrix: np.ndarray, swizzle: int, k_major: bool = True):
    """Lay a matrix (mn, k) down."""
    size = matrix.itemsize
    leading, stride = (4096, 8 * swizzle) if swizzle else (1024, 128)
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, size)
    for mn, k in np.ndindex(*matrix.shape):
        if not k_major:
            per = swizzle // size
            place = mn % per * size + mn // per * leading + k % 8 * swizzle + k // 8 * stride
        elif swizzle:
            place = mn % 8 * swizzle + mn // 8 * stride + k * size
        else:
            byte = k * size
            place = mn % 8 * 16 + mn // 8 * stride + byte % 16 + byte // 16 * leading
        place ^= (place >> 7 & (swizzle // 16 - 1)) << 4 if swizzle else 0
        buffer[at + place : at + place + size] = raw[mn, k]


def fragment(stored: np.ndarray) -> np.ndarray:
    """Four registers of A for each thread: (128, 4)."""
    raw = stored.view(f"u{stored.itemsize}").astype(np.uint32)
    per = 4 // stored.itemsize
    found = np.zeros((128, 4), np.uint32)
    for thread in range(128):
        for index in range(4 * per):
            register, part = divmod(index, per)
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register & 1)
            column = per * (thread % 4) + part + 4 * per * (register >> 1)
            found[thread, register] |= raw[row, column] << np.uint32(8 * stored.itemsize * part)
    return found


def accumulators(matrix: np.ndarray, count: int) -> np.ndarray:
    found = np.zeros((128, count), matrix.dtype)
    for thread, index in np.ndindex(*found.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index >> 1 & 1)
        found[thread, index] = matrix[row, 8 * (index >> 2) + 2 * (thread % 4) + (index & 1)]
    return found


def sparse(rng: Any, k: int, pairs: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the elements of each row are, (64, k / 2), and the codes of its chunks."""
    chunk = 4 if pairs else 2
    places, codes = np.zeros((64, k // 2), int), np.zeros((64, k // chunk), int)
    for row, number in np.ndindex(*codes.shape):
        if pairs:
            first, second = rng.choice(4, 2, replace=False)
            places[row, 2 * number : 2 * number + 2] = 4 * number + first, 4 * number + second
            codes[row, number] = first | second << 2
        else:
            second = rng.integers(2)
            places[row, number] = 2 * number + second
            codes[row, number] = 0b1110 if second else 0b0100
    return places, codes


def metadata(codes: np.ndarray, threads: int, selector: int, rng: Any) -> np.ndarray:
    found = rng.integers(0, 1 << 32, 128, np.uint32)
    for thread in range(128):
        row, part = thread // 32 * 16 + thread % 32 // 4, thread % 4
        if threads == 4:
            own = codes[row + 8 * (part % 2), 8 * (part // 2) : 8 * (part // 2) + 8]
        elif part // 2 == selector:
            first = 4 * (part % 2)
            own = [*codes[row, first : first + 4], *codes[row + 8, first : first + 4]]
        else:
            continue
        found[thread] = sum(int(code) << 4 * n for n, code in enumerate(own))
    return found


@pytest.mark.parametrize(
    ("a", "b", "k", "swizzle", "registers", "selector", "transpose"),
    [
        ("bf16", "bf16", 32, 128, False, 0, 0), ("bf16", "bf16", 32, 128, True, 1, 0),
        ("f16", "f16", 32, 0, False, 1, 0), ("f16", "f16", 32, 64, True, 0, 1),
        ("tf32", "tf32", 16, 64, False, 1, 0), ("tf32", "tf32", 16, 128, True, 0, 0),
        ("e4m3", "e5m2", 64, 128, False, 0, 0), ("e4m3", "e4m3", 64, 0, True, 0, 0),
        ("s8", "u8", 64, 64, False, 0, 0), ("u8", "s8", 64, 128, True, 0, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("schedule", ["lazy", "eager"])
def test_sparse(a, b, k, swizzle, registers, selector, transpose, schedule) -> None:
    """Three of them in a row, which run as one; A and B in every place where they can be."""
    rng = np.random.default_rng(k + swizzle)
    places, codes = sparse(rng, k, a != "tf32")
    low = 0 if "u8" in (a, b) else -3
    stored = rng.integers(low, 4, (64, k // 2)).astype(TYPES[a])
    right = rng.integers(low, 4, (N, k)).astype(TYPES[b])
    whole = np.zeros((64, k))
    np.put_along_axis(whole, places, stored.astype(np.float64), axis=1)
    integer = a in ("s8", "u8")
    start = rng.integers(-9, 9, (64, N)).astype(np.int32 if integer else np.float32)
    buffer = np.zeros(SIZE, np.uint8)
    put(buffer, 0, stored, swizzle)
    put(buffer, B_AT, right, swizzle, not transpose)
    threads = 4 if k == 64 else 2
    given = np.zeros((128, 5), np.uint32)
    given[:, 4] = metadata(codes, threads, selector, rng)
    given[:, :4] = fragment(stored)
    d = "s32" if integer else "f32"
    operands = "{%r90, %r91, %r92, %r93}" if registers else "%d20"
    operands += f", %d21, %r94, {selector}, 1"
    if not integer:
        operands += ", 1, -1"
    if a in ("f16", "bf16"):
        operands += f", {transpose}" if registers else f", 0, {transpose}"
    form = f"sp.sync.aligned.m64n{N}k{k}.{d}.{a}.{b}"
    cells = accumulators(start, N // 2)
    report = run(text(form, operands, swizzle, 3), cells, buffer, given, block=128,
                 schedule=schedule)  # fmt: skip
    assert report.verdict is Verdict.CLEAN, str(report)
    product = whole @ right.astype(np.float64).T
    wanted = (start + 3 * (product if integer else -product)).astype(start.dtype)
    np.testing.assert_array_equal(cells, accumulators(wanted, N // 2))


def test_single_bits() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (64, 32), np.uint8), rng.integers(0, 256, (N, 32), np.uint8)
    start = rng.integers(-9, 9, (64, N)).astype(np.int32)
    buffer = np.zeros(SIZE, np.uint8)
    put(buffer, 0, a, 128)
    put(buffer, B_AT, b, 128)
    cells = accumulators(start, N // 2)
    form = f"sync.aligned.m64n{N}k256.s32.b1.b1.and.popc"
    report = run(text(form, "%d20, %d21, 1", 128, 2), cells, buffer,
                 np.zeros((128, 5), np.uint32), block=128)  # fmt: skip
    assert report.verdict is Verdict.CLEAN, str(report)
    both = np.array([[sum(int(x & y).bit_count() for x, y in zip(one, other, strict=True))
                      for other in b] for one in a])  # fmt: skip
    np.testing.assert_array_equal(cells, accumulators((start + 2 * both).astype(np.int32), N // 2))


def test_operands_are_read_until_the_wait() -> None:
    """Both halves of K of B: a write to either meanwhile is a race."""
    form = f"sp.sync.aligned.m64n{N}k32.f32.bf16.bf16"
    good = text(form, "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 128)
    given = np.zeros((128, 5), np.uint32)
    given[:, 4] = 0x44444444
    for byte, races in ((0, True), (B_AT + 16, True), (B_AT + 48, True), (B_AT + 80, False)):
        write = f"setp.eq.u32 %p3, %r71, 0; @%p3 st.shared.b32 [%r70+{byte}], %r71;"
        early = good.replace("wgmma.wait_group", f"{write} wgmma.wait_group")
        report = run(early, np.zeros((128, N // 2), np.float32), np.zeros(SIZE, np.uint8), given,
                     block=128)  # fmt: skip
        found = {finding.kind for finding in report.findings}
        assert bool(found & {"race", "proxy-war", "missing-proxy-fence"}) == races, (byte, report)


def test_metadata_without_a_meaning() -> None:
    form = f"sp.sync.aligned.m64n{N}k32.f32.bf16.bf16"
    good = text(form, "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 128)
    report = run(good, np.zeros((128, N // 2), np.float32), np.zeros(SIZE, np.uint8),
                 np.zeros((128, 5), np.uint32), block=128)  # fmt: skip
    assert "illegal-instruction" in [finding.kind for finding in report.findings]


@pytest.mark.parametrize(
    ("form", "operands", "swizzle"),
    [
        (f"sp.sync.aligned.m64n{N}k16.f32.bf16.bf16", "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 128),
        (f"sp.sync.aligned.m64n{N}k32.f32.bf16.bf16", "%d20, %d21, %r94, 2, 1, 1, 1, 0, 0", 128),
        (f"sp.sync.aligned.m64n{N}k64.f32.e4m3.e4m3", "%d20, %d21, %r94, 1, 1, 1, 1", 128),
        (f"sp.sync.aligned.m64n{N}k32.f32.bf16.bf16", "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 32),
        (f"sync.aligned.m64n{N}k256.s32.b1.b1", "%d20, %d21, 1", 128),
        (f"sync.aligned.m64n{N}k32.s32.s8.s8.and.popc", "%d20, %d21, 1", 128),
    ],
)
def test_forms_that_are_refused(form: str, operands: str, swizzle: int) -> None:
    with pytest.raises(UnsupportedError):
        run(text(form, operands, swizzle), np.zeros((128, N // 2), np.uint32),
            np.zeros(SIZE, np.uint8), np.zeros((128, 5), np.uint32), block=128)  # fmt: skip
