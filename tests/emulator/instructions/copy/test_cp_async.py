"""Asynchronous copies of each thread, their groups, and mbarriers that tell of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Report
from fa4gen.emulator.instructions.copy.cp_async import spans
from fa4gen.emulator.report import Severity
from tests.emulator import kernel
from tests.emulator.kernel import kinds

# %r21: the thread's 16 bytes of shared memory; %d20, %d21: its 16 bytes of the two arrays
_HEAD = """
    mov.u32 %r20, %tid.x; mad.lo.u32 %r21, %r20, 16, tile;
    mul.wide.u32 %d22, %r20, 16; add.u64 %d20, %d0, %d22; add.u64 %d21, %d1, %d22;
"""
_OUT = """
    ld.shared.v4.b32 {%r1,%r2,%r3,%r4}, [%r21]; st.global.v4.b32 [%d21], {%r1,%r2,%r3,%r4};
"""


def launch(body: str, source: Any, out: Any, block: int = 64, **options: Any) -> Report:
    return kernel.launch(_HEAD + body, source, out, shared=8192, block=block, **options)


def numbers(count: int) -> np.ndarray:
    return np.arange(1, count + 1, dtype=np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("form", ["cg.shared.global", "ca.shared::cta.global.L2::128B"])
def test_sixteen_bytes(form: str, schedule: str) -> None:
    source, out = numbers(256), np.zeros(256, np.uint32)
    body = f"cp.async.{form} [%r21], [%d20], 16; cp.async.wait_all; {_OUT}"
    report = launch(body, source, out, schedule=schedule)
    assert report.verdict.value == "clean", report
    np.testing.assert_array_equal(out, source)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_zeros_follow_a_short_source(size: int) -> None:
    """Lane n takes n bytes, of as many as there may be; the source then ends there."""
    source = np.arange(1, 1 + 16 * 64, dtype=np.uint8)
    out = np.full(1024, 255, np.uint8)
    body = f"""st.shared.v4.b32 [%r21], {{-1, -1, -1, -1}}; bar.sync 0;
    rem.u32 %r5, %r20, {size + 1};
    cp.async.ca.shared.global [%r21], [%d20], {size}, %r5;
    cp.async.commit_group; cp.async.wait_group 0; {_OUT}"""
    assert launch(body, source, out).verdict.value == "clean"
    wanted = np.full((64, 16), 255, np.uint8)
    for lane, row in enumerate(source.reshape(64, 16)):
        wanted[lane, :size] = np.where(np.arange(size) < lane % (size + 1), row[:size], 0)
    np.testing.assert_array_equal(out.reshape(64, 16), wanted)


def test_a_source_of_no_bytes_may_be_anywhere() -> None:
    out = np.full(256, 7, np.uint32)
    body = f"""setp.lt.u32 %p1, %r20, 32; mov.u64 %d23, %d20; @%p1 mov.u64 %d23, 3;
    cp.async.cg.shared.global [%r21], [%d23], 16, %p1; cp.async.wait_all; {_OUT}"""
    source = numbers(256)
    assert launch(body, source, out).verdict.value == "clean"
    np.testing.assert_array_equal(out, np.where(np.arange(256) < 128, 0, source))


def test_wait_group_leaves_the_latest_groups() -> None:
    """With completion as late as can be, the second group has not come after waiting for one."""
    source, out = numbers(512), np.zeros(256, np.uint32)
    body = """
    cp.async.cg.shared.global [%r21], [%d20], 16; cp.async.commit_group;
    cp.async.cg.shared.global [%r21+1024], [%d20+1024], 16; cp.async.commit_group;
    cp.async.wait_group 1; WAIT
    ld.shared.v4.b32 {%r5,%r6,%r7,%r8}, [%r21]; ld.shared.b32 %r9, [%r21+1024];
    add.u32 %r5, %r5, %r9; st.global.v4.b32 [%d21], {%r5,%r6,%r7,%r8};
    cp.async.wait_all;"""
    report = launch(body.replace("WAIT", ""), source, out, schedule="lazy")
    assert {finding.kind for finding in report.findings} == {"race"}
    np.testing.assert_array_equal(out, source[:256])
    report = launch(body.replace("WAIT", "cp.async.wait_group 0;"), source, out, schedule="lazy")
    assert report.verdict.value == "clean", report
    np.testing.assert_array_equal(out[::4], source[:256:4] + source[256::4])


def test_lanes_count_their_own_groups() -> None:
    """The second warp has one group more: waiting for all but one covers its copy."""
    source, out = numbers(256), np.zeros(256, np.uint32)
    body = f"""
    cp.async.cg.shared.global [%r21], [%d20], 16; cp.async.commit_group;
    and.b32 %r5, %r20, 32; setp.ne.u32 %p1, %r5, 0;
    @%p1 cp.async.commit_group;
    cp.async.wait_group 1; {_OUT} cp.async.wait_all;"""
    report = launch(body, source, out, schedule="lazy")
    table = out.reshape(64, 4)
    np.testing.assert_array_equal(table[32:], source.reshape(64, 4)[32:])
    assert not table[:32].any()
    assert {finding.kind for finding in report.findings} == {"race"}
    assert {finding.who for finding in report.findings} == {"CTA 0, thread 0"}


def test_a_barrier_is_needed_to_read_what_others_copied() -> None:
    source = numbers(256)
    body = (
        """cp.async.cg.shared.global [%r21], [%d20], 16; cp.async.wait_all; BARRIER
    xor.b32 %r21, %r21, 512;"""
        + _OUT
    )
    for barrier, expected in (("bar.sync 0;", []), ("", ["race"])):
        out = np.zeros(256, np.uint32)
        assert kinds(launch(body.replace("BARRIER", barrier), source, out)) == expected
    np.testing.assert_array_equal(np.roll(out, 128), source)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("counted", [True, False])
def test_an_mbarrier_tells_of_copies(counted: bool, schedule: str) -> None:
    """With .noinc each thread is one of the expected arrivals; without it is one more."""
    source, out = numbers(256), np.zeros(256, np.uint32)
    form, count, arrive = (
        (".noinc", 64, "") if counted
        else ("", 1, "bar.sync 0; @!%p1 mbarrier.arrive.shared.b64 _, [bar];")
    )  # fmt: skip
    body = f""".shared .align 8 .b64 bar; setp.ne.u32 %p1, %r20, 0;
    @!%p1 mbarrier.init.shared.b64 [bar], {count}; bar.sync 0;
    cp.async.cg.shared.global [%r21], [%d20], 16;
    cp.async.mbarrier.arrive{form}.shared.b64 [bar]; {arrive}
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
    xor.b32 %r21, %r21, 512; {_OUT}"""
    report = launch(body, source, out, schedule=schedule)
    assert report.verdict.value == "clean", report
    np.testing.assert_array_equal(np.roll(out, 128), source)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cp.async.cg.shared.global [%r21], [%d20+16], 16;", "out-of-bounds"),
        ("cp.async.cg.shared.global [%r21+7680], [%d20], 16;", "out-of-bounds"),
        ("cp.async.cg.shared.global [%r21+8], [%d20], 16;", "misaligned"),
        ("cp.async.ca.shared.global [%r21], [%d20+4], 8;", "misaligned"),
        ("cp.async.cg.shared.global [%r21], [%d20], 16, %r20;", "illegal-instruction"),
    ],
)
def test_bad_places(text: str, kind: str) -> None:
    assert kinds(launch(text, numbers(256), numbers(1))) == [kind]


def test_spans_join_neighbours() -> None:
    starts = np.array([32, 0, 16, 64, 68, 40])
    sizes = np.array([8, 16, 16, 4, 4, 0])
    assert spans(starts, sizes) == [(0, 40), (64, 72)]


def test_a_thread_may_overwrite_its_own_place() -> None:
    source, out = numbers(256), np.zeros(256, np.uint32)
    body = f"""st.shared.v4.b32 [%r21], {{-1, -1, -1, -1}};
    cp.async.cg.shared.global [%r21], [%d20], 16; cp.async.wait_all; {_OUT}"""
    assert launch(body, source, out).verdict.value == "clean"


@pytest.mark.parametrize(
    ("fence", "expected"), [("", ["missing-proxy-fence"]), ("fence.proxy.async.shared::cta;", [])]
)
def test_bulk_copies_see_what_was_copied_after_a_fence(fence: str, expected: list[str]) -> None:
    source, out = numbers(256), np.zeros(256, np.uint32)
    body = f"""cp.async.cg.shared.global [%r21], [%d20], 16; cp.async.wait_all;
    {fence} bar.sync 0; setp.ne.u32 %p1, %r20, 0; @%p1 bra done;
    cp.async.bulk.global.shared::cta.bulk_group [%d21], [%r21], 1024;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; done:"""
    report = launch(body, source, out)
    assert kinds(report) == expected
    assert all(finding.severity is Severity.ISA for finding in report.findings)
    np.testing.assert_array_equal(out, source)
