"""The checks at work in kernels: each kernel is right, and each line left out is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.kernel import launch, reported

SEEDS = range(4)

# Warp 0 copies 512 bytes at a time into two stages; warps 1 to 4 add them up and store the sum.
RING = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    add.u32 %r3, %r2, 4096;        // full[2], empty[2]
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
    mbarrier.init.shared::cta.b64 [%r3+16], 128; mbarrier.init.shared::cta.b64 [%r3+24], 128;
    fence.mbarrier_init.release.cluster;    // A
READY:
    bar.sync 0;                             // B
    mov.u32 %r10, 0; mov.u32 %r20, 0;
    sub.u32 %r21, %r1, 32; shl.b32 %r22, %r21, 2;
NEXT:
    and.b32 %r11, %r10, 1; shr.u32 %r12, %r10, 1; and.b32 %r12, %r12, 1; xor.b32 %r13, %r12, 1;
    shl.b32 %r14, %r11, 3; add.u32 %r14, %r14, %r3; shl.b32 %r15, %r11, 9; add.u32 %r15, %r15, %r2;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra FULL;
    @%p1 bra DONE;
EMPTY:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r14+16], %r13;
    @!%p3 bra EMPTY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%d0], 512, [%r14];
    add.u64 %d0, %d0, 512; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 6;
    @%p4 bra NEXT;
    bra DONE;
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r14], %r12;      // D
    @!%p3 bra FULL;                         // D
    add.u32 %r15, %r15, %r22; ld.shared.u32 %r16, [%r15]; add.u32 %r20, %r20, %r16;
    fence.proxy.async.shared::cta;          // C
    mbarrier.arrive.shared::cta.b64 _, [%r14+16];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 6;
    @%p4 bra NEXT;
    add.u32 %r17, %r2, 1024; add.u32 %r18, %r17, %r22;
    st.shared.u32 [%r18], %r20;
    fence.proxy.async.shared::cta;          // E
    bar.sync 1, 128;                        // F
    setp.ne.u32 %p1, %r21, 0;
    @%p1 bra DONE;
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r17], 512;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
DONE:
"""


def ring(drop: str | None, seed: int = 0, schedule: str = "uniform", checks: Any = True) -> Any:
    lines = [line for line in RING.splitlines() if drop is None or f"// {drop}" not in line]
    numbers, out = np.arange(6 * 128, dtype=np.uint32), np.zeros(128, np.uint32)
    options = {"seed": seed, "schedule": schedule, "checks": checks}
    report = launch("\n".join(lines), numbers, out, shared=8192, block=160, **options)
    return report, out, numbers.reshape(6, 128).sum(axis=0)


@pytest.mark.parametrize("schedule", ["uniform", "eager", "lazy", "starve"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_ring_is_clean(seed, schedule):
    report, out, expected = ring(None, seed, schedule)
    assert report.verdict.value == "clean", str(report)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("drop", "kinds", "others"), [
    ("A", {"missing-init-fence"}, set()),
    ("B", {"race", "barrier-misuse"}, None),  # the barriers may not even be there yet
    ("C", {"proxy-war"}, {"uninitialised"}),
    ("D", {"race", "over-arrival"}, None),
    ("E", {"missing-proxy-fence"}, set()),
    ("F", {"race"}, {"uninitialised"}),
])  # fmt: skip
@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_left_out(drop, kinds, others, seed):
    """One of the kinds is found, and nothing but those and ``others``, unless it is None."""
    report, _, _ = ring(drop, seed)
    found = {finding.kind for finding in report.findings}
    assert found & kinds, str(report)
    assert others is None or found <= kinds | others, str(report)


@pytest.mark.parametrize(("release", "acquire", "kinds"), [
    ("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", set()),
    ("st.global.u32", "ld.global.u32", {"race"}),
])  # fmt: skip
def test_a_flag_between_clusters(release, acquire, kinds):
    body = f"""
        mov.u32 %r1, %ctaid.x;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra READER;
        mov.u32 %r2, 5;
        st.global.u32 [%d0], %r2;
        {release} [%d1], %r2;
        bra DONE;
    READER:
        {acquire} %r3, [%d1];
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra READER;
        ld.global.u32 %r4, [%d0];
        st.global.u32 [%d0+128], %r4;
    DONE:
    """
    data, flag = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    assert set(reported(body, data, flag, block=1, grid=2, resident_clusters=2)) == kinds


@pytest.mark.parametrize("checks", [False, ["phase_lap"]])
def test_checks_can_be_off(checks):
    report, _, _ = ring("F", checks=checks)
    assert report.verdict.value == "clean"
