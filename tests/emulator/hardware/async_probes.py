"""Kernels for what an H200 does asynchronously: tensor and bulk copies, wgmma, clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from fa4gen.emulator import TensorMap
from tests.emulator.hardware.family_probes import BF16, FamilyProbe, _random
from tests.emulator.kernel import SYNC, kernel, vector

# Fill shared memory with a pattern, so that bytes which a copy leaves alone are seen to be so.
_PREPARE = """
    mov.u32 %r70, tile; mov.u32 %r71, %tid.x; mov.u32 %r79, %ntid.x;
PREPARE:
    shl.b32 %r72, %r71, 2; add.u32 %r74, %r70, %r72; mul.lo.u32 %r73, %r71, 2654435761;
    st.shared.b32 [%r74], %r73;
    add.u32 %r71, %r71, %r79; setp.lt.u32 %p9, %r71, WORDS; @%p9 bra PREPARE;
    fence.proxy.async.shared::cta;
    mov.u32 %r300, %tid.x; setp.eq.u32 %p8, %r300, 0;
    mov.u32 %r75, barrier;
    @!%p8 bra INITIALISED;
    mbarrier.init.shared::cta.b64 [%r75], 1;
    fence.mbarrier_init.release.cluster;
INITIALISED:
    bar.sync 0;
"""
_WAIT = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r75], 0;
    @!%p7 bra WAIT;
"""
# Copy the shared memory out to p0, CTA after CTA.
_DUMP = """
    bar.sync 0;
    mov.u32 %r71, %tid.x; mov.u32 %r76, %ctaid.x; mul.lo.u32 %r76, %r76, BYTES;
DUMP:
    shl.b32 %r72, %r71, 2; add.u32 %r74, %r70, %r72; ld.shared.b32 %r73, [%r74];
    add.u32 %r77, %r72, %r76; cvt.u64.u32 %d60, %r77; add.u64 %d61, %d0, %d60;
    st.global.b32 [%d61], %r73;
    add.u32 %r71, %r71, %r79; setp.lt.u32 %p9, %r71, WORDS; @%p9 bra DUMP;
"""
_MODULE = ".shared .align 8 .b64 barrier;"


