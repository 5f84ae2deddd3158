"""Clusters that are taken off the grid: responses, how they are read, and what gets lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import LaunchError
from tests.emulator.instructions.copy.copies import (
    WAIT,
    clean,
    expect,
    first,
    launch,
    reported,
)
from tests.emulator.kernel import SYNC

WORKERS: dict[str, Any] = {"size": 1024, "target": "sm_100a", "block": 1}
# the place of this thread's word of this CTA's 128 bytes of p0
OWN = """
    mov.u32 %r22, %ctaid.x; shl.b32 %r23, %r22, 7; shl.b32 %r24, %r21, 2; add.u32 %r23, %r23, %r24;
    cvt.u64.u32 %d5, %r23; add.u64 %d6, %d0, %d5;
"""
CANCEL = f"""{expect(16)}
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
        [tile], [bar];
"""
ASK = f"""{CANCEL}
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], %r31;
    @!%p9 bra WAIT;
"""
# A worker that takes CTAs off the grid until none is left and counts each in p0.
PERSISTENT = f"""
    mov.u32 %r30, %ctaid.x;
    mov.u32 %r31, 0;
WORK:
    shl.b32 %r32, %r30, 2; cvt.u64.u32 %d5, %r32; add.u64 %d6, %d0, %d5;
    ld.global.u32 %r33, [%d6]; add.u32 %r33, %r33, 1; st.global.u32 [%d6], %r33;
    {ASK}
    ld.shared.b128 %q0, [tile];
    fence.proxy.async.shared::cta;
    add.u32 %r31, %r31, 1; and.b32 %r31, %r31, 1;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q0;
    @!%p1 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r30, %r34, %r35, _}}, %q0;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r34, %q0;
    bra WORK;
DONE:
"""


@pytest.mark.parametrize("schedule", ["uniform", "lazy", "eager"])
def test_every_cta_is_worked_on_once(schedule: str) -> None:
    out = np.zeros(300, np.uint32)
    options = {"grid": 300, "resident_clusters": 4, "schedule": schedule, "checks": False}
    clean(PERSISTENT, out, **WORKERS, **options)
    assert (out == 1).all()


def test_trying_again_after_a_failure() -> None:
    body = PERSISTENT.replace("@!%p1 bra DONE;", f"@%p1 bra GOON; {CANCEL} bra DONE;\nGOON:\n")
    out = np.zeros(4, np.uint32)
    found = reported(body, out, **WORKERS, grid=4, checks=False, resident_clusters=1)
    assert found == ["illegal-instruction"]


def test_a_response_for_the_whole_cluster() -> None:
    body = f"""
    {OWN}
    {SYNC}
    {first(expect(16), "EXPECTED")}
    setp.eq.u32 %p1, %r22, 1;
    and.pred %p1, %p1, %p8;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128
        [tile], [bar];
    {WAIT}
    ld.shared.b128 %q0, [tile];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
    selp.u32 %r5, 1, 2, %p2;
    st.global.u32 [%d6], %r5;
    {SYNC}
"""  # noqa: E501
    out = np.zeros((2, 32), np.uint32)
    clean(body, out, size=1024, ctas=2, target="sm_100a", checks=False)
    assert (out == 2).all()


# The same by hand, as kernels do: x, y and z of the grid, and whether there was a cluster.
BY_HAND = """
    ld.shared.v4.b32 {%r40, %r41, %r42, %r43}, [tile];
    fence.proxy.async.shared::cta;
    add.u32 %r31, %r31, 1; and.b32 %r31, %r31, 1;
    and.b32 %r42, %r42, 1; setp.eq.u32 %p1, %r42, 1;
    mov.u32 %r30, %r40; and.b32 %r34, %r41, 0xffff; shr.u32 %r35, %r41, 16;
"""
QUERIES = """
    ld.shared.b128 %q0, [tile];
    fence.proxy.async.shared::cta;
    add.u32 %r31, %r31, 1; and.b32 %r31, %r31, 1;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q0;
    @%p1 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r30, _, %r36, _}, %q0;
    @%p1 clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r34, %q0;
    @%p1 clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r35, %q0;
