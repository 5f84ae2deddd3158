from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Limits, Report, Verdict
from fa4gen.emulator.instructions.sync.control import default_registers
from fa4gen.emulator.ptx.parser import parse_module
from tests.emulator.kernel import clean, kernel, kinds, launch

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


DEC = "setmaxnreg.dec.sync.aligned.u32 24;"


def roles(loader: str, registers: int = 240, threads: int = 384) -> Report:
    """The loader does this; the other warpgroups ask for so many registers."""
    body = ROLES.replace("DEC", loader).replace("240", str(registers))
    return launch(body, directives=f".maxntid {threads}", block=threads)


def test_registers_that_one_warpgroup_gives_up_go_to_the_others() -> None:
    assert roles(DEC).verdict is Verdict.CLEAN


def test_registers_that_nobody_gives_up_are_waited_for_in_vain() -> None:
    report = roles("")
    assert set(kinds(report)) == {"deadlock"}
    assert "more registers than the CTA has free" in report.findings[0].message


def test_setmaxnreg_by_three_warps_of_four_is_told() -> None:
    """The fourth warp keeps its registers, which the others wait for in vain here."""
    some = f"setp.lt.u32 %p2, %r21, 96; @%p2 {DEC}"
    report = roles(some)
    assert "deadlock" in kinds(report)
    assert "warp 3 did not execute setmaxnreg.dec 24" in str(report)
    (finding,) = roles(some, 208).findings
    assert (finding.kind, finding.severity.value) == ("partial-warp", "isa")
    assert "not executed by warp 3 of the warpgroup" in finding.message


SPLIT = """
    setp.lt.u32 %p2, %r21, 32;
    @%p2 bra FIRST;
    setmaxnreg.dec.sync.aligned.u32 24;
    bra DONE;
FIRST:
    setmaxnreg.dec.sync.aligned.u32 24;
"""


@pytest.mark.parametrize("count", [24, 32, 104])
def test_setmaxnreg_in_a_copy_for_each_role_is_for_review(count: int) -> None:
    """The warps of the loaders execute setmaxnreg at two places, and each has its own count."""
    copies = SPLIT.replace("u32 24;\n    bra", f"u32 {count};\n    bra")
    (finding,) = roles(copies, 200).findings
    assert (finding.kind, finding.severity.value) == ("partial-warp", "review")
    assert ("at different places" in finding.message) == (count == 24)
    # 256 * (240 - 168) registers are what 128 threads give up that go down to 24
    assert ("deadlock" in kinds(roles(copies))) == (count > 24)


def test_a_second_setmaxnreg_of_some_warps_does_not_block() -> None:
    """The registers that two warps release once more are those that the others lack."""
    again = """
    setmaxnreg.dec.sync.aligned.u32 72;
    setp.lt.u32 %p2, %r21, 64;
    @!%p2 bra DONE;
    setmaxnreg.dec.sync.aligned.u32 40;
    """
    assert 256 * (224 - 168) == 128 * (168 - 72) + 64 * (72 - 40)
    (finding,) = roles(again, 224).findings
    assert (finding.kind, finding.severity.value) == ("partial-warp", "isa")
    assert "warp 2, warp 3 of the warpgroup" in finding.message


def test_setmaxnreg_in_a_warpgroup_that_is_not_whole() -> None:
    (finding,) = launch(DEC, directives=".maxntid 160", block=160).findings
    assert (finding.kind, finding.severity.value) == ("partial-warp", "isa")
    assert "warp 5, warp 6, warp 7" in finding.message


