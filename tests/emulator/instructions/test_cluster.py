from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import UnsupportedError
from tests.emulator.instructions.copies import WAIT, copy_kernel, expect, first, kinds
from tests.emulator.kernel import run

SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
CLUSTER = ".reqnctapercluster {n}, 1, 1 .explicitcluster"
# the place of this thread's word of this CTA's 128 bytes of p0
OWN = """
    mov.u32 %r22, %ctaid.x; shl.b32 %r23, %r22, 7; shl.b32 %r24, %r21, 2; add.u32 %r23, %r23, %r24;
    cvt.u64.u32 %d5, %r23; add.u64 %d6, %d0, %d5;
"""


def ranks(body: str) -> np.ndarray:
    """What ``body`` leaves in %r5 of the 32 threads of four CTAs of a cluster."""
    out = np.zeros((4, 32), np.uint32)
    text = f"{OWN}{SYNC}{body} st.global.u32 [%d6], %r5; {SYNC}"
    ptx = copy_kernel(text, ("u64",), 1024, directives=CLUSTER.format(n=4))
    report = run(ptx, out, grid=4, checks=False)
    assert not report.findings
    return out


def test_the_rank_bits_of_shared_addresses() -> None:
    found = ranks("mapa.shared::cluster.u32 %r5, %r20, 2;")
    assert (found == (2 << 24 | found[0, 0] & 0xFFFFFF)).all()
    own = ranks("mov.u32 %r5, tile;")
    assert np.array_equal(own[:, 0] >> 24, np.arange(4))
    assert len(set((own & 0xFFFFFF).reshape(-1).tolist())) == 1


def test_each_lane_may_name_another_rank() -> None:
    body = """
    and.b32 %r6, %r21, 3;
    mapa.shared::cluster.u32 %r7, %r20, %r6;
    getctarank.shared::cluster.u32 %r5, %r7;"""
    assert np.array_equal(ranks(body), np.broadcast_to(np.arange(32) % 4, (4, 32)))


def test_generic_addresses() -> None:
    body = """
    cvt.u64.u32 %d7, %r20; cvta.shared.u64 %d7, %d7;
    mapa.u64 %d8, %d7, 3;
    getctarank.u64 %r5, %d8;"""
    assert (ranks(body) == 3).all()


def test_64_bit_shared_addresses() -> None:
    body = """
    cvt.u64.u32 %d7, %r20;
    mapa.shared::cluster.u64 %d8, %d7, 1;
    getctarank.shared::cluster.u64 %r5, %d8;"""
    assert (ranks(body) == 1).all()


@pytest.mark.parametrize(
    "text",
    ["mapa.shared::cluster.u32 %r5, %r20, 2;", "mov.u64 %d7, 64; getctarank.u64 %r5, %d7;"],
)
def test_outside_the_cluster(text: str) -> None:
    ptx = copy_kernel(text, ("u64",), 1024, directives=CLUSTER.format(n=2))
    assert kinds(run(ptx, np.zeros(4), grid=2)) == ["out-of-bounds"]


# A worker that takes CTAs off the grid until none is left and counts each in p0.
PERSISTENT = f"""
    mov.u32 %r30, %ctaid.x;
    mov.u32 %r31, 0;
WORK:
    shl.b32 %r32, %r30, 2; cvt.u64.u32 %d5, %r32; add.u64 %d6, %d0, %d5;
    ld.global.u32 %r33, [%d6]; add.u32 %r33, %r33, 1; st.global.u32 [%d6], %r33;
    {expect(16)}
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
        [tile], [bar];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], %r31;
    @!%p9 bra WAIT;
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
    ptx = copy_kernel(PERSISTENT, ("u64",), 1024, target="sm_100a")
    report = run(ptx, out, grid=300, block=1, checks=False, schedule=schedule, resident_clusters=4)
    assert not report.findings
    assert (out == 1).all()


def test_trying_again_after_a_failure() -> None:
    again = PERSISTENT[PERSISTENT.index(expect(16)) : PERSISTENT.index("WAIT:")]
    body = PERSISTENT.replace("@!%p1 bra DONE;", f"@%p1 bra GOON; {again} bra DONE;\nGOON:\n")
    ptx = copy_kernel(body, ("u64",), 1024, target="sm_100a")
    report = run(ptx, np.zeros(4, np.uint32), grid=4, block=1, checks=False, resident_clusters=1)
    assert kinds(report) == ["illegal-instruction"]


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
    ptx = copy_kernel(body, ("u64",), 1024, target="sm_100a", directives=CLUSTER.format(n=2))
    report = run(ptx, out, grid=2, checks=False)
    assert not report.findings
    assert (out == 2).all()


def test_dependent_grids_change_nothing() -> None:
    body = "griddepcontrol.wait; griddepcontrol.launch_dependents;"
    assert not run(copy_kernel(body, ("u64",)), np.zeros(4)).findings


@pytest.mark.parametrize(
    "text",
    [
        "mapa.u32 %r5, %r20, 1;",
        "mapa.shared::cta.u32 %r5, %r20, 1;",
        "griddepcontrol.cancel;",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::w.b32.b128 %r5, %q0;",
        "clusterlaunchcontrol.try_cancel.shared::cta.mbarrier::complete_tx::bytes.b128 "
        "[tile], [bar];",
    ],
)
def test_forms_that_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        run(copy_kernel(text, ("u64",)), np.zeros(32))
