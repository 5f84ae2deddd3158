"""Kernels around a few tcgen05 instructions: 128 threads, tensor memory, an mbarrier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.emulator.kernel import kernel, run, vector

if TYPE_CHECKING:
    from fa4gen.emulator import Report

# %r0 thread, %r1 thread * 512, %r2 address of tile, %r3 its warp, %r9 taddr, %r10 taddr of the warp
_START = """
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 9;
    mov.u32 %r2, tile;
    shr.u32 %r3, %r0, 5;
    setp.eq.u32 %p1, %r3, 0;
    setp.eq.u32 %p2, %r0, 0;
"""
_ALLOCATE = """
    @%p1 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [tile+SLOT], COLUMNS;
    @%p2 mbarrier.init.shared::cta.b64 [tile+BARRIER], 1;
    fence.mbarrier_init.release.cluster;
"""
_RANK = """
    mov.u32 %r50, %cluster_ctarank;
    mul.wide.u32 %d4, %r50, SIZE;
    add.s64 %d0, %d0, %d4;
    mul.wide.u32 %d4, %r50, OUT;
    add.s64 %d1, %d1, %d4;
"""
_COPY = """
    mov.u32 %r4, 0;
    shl.b32 %r5, %r0, 2;
COPY:
    cvt.u64.u32 %d4, %r5;
    add.s64 %d4, %d4, %d0;
    ld.global.b32 %r6, [%d4];
    add.u32 %r7, %r2, %r5;
    st.shared.b32 [%r7], %r6;
    add.u32 %r5, %r5, 512;
    setp.lt.u32 %p3, %r5, SIZE;
    @%p3 bra COPY;
    fence.proxy.async.shared::cta;
"""
_SYNC = """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
"""
_ADDRESS = """
    ld.shared.b32 %r9, [tile+SLOT];
    shl.b32 %r10, %r3, 21;
    add.u32 %r10, %r10, %r9;
"""
_FREE = "@%p1 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r9, COLUMNS;"


def program(
    body: str,
    *,
    columns: int = 128,
    size: int = 0,
    group: int = 1,
    target: str = "sm_100a",
    directives: str = "",
    out: int = 0,
) -> str:
    """Columns allocated, ``size`` bytes of %d0 in tile; then ``body``; then columns freed.

    With ``group`` 2 the CTA of rank 1 reads ``size`` bytes further on and writes ``out`` further.

    Parameters: %d0 input, %d1 output. Behind the tile are SLOT, the mbarrier BARRIER, which
    expects one arrival, and EXTRA for what a test likes.
    """
    cluster = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else ""
    parts = [_START, _RANK if group == 2 else "", _ALLOCATE, _COPY if size else "", cluster, _SYNC,
             _ADDRESS, body, _SYNC, cluster, _FREE]  # fmt: skip
    text = "\n".join(parts)
    if group == 2 and not directives:
        directives = ".reqnctapercluster 2, 1, 1"
    slot = -(-size // 16) * 16
    names = {
        "SLOT": slot, "BARRIER": slot + 8, "EXTRA": slot + 16, "SIZE": size,
        "COLUMNS": columns, "GROUP": group, "OUT": out,
    }  # fmt: skip
    for name, value in names.items():
        text = text.replace(name, str(value))
    return kernel(text, ("u64", "u64"), target=target, shared=slot + 32, directives=directives)


def launch(text: str, *args: Any, block: int = 128, **options: Any) -> Report:
    return run(text, *args, block=block, **options)


def fill(columns: int, first: int = 100) -> str:
    """Cell (lane, column) becomes lane * 512 + column, by four warps."""
    values = "\n".join(f"add.u32 %r{first + c}, %r1, {c};" for c in range(columns))
    return f"""{values}
    tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r10], {vector(first, columns)};
    tcgen05.wait::st.sync.aligned;
    """


def save(count: int, first: int = 100) -> str:
    """Registers of each thread to the output: out[thread, register]."""
    stores = "\n".join(f"st.global.b32 [%d5+{4 * n}], %r{first + n};" for n in range(count))
    return f"""
    mul.lo.u32 %r8, %r0, {4 * count};
    cvt.u64.u32 %d5, %r8;
    add.s64 %d5, %d5, %d1;
    {stores}
    """


def wait(parity: int = 0, label: str = "WAIT") -> str:
    """Everyone waits for a phase of the mbarrier, and is told so in tensor memory's terms."""
    return f"""
{label}:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [tile+BARRIER], {parity};
    @!%p4 bra {label};
    tcgen05.fence::after_thread_sync;
    """


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]
