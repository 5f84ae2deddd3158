"""Text of kernels that issue tcgen05.mma, and the operands they read."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.emulator.instructions.tcgen05.kernels import registers, save
from tests.emulator.instructions.tcgen05.tiles import descriptor, place

TYPES = {
    "f16": (np.float16, 0), "bf16": (ml_dtypes.bfloat16, 1), "tf32": (np.float32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0), "e5m2": (ml_dtypes.float8_e5m2, 1),
    "u8": (np.uint8, 0), "s8": (np.int8, 1),
}  # fmt: skip
SYNC = """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [tile+BARRIER];"
TILE = "and.b32 %r20, %r2, 0x3ffff; shr.u32 %r20, %r20, 4; mov.b64 %d6, {%r20, %r21};"


def idesc(m, n, a, b, d=1, **bits) -> int:
    value = d << 4 | a << 7 | b << 10 | (n >> 3) << 17 | (m >> 4) << 24
    for name, on in bits.items():
        value |= on << {"negate_a": 13, "negate_b": 14, "ta": 15, "tb": 16, "saturate": 3}[name]
    return value


def random_matrix(shape, kind, seed) -> np.ndarray:
    """Small integers: sums of their products are exact in every type."""
    low = 0 if kind == "u8" else -3
    values = np.random.default_rng(seed).integers(low, 4, shape)
    return values.astype(TYPES[kind][0])


def issue(kind: str, group: int, bits: int, steps, *, tensor_a: bool = False, words: str = "",
          tail: str = "", first: bool = False, d: str = "%r9") -> str:  # fmt: skip
    """Thread 0 issues one mma for each (a, b) of ``steps``: descriptors, or columns of A.

    Only the first one ignores D, and only if ``first``.
    """
    lines = [TILE.replace("%r21", "%r22"), f"mov.u32 %r21, {bits};", "setp.ne.u32 %p6, %r0, %r0;"]
    for number, (a, b) in enumerate(steps):
        lines.append(f"add.s64 %d8, %d6, {b};")
        if tensor_a:
            lines.append(f"add.u32 %r23, %r9, {a};")
        else:
            lines.append(f"add.s64 %d7, %d6, {a};")
        if number == 1 or not first:
            lines.append("setp.eq.u32 %p6, %r0, %r0;")
        where = "[%r23]" if tensor_a else "%d7"
        variant = "mma.ws" if group == 0 else "mma"
        lines.append(
            f"tcgen05.{variant}.cta_group::{max(group, 1)}.kind::{kind} [{d}], {where}, %d8, "
            f"%r21{words}, %p6{tail};"
        )
    return "\n".join(lines)


def by_thread_0(text: str) -> str:
    return f"@!%p2 bra ISSUED;\nmov.u32 %r22, 0;\n{text}\nISSUED:\n"


def read_back(n: int) -> str:
    return f"""
    tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {registers(100, n)}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    {save(n)}
    """


def before(n: int) -> np.ndarray:
    """Return the memory that ``fill`` leaves."""
    return (np.arange(128)[:, None] * 512 + np.arange(n)).astype(np.uint32)


def lay_out(a, b, span=128, ta=False, tb=False):
    """Both operands in a buffer, and how to step through K: (buffer, [(a, b) descriptors])."""
    size = a.itemsize
    depth = 32 // size
    tiles, offset = [], 0
    buffer = np.zeros(65536, np.uint8)
    for matrix, mn_major in ((a, ta), (b, tb)):
        mn, k = matrix.shape
        width = span // size
        if mn_major and span:
            leading, stride, step = k * span, 8 * span, depth // 8 * 8 * span
        elif mn_major:
            leading, stride = mn // (16 // size) * 128, 128
            step = depth // 8 * leading
        elif span:
            leading, stride, step = 0, 8 * span, 32
        else:
            leading, stride = mn * 16, 128
            step = 2 * leading
        place(
            matrix, buffer, offset,
            k_major=not mn_major, leading=leading, stride=stride, span=span,
        )  # fmt: skip
        parts = []
        for number in range(k // depth):
            at = offset + number * step
            if span and not mn_major:
                at = offset + number * depth // width * mn * span + number * 32 % span
            parts.append(descriptor(at, leading, stride, span))
        tiles.append(parts)
        extent = matrix.nbytes
        if span:
            inner, outer = (mn, k) if mn_major else (k, mn)
            extent = -(-inner * size // span) * span * outer
        offset += -(-extent // 1024) * 1024
    return buffer[:offset], list(zip(*tiles, strict=True))
