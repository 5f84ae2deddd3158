from __future__ import annotations

import numpy as np

from fa4gen.emulator import Limits, Verdict
from fa4gen.emulator.instructions.control import default_registers
from tests.emulator.kernel import kernel, run


def kinds(report) -> list[str]:
    return [finding.kind for finding in report.findings]


ROLES = """
    mov.u32 %r21, %tid.x;
    setp.lt.u32 %p1, %r21, 128;
    @%p1 bra LOADER;
    setmaxnreg.inc.sync.aligned.u32 240;
    bra DONE;
LOADER:
    DEC
DONE:
"""


def test_registers_that_one_warpgroup_gives_up_go_to_the_others() -> None:
    body = ROLES.replace("DEC", "setmaxnreg.dec.sync.aligned.u32 24;")
    report = run(kernel(body, params=(), directives=".maxntid 384"), block=384)
    assert report.verdict is Verdict.CLEAN, str(report)


def test_registers_that_nobody_gives_up_are_waited_for_in_vain() -> None:
    report = run(kernel(ROLES.replace("DEC", ""), params=(), directives=".maxntid 384"), block=384)
    assert set(kinds(report)) == {"deadlock"}
    assert "more registers than the CTA has free" in report.findings[0].message


def test_setmaxnreg_by_three_warps_of_four_is_told() -> None:
    body = ROLES.replace(
        "DEC", "setp.lt.u32 %p2, %r21, 96; @%p2 setmaxnreg.dec.sync.aligned.u32 24;"
    )
    report = run(kernel(body, params=(), directives=".maxntid 384"), block=384)
    assert "partial-warp" in kinds(report)


def test_setmaxnreg_in_a_copy_for_each_role_is_for_review() -> None:
    """The warps of the loaders execute the same setmaxnreg at two places."""
    copies = """
        setp.lt.u32 %p2, %r21, 32;
        @%p2 bra FIRST;
        setmaxnreg.dec.sync.aligned.u32 24;
        bra DONE;
    FIRST:
        setmaxnreg.dec.sync.aligned.u32 24;
    """
    ptx = kernel(ROLES.replace("DEC", copies), params=(), directives=".maxntid 384")
    report = run(ptx, block=384)
    assert kinds(report) == ["partial-warp"]
    assert report.verdict is Verdict.REVIEW
    assert "partial-warp" in kinds(run(ptx.replace("u32 24;", "u32 32;", 1), block=384))


def test_registers_under_launch_bounds() -> None:
    assert default_registers(384, {"maxntid": (384, 1, 1)}) == 168
    assert default_registers(384, {"maxntid": (384, 1, 1), "minnctapersm": (2,)}) == 80
    assert default_registers(128, {"maxntid": (128, 1, 1)}) == 255
    assert default_registers(128, {}) == 0
    assert default_registers(128, {"maxnreg": (96,)}) == 96


def test_trap_stops_the_launch() -> None:
    report = run(kernel("trap;", params=()))
    assert kinds(report) == ["trap"]
    assert report.verdict is Verdict.ERROR


def test_a_kernel_that_spins_for_ever_ends_within_its_limit() -> None:
    body = """
LOOP:
    ld.volatile.global.u32 %r20, [%d0];
    setp.eq.u32 %p1, %r20, 0;
    @%p1 bra LOOP;
"""
    report = run(kernel(body), np.zeros(1, np.uint32), limits=Limits(idle_steps=5000))
    assert report.verdict is Verdict.INCOMPLETE
    assert kinds(report) == ["step-limit"]


def test_a_thread_may_poll_what_a_later_cta_stores() -> None:
    body = """
    mov.u32 %r21, %ctaid.x;
    setp.eq.u32 %p2, %r21, 3;
    @%p2 bra STORE;
LOOP:
    nanosleep.u32 20;
    ld.acquire.gpu.global.u32 %r20, [%d0];
    setp.eq.u32 %p1, %r20, 0;
    @%p1 bra LOOP;
    bra DONE;
STORE:
    st.release.gpu.global.u32 [%d0], 1;
DONE:
"""
    report = run(kernel(body), np.zeros(1, np.uint32), block=1, grid=4)
    assert report.verdict is Verdict.CLEAN, str(report)


def test_lanes_that_take_different_ways_meet_again() -> None:
    body = """
    mov.u32 %r20, %tid.x;
    mov.u32 %r21, 0;
    mov.u32 %r22, 0;
LOOP:
    add.u32 %r22, %r22, %r21;
    add.u32 %r21, %r21, 1;
    setp.le.u32 %p1, %r21, %r20;
    @%p1 bra LOOP;
    shfl.sync.idx.b32 %r23, %r22, 31, 31, 0xffffffff;
    add.u32 %r22, %r22, %r23;
    mul.wide.u32 %d1, %r20, 4;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r22;
"""
    out = np.zeros(64, np.uint32)
    report = run(kernel(body), out, block=64)
    assert report.verdict is Verdict.CLEAN, str(report)
    triangle = [n * (n + 1) // 2 for n in range(64)]
    assert out.tolist() == [triangle[n] + triangle[31 if n < 32 else 63] for n in range(64)]


def test_a_jump_table() -> None:
    body = """
    mov.u32 %r20, %tid.x;
    and.b32 %r21, %r20, 3;
    TABLE: .branchtargets A, B, C, D;
    brx.idx %r21, TABLE;
A:  mov.u32 %r22, 10; bra JOIN;
B:  mov.u32 %r22, 11; bra JOIN;
C:  mov.u32 %r22, 12; bra JOIN;
D:  mov.u32 %r22, 13;
JOIN:
    mul.wide.u32 %d1, %r20, 4;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r22;
"""
    out = np.zeros(32, np.uint32)
    assert run(kernel(body), out).verdict is Verdict.CLEAN
    assert out.tolist() == [10, 11, 12, 13] * 8