def _shared_kernel(
    body: str, params: tuple[str, ...], size: int, *, wait: bool = True, directives: str = ""
) -> str:
    text = _PREPARE + body + (_WAIT if wait else "") + _DUMP
    text = text.replace("WORDS", str(size // 4)).replace("BYTES", str(size))
    return kernel(text, params, shared=size, module=_MODULE, directives=directives)


def _load_probe(
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    box: tuple[int, ...],
    at: tuple[int, ...],
    *,
    swizzle: int = 0,
    offset: int = 0,
    bytes_expected: int | None = None,
    **options: Any,
) -> FamilyProbe:
    """Load one box; ``at`` is in the array's axis order."""
    rank = len(shape)
    coordinates = ", ".join(str(c) for c in reversed(at))
    element = np.dtype(dtype).itemsize
    strides = options.get("element_strides") or (1,) * rank
    count = int(np.prod([-(-b // s) for b, s in zip(box, strides, strict=True)])) * element
    size = 16384
    body = f"""
    @!%p8 bra LOADED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r75], {bytes_expected or count};
    cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [tile+{offset}], [%d1, {{{coordinates}}}], [%r75];
LOADED:
"""

    def arguments() -> list[Any]:
        array = _random(11, shape, np.dtype(dtype) if np.dtype(dtype).kind in "ui" else np.float32)
        array = array.astype(dtype)
        return [
            np.zeros(size // 4, np.uint32),
            TensorMap(array, box=box, swizzle=swizzle, **options),
        ]

    return FamilyProbe(f"load.{name}", _shared_kernel(body, ("u64", "tensor_map"), size), arguments)


def _loads() -> list[FamilyProbe]:
    probes = [
        _load_probe("1d", (100,), np.float32, (64,), (3 * 4,)),
        _load_probe("2d", (40, 64), BF16, (16, 64), (5, 0)),
        _load_probe("2d_past_the_end", (40, 64), BF16, (16, 64), (33, 32)),
        _load_probe("2d_before_the_start", (40, 64), BF16, (16, 32), (-3, -8)),
        _load_probe("2d_far_away", (40, 64), BF16, (8, 32), (100, 80)),
        _load_probe("3d", (4, 6, 32), np.float32, (2, 3, 16), (1, 2, 4)),
        _load_probe("4d", (3, 4, 5, 16), np.uint16, (2, 2, 3, 16), (1, 3, 1, 0)),
        _load_probe("5d", (2, 3, 4, 5, 16), np.uint8, (2, 2, 2, 2, 16), (0, 2, -1, 4, 0)),
        _load_probe("strided", (32, 64), np.uint16, (8, 64), (1, 0), element_strides=(2, 1)),
        _load_probe("nan_fill", (10, 64), BF16, (8, 64), (6, 0), fill="nan"),
    ]
    for swizzle in (32, 64, 128):
        for dtype in (BF16, np.float32, np.uint8):
            columns = swizzle // np.dtype(dtype).itemsize
            probes.append(_load_probe(
                f"swizzle_{swizzle}_{np.dtype(dtype).name}", (64, 2 * columns), dtype,
                (40, columns), (2, columns // 2), swizzle=swizzle,
            ))  # fmt: skip
        probes.append(_load_probe(
            f"swizzle_{swizzle}_offset", (64, 128), BF16, (16, swizzle // 2), (1, 0),
            swizzle=swizzle, offset=384,
        ))  # fmt: skip
    probes.append(_load_probe("narrow_in_128", (64, 128), BF16, (16, 32), (1, 8), swizzle=128))
    probes.append(
        _load_probe("3d_swizzled", (4, 32, 64), BF16, (2, 16, 64), (1, 20, 0), swizzle=128)
    )
    return probes


def _store_probe(
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    box: tuple[int, ...],
    at: tuple[int, ...],
    *,
    swizzle: int = 0,
    reduce: str = "",
) -> FamilyProbe:
    rank = len(shape)
    coordinates = ", ".join(str(c) for c in reversed(at))
    opcode = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"
    if reduce:
        opcode = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduce}.bulk_group"
    fill = f"""
    @!%p8 bra STORED;
    {opcode} [%d1, {{{coordinates}}}], [%r70];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
STORED:
"""

    def arguments() -> list[Any]:
        array = _random(12, shape, np.dtype(dtype) if np.dtype(dtype).kind in "ui" else np.float32)
        return [np.zeros(2048, np.uint32), TensorMap(array.astype(dtype), box=box, swizzle=swizzle)]

    text = _shared_kernel(fill, ("u64", "tensor_map"), 8192, wait=False)
    if np.dtype(dtype).kind not in "ui":  # small numbers rather than any bits
        text = text.replace(
            "mul.lo.u32 %r73, %r71, 2654435761;",
            "and.b32 %r73, %r71, 63; cvt.rn.f32.u32 %r73, %r73;",
        )
    return FamilyProbe(f"store.{name}", text, arguments)


def _stores() -> list[FamilyProbe]:
    return [
        _store_probe("2d", (40, 64), np.uint16, (16, 64), (5, 0)),
        _store_probe("2d_past_the_last_row", (40, 64), np.uint16, (16, 64), (33, 0)),
        _store_probe("2d_past_the_last_column", (16, 64), np.uint16, (16, 64), (0, 32)),
        _store_probe("swizzled", (40, 64), np.uint16, (16, 64), (5, 0), swizzle=128),
        _store_probe("3d", (3, 8, 32), np.uint32, (2, 8, 32), (1, 4, 0), swizzle=128),
        _store_probe("add", (16, 32), np.uint32, (8, 32), (5, 0), reduce="add"),
        _store_probe("add_float", (16, 32), np.float32, (8, 32), (10, 0), reduce="add"),
        _store_probe("max", (16, 32), np.int32, (8, 32), (5, 0), reduce="max"),
        _store_probe("xor", (16, 32), np.uint32, (8, 32), (5, 0), reduce="xor"),
    ]


def _bulk() -> list[FamilyProbe]:
    load = """
    @!%p8 bra LOADED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r75], 1040;
    add.u64 %d10, %d1, 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+128], [%d10], 1024,
        [%r75];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+32], [%d1], 16, [%r75];
LOADED:
"""
    store = """
    @!%p8 bra STORED;
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 512;
    add.u64 %d10, %d1, 512;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d10], [tile+256], 128;
    add.u64 %d10, %d1, 640;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32 [%d10], [tile+256], 64;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
STORED:
"""
    return [
        FamilyProbe(
            f"bulk.{name}",
            _shared_kernel(body, ("u64", "u64"), 2048, wait=wait),
            lambda: [np.zeros(512, np.uint32), _random(13, 512)],
        )
        for name, body, wait in (("load", load, True), ("store", store, False))
    ]


def _clusters() -> list[FamilyProbe]:
    multicast = f"""
    {SYNC}
    mov.u32 %r20, %cluster_ctarank;
    setp.ne.u32 %p2, %r20, 1;
    @!%p8 bra ISSUED;
    setp.eq.u32 %p3, %r20, 1;
    mov.u32 %r21, 2048;
    selp.u32 %r21, 0, %r21, %p3;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r75], %r21;
    @%p2 bra ISSUED;
    mov.b16 %h1, 13;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [tile], [%d1, {{0, 3}}], [%r75], %h1;
ISSUED:
"""
    remote = f"""
    {SYNC}
    mov.u32 %r20, %cluster_ctarank; add.u32 %r21, %r20, 1; and.b32 %r21, %r21, 3;
    mapa.shared::cluster.u32 %r22, %r70, %r21;
    mapa.shared::cluster.u32 %r23, %r75, %r21;
    getctarank.shared::cluster.u32 %r24, %r22;
    shl.b32 %r25, %r300, 2; add.u32 %r26, %r22, %r25;
    st.shared::cluster.u32 [%r26+512], %r24;
    ld.shared::cluster.u32 %r27, [%r26];
    atom.shared::cluster.add.u32 %r28, [%r22+640], %r300;
    mad.lo.u32 %r27, %r20, 1000, %r300;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r26+256], %r27, [%r23];
    @!%p8 bra ARRIVED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r75], 128;
ARRIVED:
"""

    def box() -> TensorMap:
        array = _random(14, (40, 64), np.float32).astype(BF16)
        return TensorMap(array, box=(16, 64), swizzle=128)

    def probe(name: str, body: str, kind: str, make: Callable[[], Any]) -> FamilyProbe:
        directives = ".reqnctapercluster 4, 1, 1 .explicitcluster"
        text = f"{body}{_WAIT}\n{SYNC}"
        ptx = _shared_kernel(text, ("u64", kind), 2048, wait=False, directives=directives)
        return FamilyProbe(name, ptx, lambda: [np.zeros(2048, np.uint32), make()], grid=4)

    return [
        probe("cluster.multicast", multicast, "tensor_map", box),
        probe("cluster.remote", remote, "u64", lambda: np.zeros(1, np.uint32)),
    ]


_WGMMA_TYPES = {
    "bf16": (BF16, 16, "f32.bf16.bf16", True),
    "f16": (np.float16, 16, "f32.f16.f16", True),
    "tf32": (np.float32, 8, "f32.tf32.tf32", False),
    "e4m3": (ml_dtypes.float8_e4m3fn, 32, "f32.e4m3.e4m3", False),
    "e5m2": (ml_dtypes.float8_e5m2, 32, "f32.e5m2.e5m2", False),
    "s8": (np.int8, 32, "s32.s8.s8", False),
    "u8": (np.uint8, 32, "s32.u8.u8", False),
}
_SWIZZLE_CODE = {0: 0, 128: 1, 64: 2, 32: 3}


def _descriptor(swizzle: int, lbo: int, sbo: int) -> int:
    return (_SWIZZLE_CODE[swizzle] << 62) | (sbo >> 4) << 32 | (lbo >> 4) << 16


def wgmma_probe(
    name: str,
    kind: str,
    n: int,
    *,
    swizzle: int = 128,
    a_transposed: int = 0,
    b_transposed: int = 0,
    registers: bool = False,
    negate: int = 1,
    accumulate: bool = True,
    lbo: int = 0,
    sbo: int = 0,
) -> FamilyProbe:
    """One wgmma over raw operand bytes: A at offset 0, B at 32 KiB of shared memory."""
    dtype, k, types, floating = _WGMMA_TYPES[kind]
    span = swizzle or 16
    sbo = sbo or (8 * span if swizzle else 128)
    lbo = lbo or (4096 if swizzle else 1024)
    count = n // 2
    high, low = divmod(_descriptor(swizzle, lbo, sbo), 1 << 32)
    a = "{%r90, %r91, %r92, %r93}" if registers else "%d20"
    scales = "" if kind in ("s8", "u8") else f", {negate}, 1"
    transposes = ""
    if floating:
        transposes = f", {b_transposed}" if registers else f", {a_transposed}, {b_transposed}"
    body = f"""
    mov.u32 %r70, tile; mov.u32 %r71, %tid.x; mov.u32 %r300, %tid.x;
FILL:
    shl.b32 %r72, %r71, 2; cvt.u64.u32 %d60, %r72; add.u64 %d61, %d1, %d60;
    ld.global.b32 %r73, [%d61]; add.u32 %r74, %r70, %r72; st.shared.b32 [%r74], %r73;
    add.u32 %r71, %r71, 128; setp.lt.u32 %p9, %r71, 16384; @%p9 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r80, %r70, 4; and.b32 %r80, %r80, 0x3fff; or.b32 %r81, %r80, {low};
    mov.b64 %d20, {{%r81, {high}}};
    add.u32 %r82, %r80, 2048; or.b32 %r82, %r82, {low}; mov.b64 %d21, {{%r82, {high}}};
    mul.wide.u32 %d50, %r300, {4 * count}; add.u64 %d51, %d0, %d50;
    {"".join(f"ld.global.b32 %r{100 + i}, [%d51+{4 * i}];" for i in range(count))}
    mul.wide.u32 %d52, %r300, 16; add.u64 %d53, %d2, %d52;
    ld.global.v4.b32 {{%r90, %r91, %r92, %r93}}, [%d53];
    wgmma.fence.sync.aligned;
    setp.eq.u32 %p1, 1, {int(accumulate)};
    wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types}
        {vector(100, count)}, {a}, %d21, %p1{scales}{transposes};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {"".join(f"st.global.b32 [%d51+{4 * i}], %r{100 + i};" for i in range(count))}
"""

    def arguments() -> list[Any]:
        per = 4 // np.dtype(dtype).itemsize
        whole = np.dtype(dtype).kind in "ui"

        def make(seed: int, words: int) -> np.ndarray:
            if whole:
                return _random(seed, words * per, np.dtype(dtype)).view(np.uint32)
            return _random(seed, words * per, np.float32).astype(dtype).view(np.uint32)

        start = _random(17, 128 * count, np.float32) * 4
        start = start.astype(np.int32) * 1000 if whole else start.astype(np.float32)
        return [start, make(15, 16384), make(16, 512)]

    rtol = 0.0 if kind in ("s8", "u8", "e4m3", "e5m2") else 1e-5
    module = ".extern .shared .align 1024 .b8 tile[];"
    ptx = kernel(body, ("u64",) * 3, directives=".maxntid 128", module=module)
    return FamilyProbe(f"wgmma.{name}", ptx, arguments, block=128, rtol=rtol)


def _wgmma() -> list[FamilyProbe]:
    probes = [wgmma_probe(f"bf16_n{n}", "bf16", n) for n in (8, 24, 64, 128, 200, 256)]
    probes += [wgmma_probe(f"{kind}_n32", kind, 32) for kind in _WGMMA_TYPES]
    for swizzle in (0, 32, 64, 128):
        probes.append(wgmma_probe(f"bf16_swizzle_{swizzle}", "bf16", 64, swizzle=swizzle))
        for a, b in ((1, 0), (0, 1), (1, 1)):
            name = f"f16_swizzle_{swizzle}_t{a}{b}"
            options = {"swizzle": swizzle, "a_transposed": a, "b_transposed": b}
            probes.append(wgmma_probe(name, "f16", 64, **options))
    probes += [wgmma_probe(f"{kind}_registers", kind, 32, registers=True) for kind in _WGMMA_TYPES]
    probes += [
        wgmma_probe("bf16_registers_t1", "bf16", 64, registers=True, b_transposed=1),
        wgmma_probe("bf16_negated", "bf16", 32, negate=-1),
        wgmma_probe("bf16_overwrites", "bf16", 32, accumulate=False),
        wgmma_probe("e4m3_swizzle_32", "e4m3", 32, swizzle=32),
        wgmma_probe("tf32_swizzle_64", "tf32", 32, swizzle=64),
        wgmma_probe("s8_swizzle_0", "s8", 32, swizzle=0),
    ]
    return probes


DYNAMIC_SHARED = {"wgmma": 66_560}
"""Dynamic shared memory by the first word of a probe's name, in bytes."""


@cache
def probes() -> tuple[FamilyProbe, ...]:
    """All probes of this module."""
    return (*_loads(), *_stores(), *_bulk(), *_clusters(), *_wgmma())
