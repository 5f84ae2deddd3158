"""Kernels for tests of copies: a barrier at ``bar``, shared memory ``tile``, threads that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.emulator.kernel import kernel

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


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def noise(shape: tuple[int, ...], dtype: Any = np.uint16, seed: int = 3) -> np.ndarray[Any, Any]:
    """Random elements, none of them zero."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 120, shape).astype(dtype)
