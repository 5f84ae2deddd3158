"""Small kernels for every family of instructions that an H200 can run, with their arguments.

A probe gives PTX, arguments (arrays, NumPy scalars, TensorMaps) and a launch. What the GPU leaves
in the arrays is recorded; the emulator has to leave the same, within ``rtol`` of the largest
magnitude for sums of products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.kernel import kernel, vector

BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class FamilyProbe:
    """``arguments`` makes fresh arguments; ``rtol`` 0 asks for equal bits."""

    name: str
    ptx: str
    arguments: Callable[[], list[Any]]
    block: int = 32
    grid: int = 1
    rtol: float = 0.0


def _random(seed: int, shape: Any, dtype: Any = np.uint32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "ui":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


_INDEX = "mov.u32 %r300, %tid.x; mul.wide.u32 %d50, %r300, 4; add.u64 %d51, %d0, %d50;"


# %d52: the thread's word of the second array, %r10 what it holds
_INPUT = "add.u64 %d52, %d1, %d50; ld.global.b32 %r10, [%d52];"


def _probe(
    name: str, lines: list[str], words: int, inputs: np.ndarray, shared: int = 0
) -> FamilyProbe:
    """So many words of each of 32 threads, of random inputs."""
    ptx = kernel("\n".join([_INDEX, *lines]), ("u64", "u64"), shared=shared)
    return FamilyProbe(name, ptx, lambda: [np.zeros(32 * words, np.uint32), inputs.copy()])


def _store(register: str, slot: int, threads: int = 32) -> str:
    return f"st.global.b32 [%d51+{4 * threads * slot}], {register};"


def _shuffles() -> list[FamilyProbe]:
    body, slot = [_INPUT, "and.b32 %r12, %r300, 7;"], 0
    for mode in ("idx", "up", "down", "bfly"):
        for control in (0x1F, 0x0, 0x181F, 0x1C1F, 0x1807, 0x1003):
            for lane in ("1", "5", "16", "%r12"):
                body.append(f"shfl.sync.{mode}.b32 %r20|%p1, %r10, {lane}, {control}, 0xffffffff;")
                body.append(f"selp.u32 %r21, 1, 0, %p1; {_store('%r20', slot)}")
                body.append(_store("%r21", slot + 1))
                slot += 2
    return [_probe("shfl", body, slot, _random(1, 32))]


def _votes() -> list[FamilyProbe]:
    lines = [
        "vote.sync.ballot.b32 %r20, %p1, 0xffffffff;",
        "vote.sync.any.pred %p2, %p1, 0xffffffff; selp.u32 %r20, 1, 0, %p2;",
        "vote.sync.all.pred %p2, %p1, 0xffffffff; selp.u32 %r20, 1, 0, %p2;",
        "vote.sync.uni.pred %p2, %p1, 0xffffffff; selp.u32 %r20, 1, 0, %p2;",
        "vote.sync.ballot.b32 %r20, !%p1, 0xffffffff;",
        "match.any.sync.b32 %r20, %r11, 0xffffffff;",
        "match.all.sync.b32 %r20|%p2, %r11, 0xffffffff;",
        "match.all.sync.b32 %r21|%p2, 5, 0xffffffff; selp.u32 %r20, %r21, 0, %p2;",
        *(f"redux.sync.{op}.{kind} %r20, %r10, 0xffffffff;" for op in ("add", "min", "max")
          for kind in ("u32", "s32")),
        *(f"redux.sync.{op}.b32 %r20, %r10, 0xffffffff;" for op in ("and", "or", "xor")),
        "elect.sync %r20|%p2, 0xffffffff;",
        "elect.sync %r21|%p2, 0xffffffff; selp.u32 %r20, 1, 0, %p2;",
        "activemask.b32 %r20;",
        "mov.u32 %r20, %lanemask_lt;", "mov.u32 %r20, %lanemask_ge;", "mov.u32 %r20, %laneid;",
        "mov.u32 %r20, %lanemask_eq;", "mov.u32 %r20, %lanemask_le;", "mov.u32 %r20, %lanemask_gt;",
        "mov.u32 %r20, %ntid.x;", "mov.u32 %r20, %ctaid.x;", "mov.u32 %r20, %nctaid.x;",
        "mov.u32 %r20, %cluster_ctarank;", "mov.u32 %r20, %cluster_nctarank;",
        "mov.u32 %r20, WARP_SZ;",
    ]  # fmt: skip
    head = "and.b32 %r11, %r10, 3; and.b32 %r12, %r10, 4; setp.ne.u32 %p1, %r12, 0;"
    body = [f"{line} {_store('%r20', n)}" for n, line in enumerate(lines)]
    return [_probe("votes", [_INPUT, head, *body], len(lines), _random(2, 32))]


_REDUCTIONS = (
    "add.u32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32",
    "inc.u32", "dec.u32", "add.s32",
)  # fmt: skip


def _atomics() -> list[FamilyProbe]:
    probes = []
    for space in ("global", "shared"):
        lines = []
        for slot, op in enumerate(_REDUCTIONS):
            value = "1000000" if op.startswith(("inc", "dec")) else "%r10"
            lines.append(f"red.{space}.{op} [BASE+{4 * slot}], {value};")
        lines.append(f"""cvt.u64.u32 %d20, %r10;
            red.{space}.add.u64 [BASE+64], %d20;
            red.{space}.max.u64 [BASE+72], %d20;
            mov.b32 %r41, 0x3c003c00; mov.b32 %r42, 0x3f803f80;
            red.{space}.add.noftz.f16x2 [BASE+80], %r41;
            red.{space}.add.f32 [BASE+84], 0f3f800000;
            red.{space}.add.noftz.bf16x2 [BASE+88], %r42;
            atom.{space}.add.u32 %r30, [BASE+92], 1; setp.eq.u32 %p3, %r30, 7;
            @%p3 atom.{space}.exch.b32 %r31, [BASE+96], 77;
            atom.{space}.cas.b32 %r32, [BASE+100], 0, 5;""")
        text = "\n".join(lines)
        if space == "global":
            text = text.replace("BASE", "%d0")
        else:
            start = "\n".join(
                f"ld.global.b32 %r40, [%d0+{4 * n}]; st.shared.b32 [%r50+{4 * n}], %r40;"
                for n in range(32)
            )
            end = "\n".join(
                f"ld.shared.b32 %r40, [%r50+{4 * n}]; st.global.b32 [%d0+{4 * n}], %r40;"
                for n in range(32)
            )
            text = (
                f"mov.u32 %r50, tile; setp.eq.u32 %p1, %r300, 0; @!%p1 bra A;\n{start}\n"
                f"A: bar.sync 0;\n{text.replace('BASE', '%r50')}\nbar.sync 0; @!%p1 bra B;"
                f"\n{end}\nB:"
            )
        ptx = kernel(f"{_INDEX}{_INPUT}\n{text}", ("u64", "u64"), shared=128)
        arguments = lambda: [_start(), _random(3, 64)]  # noqa: E731
        probes.append(FamilyProbe(f"red.{space}", ptx, arguments, block=64))
    return probes


def _start() -> np.ndarray:
    start = _random(4, 32)
    start[16:] = 0
    return start


def _memory() -> list[FamilyProbe]:
    lines = []
    for slot, kind in enumerate(("u8", "s8", "u16", "s16", "b32", "f32")):
        offset = f"+{slot}" if kind in ("u8", "s8") else ""
        lines.append(f"ld.global.{kind} %r20, [%d52{offset}];" + _store("%r20", slot))
    lines += [
        "mul.wide.u32 %d53, %r300, 16; add.u64 %d54, %d1, %d53;",
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d54];",
        "ld.global.nc.v2.u64 {%d3, %d4}, [%d54];",
        "xor.b32 %r5, %r1, %r2; xor.b32 %r6, %r3, %r4; xor.b64 %d5, %d3, %d4;",
        "mov.b64 {%r7, %r8}, %d5;",
        *(_store(f"%r{n}", 6 + k) for k, n in enumerate((1, 2, 3, 4, 5, 6, 7, 8))),
        "mul.lo.u32 %r60, %r300, 16; mov.u32 %r61, tile; add.u32 %r62, %r61, %r60;",
        "st.shared.v4.b32 [%r62], {%r4, %r3, %r2, %r1};",
        "bar.sync 0;",
        "xor.b32 %r63, %r60, 16; add.u32 %r63, %r63, %r61;",
        "cvt.u64.u32 %d6, %r63; cvta.shared.u64 %d7, %d6;",
        "ld.b32 %r9, [%d7+4]; ld.u8 %r10, [%d7+3]; ld.shared.v2.b32 {%r11, %r12}, [%r63+8];",
        *(_store(f"%r{n}", 14 + k) for k, n in enumerate((9, 10, 11, 12))),
        "st.local.b32 [stack], %r1; st.local.v2.b32 [stack+8], {%r2, %r3};",
        "and.b32 %r13, %r300, 1; mul.wide.u32 %d8, %r13, 8;",
        "mov.u64 %d9, stack; cvta.local.u64 %d9, %d9; add.u64 %d9, %d9, %d8; ld.b32 %r14, [%d9];",
        _store("%r14", 18),
    ]
    body = [".local .align 16 .b8 stack[32]; add.u64 %d52, %d1, %d50;", *lines]
    return [_probe("ld.st", body, 19, _random(5, 160), 512)]


_FILL = """
    mov.u32 %r70, tile; mov.u32 %r71, %r300;
