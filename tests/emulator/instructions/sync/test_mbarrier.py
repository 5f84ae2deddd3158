from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Report, Verdict
from tests.emulator import kernel

INIT = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    setp.ne.u32 %p1, %r21, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r20], COUNT;
READY:
    bar.sync 0;
"""


STUCK = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r20], 0;
    @!%p3 bra WAIT;
"""


def launch(body: str, count: int = 1, out: Any = None, block: int = 1, **options: Any) -> Report:
    """``body`` with a barrier of ``count`` arrivals at %r20."""
    out = np.zeros(1, np.uint32) if out is None else out
    text = INIT.replace("COUNT", str(count)) + body
    return kernel.launch(text, out, shared=1024, block=block, **options)


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
        report = launch(body, 32, out, 64, seed=seed, schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        assert out.tolist() == list(range(100, 132))


LAST = "selp.u32 %r22, 1, 0, %p2; st.global.u32 [%d0], %r22;"
PROGRAMS = {
    "a fresh barrier passes parity one and not zero": (1, 1, f"""
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    {LAST}""", [1, 0]),
    "phases follow one another": (1, 1, """
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
    st.global.u32 [%d0], %r22;""", [7, 0]),
    "a wait by state and the pending count": (3, 1, """
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %d5, [%r20], 2;
    mbarrier.pending_count.b64 %r22, %d5;
    st.global.u32 [%d0], %r22;
    mbarrier.arrive.shared::cta.b64 %d6, [%r20];
WAIT:
    mbarrier.try_wait.shared::cta.b64 %p2, [%r20], %d6;
    @!%p2 bra WAIT;
    st.global.u32 [%d0+4], 9;""", [3, 9]),
    "inval and init again": (1, 1, """
    mbarrier.inval.shared::cta.b64 [%r20];
    mbarrier.init.shared::cta.b64 [%r20], 5;""", [0, 0]),
    # 32 arrivals are two phases of 16: back to an even one
    "arrivals of a warp complete as many phases as they are": (16, 32, f"""
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    {LAST}""", [1, 0]),
    # phases of 2 and then 1
    "a dropped arrival lowers the next phase": (2, 1, f"""
    mbarrier.arrive_drop.shared::cta.b64 _, [%r20];
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    mbarrier.arrive.shared::cta.b64 _, [%r20];
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r20], 1;
    {LAST}""", [1, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    count, block, body, expected = PROGRAMS[name]
    out = np.zeros(2, np.uint32)
    found = kernel.kinds(launch(body, count, out, block))
    assert out.tolist() == expected
    assert found == (["over-arrival"] if count == 16 else [])


def test_a_missing_arrival_is_a_deadlock_that_names_the_barrier_and_what_is_missing() -> None:
    (finding,) = launch(STUCK, 3, block=32).findings
    assert (finding.kind, finding.severity.value) == ("deadlock", "error")
    assert "tile" in finding.message
    assert "3 of 3 arrivals" in finding.message
    assert "threads 0-31" in finding.who


def test_missing_bytes_are_named() -> None:
    body = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 512; {STUCK}"
    assert "512 bytes missing" in launch(body).findings[0].message


def test_the_wait_comes_before_the_lanes_that_it_holds_up() -> None:
    """One lane waits for its warp, which stands at __syncwarp because of that."""
    branch = "setp.ne.u32 %p2, %r21, 0; @%p2 bra TOGETHER;"
    body = f"{branch} {STUCK} TOGETHER: bar.warp.sync -1;"
    report = launch(body, block=32)
    assert kernel.kinds(report) == ["deadlock", "partial-warp"]
    assert "thread 0" in report.findings[0].who


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r20], 2;", "over-arrival"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r20+64];", "barrier-misuse"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r20+4];", "misaligned"),
        ("mbarrier.init.shared::cta.b64 [%r20], 1;", "barrier-misuse"),
        ("mbarrier.init.shared::cta.b64 [%r20+12], 1;", "misaligned"),
        ("mbarrier.init.shared::cta.b64 [%r20+1024], 1;", "out-of-bounds"),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r20], 2000000;", "transaction-bytes"),
    ],
)
def test_misuse(body: str, kind: str) -> None:
    assert kind in kernel.kinds(launch(body))
