"""Text of kernels that issue tcgen05.mma, and the operands they read."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from fa4gen.emulator import Report
from tests.emulator.instructions.tcgen05.kernels import fill, launch, program, save, wait
from tests.emulator.instructions.tcgen05.tiles import descriptor, place
from tests.emulator.kernel import vector

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
CLUSTER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
BOTH = f"""
    tcgen05.fence::before_thread_sync;
    {CLUSTER}
    tcgen05.fence::after_thread_sync;
"""
COMMIT_TO_BOTH = """
    mov.u16 %h0, 3;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [tile+BARRIER], %h0;
"""
TILE = "and.b32 %r20, %r2, 0x3ffff; shr.u32 %r20, %r20, 4; mov.b64 %d6, {%r20, %r21};"


BITS = {
    "selector": 0, "sparse": 2, "saturate": 3, "bit6": 6, "negate_a": 13, "negate_b": 14, "ta": 15,
    "tb": 16, "bit23": 23, "bit29": 29,
}  # fmt: skip


def idesc(m, n, a, b, d=1, **bits) -> int:
    value = d << 4 | a << 7 | b << 10 | (n >> 3) << 17 | (m >> 4) << 24
    return value | sum(on << BITS[name] for name, on in bits.items())


def random_matrix(shape, kind, seed) -> np.ndarray:
    """Small integers: sums of their products are exact in every type."""
    low = 0 if kind == "u8" else -3
    values = np.random.default_rng(seed).integers(low, 4, shape)
    return values.astype(TYPES[kind][0])


def issue(kind: str, group: int, bits: int | list[int], steps, *, tensor_a: bool = False,
          sparse: int | None = None, words: str = "", tail: str = "", first: bool = False,
          d: str = "%r9") -> str:  # fmt: skip
    """Thread 0 issues one mma for each (a, b) of ``steps``: descriptors, or columns of A.

    Only the first one ignores D, and only if ``first``. ``sparse`` is the column of metadata;
    ``group`` 0 stands for .ws.
    """
    lines = [TILE.replace("%r21", "%r22"), "setp.ne.u32 %p6, %r0, %r0;"]
    variant = "mma" + ".ws" * (group == 0) + ".sp" * (sparse is not None)
    metadata = "" if sparse is None else f" [%r9+{sparse}],"
    for number, (a, b) in enumerate(steps):
        own = bits if isinstance(bits, int) else bits[number]
        lines.append(f"add.s64 %d8, %d6, {b}; mov.u32 %r21, {own};")
        if tensor_a:
            lines.append(f"add.u32 %r23, %r9, {a};")
        else:
            lines.append(f"add.s64 %d7, %d6, {a};")
        if number == 1 or not first:
            lines.append("setp.eq.u32 %p6, %r0, %r0;")
        where = "[%r23]" if tensor_a else "%d7"
        lines.append(
            f"tcgen05.{variant}.cta_group::{max(group, 1)}.kind::{kind} [{d}], {where}, %d8,"
            f"{metadata} %r21{words}, %p6{tail};"
        )
    return "\n".join(lines)


def by_thread_0(text: str) -> str:
    return f"@!%p2 bra ISSUED;\nmov.u32 %r22, 0;\n{text}\nISSUED:\n"


def by_the_leader(text: str) -> str:
    return "setp.ne.u32 %p7, %r50, 0; @%p7 bra ISSUED;" + by_thread_0(text)


def read_back(n: int) -> str:
    return f"""
    tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {vector(100, n)}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    {save(n)}
    """


def before(n: int) -> np.ndarray:
    """Return the memory that ``fill`` leaves."""
    return (np.arange(128)[:, None] * 512 + np.arange(n)).astype(np.uint32)


def columns_from_shared(count: int, first: int) -> str:
    """Each thread's part of shared memory, ``count`` words, to columns from ``first`` on."""
    loads = "\n".join(f"ld.shared.b32 %r{200 + c}, [%r12+{4 * c}];" for c in range(count))
    return f"""
    mul.lo.u32 %r12, %r0, {4 * count}; add.u32 %r12, %r12, %r2;
    {loads}
    tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%r10+{first}], {vector(200, count)};
    tcgen05.wait::st.sync.aligned;
    """


def outcome(
    text: str, n: int, data: Any, *, setup: str = "", group: int = 1, filled: bool = True,
    **options: Any,
) -> tuple[Report, np.ndarray]:  # fmt: skip
    """The report, and the cells (CTAs, 128, n) once the products of ``text`` are complete.

    One thread issues them, of a pair that of the leader.
    """
    sync, commit, by = (SYNC, COMMIT, by_thread_0)
    if group == 2:
        sync, commit, by = (BOTH, COMMIT_TO_BOTH, by_the_leader)
    body = (fill(n) if filled else "") + setup + sync + by(text + commit) + wait() + read_back(n)
    cells = np.zeros((group, 128, n), np.uint32)
    ptx = program(body, size=len(data) // group, group=group, out=512 * n if group == 2 else 0)
    return launch(ptx, data, cells, grid=group, **options), cells


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of A (m, k) and B (n, k)."""
    return a.astype(np.float64) @ b.astype(np.float64).T


def lay_out(a, b, span=128, ta=False, tb=False, columns=None):
    """Both operands as bytes, behind words of ``columns``, and descriptors (a, b) of steps of K.

    A sparse A has half as many columns as B, which is stepped through twice as fast.
    """
    head = np.zeros(0, np.uint8) if columns is None else columns.view(np.uint8).reshape(-1)
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
            parts.append(descriptor(at + len(head), leading, stride, span))
        tiles.append(parts)
        extent = matrix.nbytes
        if span:
            inner, outer = (mn, k) if mn_major else (k, mn)
            extent = -(-inner * size // span) * span * outer
        offset += -(-extent // 1024) * 1024
    a_steps, b_steps = tiles
    steps = zip(a_steps, b_steps[:: len(b_steps) // len(a_steps)], strict=True)
    return np.concatenate([head, buffer[:offset]]), list(steps)