FILL:
    shl.b32 %r72, %r71, 2; cvt.u64.u32 %d60, %r72; add.u64 %d61, %d1, %d60;
    ld.global.b32 %r73, [%d61]; add.u32 %r74, %r70, %r72; st.shared.b32 [%r74], %r73;
    add.u32 %r71, %r71, 32; setp.lt.u32 %p9, %r71, WORDS; @%p9 bra FILL;
    bar.sync 0;
"""


def _matrices() -> list[FamilyProbe]:
    lines = [_FILL.replace("WORDS", "128"), "shl.b32 %r20, %r300, 4; add.u32 %r20, %r20, %r70;"]
    slot = 0
    forms = [(count, trans) for count in (1, 2, 4) for trans in ("", ".trans")]
    for count, trans in forms:
        form = f"m8n8.x{count}{trans}.shared.b16"
        lines.append(f"ldmatrix.sync.aligned.{form} {vector(1, count)}, [%r20];")
        for n in range(1, count + 1):
            lines.append(_store(f"%r{n}", slot))
            slot += 1
    lines.append("movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;" + _store("%r5", slot))
    slot += 1
    for count, trans in forms:
        lines.append(
            f"bar.sync 0; stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
            f"[%r20], {vector(1, count)}; bar.sync 0;"
        )
        for n in range(4):
            lines.append(
                f"shl.b32 %r21, %r300, 2; add.u32 %r21, %r21, %r70; "
                f"ld.shared.b32 %r22, [%r21+{128 * n}]; {_store('%r22', slot)}"
            )
            slot += 1
    return [_probe("ldmatrix", lines, slot, _random(6, 128), 512)]


_MMA = (
    ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, BF16, np.float32),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, BF16, np.float32),
    ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, np.float16, np.float32),
    ("m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, np.float16, np.float16),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, np.float32, np.float32),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, np.float32, np.float32),
    ("m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, np.int8, np.int32),
    ("m16n8k32.row.col.s32.u8.s8.s32", 4, 2, 4, np.int8, np.int32),
    ("m16n8k16.row.col.s32.s8.s8.s32", 2, 1, 4, np.int8, np.int32),
    ("m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4, ml_dtypes.float8_e4m3fn, np.float32),
)


def _mma() -> list[FamilyProbe]:
    probes = []
    for shape, a, b, d, dtype, out in _MMA:
        loads = "".join(f"ld.global.b32 %r{n + 1}, [%d52+{128 * n}];" for n in range(a + b + d))

        operands = f"{vector(40, d)}, {vector(1, a)}, {vector(1 + a, b)}, {vector(1 + a + b, d)}"
        body = (
            f"{_INDEX}add.u64 %d52, %d1, %d50;{loads}mma.sync.aligned.{shape} {operands};"
            + "".join(_store(f"%r{n + 40}", n) for n in range(d))
        )

        def arguments(
            a: int = a, b: int = b, d: int = d, dtype: Any = dtype, out: Any = out
        ) -> list[Any]:
            per = 4 // np.dtype(dtype).itemsize
            data = _random(7, 32 * per * (a + b), dtype).view(np.uint32)
            start = _random(8, 32 * d * (4 // np.dtype(out).itemsize), out)
            if np.dtype(out).kind == "i":
                start = start // 2
            return [
                np.zeros(32 * d * (4 // np.dtype(out).itemsize), out),
                np.concatenate([data, start.view(np.uint32)]),
            ]

        rtol = 0.0 if "s32" in shape else 2e-3 if out is np.float16 or "e4m3" in shape else 2e-6
        probes.append(
            FamilyProbe(f"mma.{shape}", kernel(body, ("u64", "u64")), arguments, rtol=rtol)
        )
    return probes


def _cp_async() -> list[FamilyProbe]:
    body = """
    shl.b32 %r20, %r300, 4; add.u32 %r21, %r20, %r70; cvt.u64.u32 %d10, %r20;
    add.u64 %d11, %d1, %d10;
    cp.async.cg.shared.global [%r21], [%d11], 16;
    cp.async.ca.shared.global [%r21+512], [%d11+512], 8;
    cp.async.ca.shared.global [%r21+1024], [%d11+512], 4;
    and.b32 %r22, %r300, 15;
    cp.async.cg.shared.global [%r21+1536], [%d11+16], 16, %r22;
    cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    mov.u32 %r30, 0;
COPY:
    shl.b32 %r31, %r30, 7; shl.b32 %r32, %r300, 2; add.u32 %r31, %r31, %r32;
    add.u32 %r33, %r31, %r70; ld.shared.b32 %r34, [%r33];
    cvt.u64.u32 %d12, %r31; add.u64 %d13, %d0, %d12; st.global.b32 [%d13], %r34;
    add.u32 %r30, %r30, 1; setp.lt.u32 %p1, %r30, 16; @%p1 bra COPY;
"""
    return [_probe("cp.async", [_FILL.replace("WORDS", "512"), body], 16, _random(9, 1024), 2048)]


@cache
def probes() -> tuple[FamilyProbe, ...]:
    """All probes of this module."""
    return (*_shuffles(), *_votes(), *_atomics(), *_memory(), *_matrices(), *_mma(), *_cp_async())
