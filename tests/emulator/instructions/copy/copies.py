"""Kernels for tests of copies: a barrier at ``bar``, shared memory ``tile``, threads that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.emulator import kernel as kernels
from tests.emulator.instructions.tensor_cores import swizzled
from tests.emulator.kernel import kernel, kinds

if TYPE_CHECKING:
    from fa4gen.emulator import Report

MODULE = ".shared .align 8 .b64 bar;"

# %r20 the tile's address, %r21 the thread, %p8 whether it is the first
START = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    setp.eq.u32 %p8, %r21, 0;
    @!%p8 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
"""
WAIT = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0;
    @!%p9 bra WAIT;
"""
# p0 to the first 2048 bytes of the tile, by 32 threads
FILL = """
    mov.u32 %r22, 0;
FILL:
    mul.lo.u32 %r23, %r22, 32; add.u32 %r23, %r23, %r21; shl.b32 %r23, %r23, 2;
    cvt.u64.u32 %d4, %r23; add.s64 %d4, %d4, %d0; ld.global.b32 %r24, [%d4];
    add.u32 %r23, %r23, %r20; st.shared.b32 [%r23], %r24;
    add.u32 %r22, %r22, 1; setp.lt.u32 %p7, %r22, 16; @%p7 bra FILL;
    fence.proxy.async.shared::cta; bar.sync 0;
"""
STORED = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def first(body: str, label: str = "LATER") -> str:
    """Only the first thread runs ``body``."""
    return f"@!%p8 bra {label};\n{body}\n{label}:\n"


def expect(size: int) -> str:
    return f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size};"


def dump(size: int, parameter: str = "%d0") -> str:
    """Copy ``size`` bytes of the tile to where ``parameter`` points, after a bulk load."""
    return first(
        f"cp.async.bulk.global.shared::cta.bulk_group [{parameter}], [%r20], {size};\n{STORED}",
        "DUMPED",
    )


def copy_kernel(body: str, params: tuple[str, ...], size: int = 16384, **options: Any) -> str:
    return kernel(START + body, params, shared=size, module=MODULE, **options)


def launch(body: str, *args: Any, size: int = 16384, **options: Any) -> Report:
    return kernels.launch(START + body, *args, shared=size, module=MODULE, **options)


def reported(body: str, *args: Any, **options: Any) -> list[str]:
    return kinds(launch(body, *args, **options))


def clean(body: str, *args: Any, **options: Any) -> None:
    report = launch(body, *args, **options)
    assert not report.findings, str(report)


def laid_down(
    box: np.ndarray[Any, Any], span: int, offset: int = 0, size: int = 16384
) -> np.ndarray[Any, Any]:
    """A box (its rows along the last axis) in so many bytes of shared memory."""
    rows = np.ascontiguousarray(box.reshape(-1, box.shape[-1])).view(np.uint8)
    out = np.zeros(size, np.uint8)
    for (number, byte), value in np.ndenumerate(rows):
        out[swizzled(offset + number * (span or rows.shape[1]) + byte, span)] = value
    return out


def noise(shape: tuple[int, ...], dtype: Any = np.uint16, seed: int = 3) -> np.ndarray[Any, Any]:
    """Random elements, none of them zero."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 120, shape).astype(dtype)