"""
# Adds 1 + x + 10 y + 100 z to the word of CTA (x, y, z) of a grid of 5 by 4 by 3.
IN_THREE = f"""
    mov.u32 %r30, %ctaid.x; mov.u32 %r34, %ctaid.y; mov.u32 %r35, %ctaid.z;
    mov.u32 %r31, 0;
WORK:
    mad.lo.u32 %r32, %r35, 4, %r34; mad.lo.u32 %r32, %r32, 5, %r30; shl.b32 %r32, %r32, 2;
    mad.lo.u32 %r33, %r34, 10, %r30; mad.lo.u32 %r33, %r35, 100, %r33; add.u32 %r33, %r33, 1;
    cvt.u64.u32 %d5, %r32; add.u64 %d6, %d0, %d5;
    red.global.add.u32 [%d6], %r33;
    {ASK}
    READ
    @%p1 bra WORK;
"""


@pytest.mark.parametrize("read", [BY_HAND, QUERIES], ids=["by hand", "queries"])
def test_where_the_indices_are_in_a_response(read: str) -> None:
    out = np.zeros((3, 4, 5), np.uint32)
    clean(IN_THREE.replace("READ", read), out, **WORKERS, grid=(5, 4, 3), resident_clusters=2)
    z, y, x = np.indices(out.shape)
    assert np.array_equal(out, 1 + x + 10 * y + 100 * z)


def test_indices_read_before_the_test_of_success() -> None:
    """Against the PTX ISA, which leaves them undefined; harmless while nobody uses them."""
    early = PERSISTENT.replace("@!%p1 bra DONE;", "").replace("bra WORK;", "@%p1 bra WORK;")
    out = np.zeros(12, np.uint32)
    report = launch(early, out, **WORKERS, grid=12, resident_clusters=3)
    assert {(one.kind, one.severity.value) for one in report.findings} == {
        ("cancelled-cluster", "isa")
    }
    assert report.verdict is Verdict.ISA
    assert (out == 1).all()


def test_indices_of_a_failure_that_are_used_are_no_ctas() -> None:
    used = PERSISTENT.replace("@!%p1 bra DONE;", "")
    assert "out-of-bounds" in reported(used, np.zeros(12, np.uint32), **WORKERS, grid=12)


def test_a_response_that_nobody_reads_is_a_lost_tile() -> None:
    """The worker asks for one more cluster and leaves when the answer is there."""
    body = PERSISTENT.partition(ASK)[0] + CANCEL + WAIT
    out = np.zeros(3, np.uint32)
    report = launch(body, out, **WORKERS, grid=3, resident_clusters=1, outputs=[out])
    lost = {int(n) for n in np.flatnonzero(out == 0)}
    assert lost
    found = {one.kind: one for one in report.findings}
    assert set(found) == {"cancelled-cluster", "unwritten-output"}
    assert found["cancelled-cluster"].severity.value == "error"
    assert f"CTA ({min(lost)}, 0, 0)" in found["cancelled-cluster"].message
    assert f"{len(lost)} of 3 elements of p0" in found["unwritten-output"].message
    assert "is lost" in found["unwritten-output"].message


def test_a_response_that_is_read_wrongly_leaves_output_unwritten() -> None:
    """A decoder that takes another bit for the sign of success."""
    wrong = BY_HAND.replace("and.b32 %r42, %r42, 1;", "and.b32 %r42, %r42, 2;")
    out = np.zeros((3, 4, 5), np.uint32)
    options = {**WORKERS, "grid": (5, 4, 3), "resident_clusters": 2}
    report = launch(IN_THREE.replace("READ", wrong), out, **options, outputs=[out])
    assert [(one.kind, one.severity.value) for one in report.findings] == [
        ("unwritten-output", "review")
    ]
    message = report.findings[0].message
    assert f"{int((out == 0).sum())} of 60 elements of p0" in message
    assert "cancelled were the clusters of CTA (" in message
    clean(IN_THREE.replace("READ", BY_HAND), np.zeros_like(out), **options, outputs=[])


def test_grids_that_no_chip_runs() -> None:
    with pytest.raises(LaunchError, match="at most"):
        launch("", grid=(1, 65536))