@pytest.mark.parametrize(("threads", "directives", "largest", "expected"), [
    (384, ".maxntid 384", 0, 168),
    (384, ".maxntid 384", 160, 160),
    (384, ".reqntid 384, 1, 1 .minnctapersm 2", 240, 80),
    (384, ".maxntid 384 .minnctapersm 2", 72, 72),
    (128, ".maxntid 128", 0, 255),
    (256, ".maxntid 256 .minnctapersm 1", 256, 255),
    (256, ".maxntid 256 .minnctapersm 1", 240, 240),
    (256, ".maxntid 512 .minnctapersm 1", 200, 128),
    (320, ".maxntid 320 .minnctapersm 1", 240, 168),
    (544, ".maxntid 544 .minnctapersm 1", 240, 96),
    (96, ".maxntid 96 .minnctapersm 6", 240, 96),
    (96, ".maxntid 96 .minnctapersm 8", 240, 80),
    (128, ".maxnreg 96", 240, 96),
    (128, "", 240, 0),
])  # fmt: skip
def test_registers_that_a_kernel_begins_with(
    threads: int, directives: str, largest: int, expected: int
) -> None:
    """As ptxas 13.0 reports them, of both architectures; a ``dec`` plays no part."""
    increase = f"setmaxnreg.inc.sync.aligned.u32 {largest};" if largest else ""
    body = f"setmaxnreg.dec.sync.aligned.u32 40; {increase}"
    function = parse_module(kernel(body, params=(), directives=directives)).functions["k"]
    assert default_registers(threads, function) == expected


def test_setmaxnreg_to_what_the_kernel_begins_with() -> None:
    assert not roles(DEC, threads=256).findings


@pytest.mark.parametrize(("body", "directives", "message"), [
    ("setmaxnreg.inc.sync.aligned.u32 240; setmaxnreg.inc.sync.aligned.u32 200;", ".maxntid 128",
     "setmaxnreg.inc to 200 from 240 registers a thread"),
    ("setmaxnreg.inc.sync.aligned.u32 240;", ".maxnreg 248", "setmaxnreg.inc to 240 from 248"),
    ("setmaxnreg.dec.sync.aligned.u32 168;", ".maxntid 512", "setmaxnreg.dec to 168 from 128"),
])  # fmt: skip
def test_setmaxnreg_in_the_wrong_direction(body: str, directives: str, message: str) -> None:
    report = launch(body, directives=directives, block=128)
    assert any(one.kind == "setmaxnreg" and message in one.message for one in report.findings)


def test_trap_stops_the_launch() -> None:
    report = launch("trap;")
    assert kinds(report) == ["trap"]
    assert report.verdict is Verdict.ERROR


def test_a_kernel_that_spins_for_ever_ends_within_its_limit() -> None:
    body = """
LOOP:
    ld.volatile.global.u32 %r20, [%d0];
    setp.eq.u32 %p1, %r20, 0;
    @%p1 bra LOOP;
"""
    report = launch(body, np.zeros(1, np.uint32), limits=Limits(idle_steps=2600))
    assert report.verdict is Verdict.INCOMPLETE
    assert kinds(report) == ["step-limit"]


@pytest.mark.parametrize("steps", range(1, 9))
def test_the_step_limit_is_reached_while_every_thread_waits(steps: int) -> None:
    """At the limit nobody may be ready: the report still says what ended the run."""
    body = """
    .shared .align 8 .b64 waited;
    mov.u32 %r20, waited;
    mbarrier.init.shared::cta.b64 [%r20], 1;
LOOP:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r20], 0;
    @!%p1 st.global.u32 [%d0], 1;
    @!%p1 bra LOOP;
"""
    report = launch(body, np.zeros(1, np.uint32), block=1, limits=Limits(steps=steps))
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
    clean(body, np.zeros(1, np.uint32), block=1, grid=4)


def test_threads_that_sleep_for_what_never_comes_are_a_deadlock() -> None:
    body = """
LOOP:
    nanosleep.u32 20;
    ld.acquire.gpu.global.u32 %r20, [%d0];
    setp.eq.u32 %p1, %r20, 0;
    @%p1 bra LOOP;
"""
    report = launch(body, np.zeros(1, np.uint32), block=64)
    assert kinds(report) == ["deadlock"]
    assert "it sleeps" in str(report)


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
    clean(body, out, block=64)
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
    clean(body, out)
    assert out.tolist() == [10, 11, 12, 13] * 8
