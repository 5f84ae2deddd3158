from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.kernel import kernel, kinds, run

INIT = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    setp.ne.u32 %p1, %r21, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r20], COUNT;
READY:
    bar.sync 0;
"""


def barrier_kernel(body: str, count: int = 1, **options: object) -> str:
    return kernel(INIT.replace("COUNT", str(count)) + body, shared=1024, **options)


@pytest.mark.parametrize("schedule", ["uniform", "priority", "starve", "eager", "lazy"])
def test_a_wait_sees_what_was_stored_before_the_arrival(schedule: str) -> None:
    body = """
    setp.gt.u32 %p2, %r21, 31;
    @%p2 bra CONSUMER;
    add.u32 %r22, %r21, 100;
    shl.b32 %r23, %r21, 2;
    add.u32 %r23, %r23, %r20;
    st.shared.u32 [%r23+64], %r22;
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    bra DONE;
CONSUMER:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r20], 0;
    @!%p3 bra CONSUMER;
    sub.u32 %r24, %r21, 32;
    shl.b32 %r24, %r24, 2;
    add.u32 %r23, %r24, %r20;
    ld.shared.u32 %r22, [%r23+64];
    cvt.u64.u32 %d1, %r24;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r22;
DONE:
"""
    for seed in range(4):
        out = np.zeros(32, np.uint32)
        report = run(barrier_kernel(body, 32), out, block=64, seed=seed, schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        assert out.tolist() == list(range(100, 132))


def test_a_fresh_barrier_passes_parity_one_and_not_zero() -> None:
    body = """
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    selp.u32 %r22, 1, 0, %p2;
    st.global.u32 [%d0], %r22;
"""
    out = np.zeros(1, np.uint32)
    assert run(barrier_kernel(body), out, block=1).verdict is Verdict.CLEAN
    assert out[0] == 1


def test_phases_follow_one_another() -> None:
    body = """
    mov.u32 %r22, 0;
LOOP:
    mbarrier.arrive.shared::cta.b64 %d5, [%r20];
    and.b32 %r23, %r22, 1;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r20], %r23;
    @!%p2 bra WAIT;
    add.u32 %r22, %r22, 1;
    setp.lt.u32 %p3, %r22, 7;
    @%p3 bra LOOP;
    st.global.u32 [%d0], %r22;
"""
    out = np.zeros(1, np.uint32)
    report = run(barrier_kernel(body), out, block=1)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert out[0] == 7


def test_a_wait_by_state_and_the_pending_count() -> None:
    body = """
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %d5, [%r20], 2;
    mbarrier.pending_count.b64 %r22, %d5;
    st.global.u32 [%d0], %r22;
    mbarrier.arrive.shared::cta.b64 %d6, [%r20];
WAIT:
    mbarrier.try_wait.shared::cta.b64 %p2, [%r20], %d6;
    @!%p2 bra WAIT;
    st.global.u32 [%d0+4], 9;
"""
    out = np.zeros(2, np.uint32)
    assert run(barrier_kernel(body, 3), out, block=1).verdict is Verdict.CLEAN
    assert out.tolist() == [3, 9]


def test_a_missing_arrival_is_a_deadlock_that_names_the_barrier_and_what_is_missing() -> None:
    body = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r20], 0;
    @!%p2 bra WAIT;
"""
    report = run(barrier_kernel(body, 3), np.zeros(1, np.uint32), block=32)
    assert report.verdict is Verdict.ERROR
    (finding,) = report.findings
    assert finding.kind == "deadlock"
    assert "tile" in finding.message
    assert "3 of 3 arrivals" in finding.message
    assert "threads 0-31" in finding.who


def test_the_wait_comes_before_the_lanes_that_it_holds_up() -> None:
    """One lane waits for its warp, which stands at __syncwarp because of that."""
    body = """
    setp.ne.u32 %p2, %r21, 0;
    @%p2 bra TOGETHER;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r20], 0;
    @!%p3 bra WAIT;
TOGETHER:
    bar.warp.sync -1;
"""
    report = run(barrier_kernel(body), np.zeros(1, np.uint32), block=32)
    assert kinds(report) == ["deadlock", "partial-warp"]
    assert "thread 0" in report.findings[0].who


def test_missing_bytes_are_named() -> None:
    body = """
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 512;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r20], 0;
    @!%p2 bra WAIT;
"""
    report = run(barrier_kernel(body), np.zeros(1, np.uint32), block=1)
    assert "512 bytes missing" in report.findings[0].message


def test_an_arrival_too_many_is_an_error() -> None:
    # 32 lanes arrive at a barrier for 20: the second phase is left with 12 arrivals in it
    body = "mbarrier.arrive.shared::cta.b64 _, [%r20], 21;"
    report = run(barrier_kernel(body, 20), np.zeros(1, np.uint32), block=1)
    assert kinds(report) == ["over-arrival"]


def test_arrivals_of_a_warp_complete_as_many_phases_as_they_are() -> None:
    body = """
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    selp.u32 %r22, 1, 0, %p2;
    st.global.u32 [%d0], %r22;
"""
    out = np.zeros(1, np.uint32)
    run(barrier_kernel(body, 16), out, block=32, checks=False)
    assert out[0] == 1  # 32 arrivals are two phases of 16: back to an even one


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r20+64];", "barrier-misuse"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r20+4];", "misaligned"),
        ("mbarrier.init.shared::cta.b64 [%r20], 1;", "barrier-misuse"),
        ("mbarrier.init.shared::cta.b64 [%r20+12], 1;", "misaligned"),
        ("mbarrier.init.shared::cta.b64 [%r20+1024], 1;", "out-of-bounds"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r20], 2000000;", "transaction-bytes"),
    ],
)
def test_misuse(body: str, kind: str) -> None:
    report = run(barrier_kernel(body), np.zeros(1, np.uint32), block=1)
    assert kind in kinds(report)


def test_inval_and_init_again() -> None:
    body = """
    mbarrier.inval.shared::cta.b64 [%r20];
    mbarrier.init.shared::cta.b64 [%r20], 5;
"""
    assert run(barrier_kernel(body), np.zeros(1, np.uint32), block=1).verdict is Verdict.CLEAN


def test_a_dropped_arrival_lowers_the_next_phase() -> None:
    body = """
    mbarrier.arrive_drop.shared::cta.b64 _, [%r20];
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    selp.u32 %r22, 1, 0, %p2;
    st.global.u32 [%d0], %r22;
"""
    out = np.zeros(1, np.uint32)
    run(barrier_kernel(body, 2), out, block=1, checks=False)
    assert out[0] == 1  # phases of 2 and then 1
