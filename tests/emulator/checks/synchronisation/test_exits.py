"""Threads that leave while copies go on, and named barriers whose uses could mix."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.kernel import kernel, run

SEEDS = range(4)

STORE = """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    shl.b32 %r3, %r1, 2;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 128;
    cp.async.bulk.commit_group;
    WAIT
DONE:
"""


@pytest.mark.parametrize(("wait", "expected"), [
    ("cp.async.bulk.wait_group 0;", []),
    ("cp.async.bulk.wait_group.read 0;", []),
    ("", ["isa: early-exit"]),
])  # fmt: skip
@pytest.mark.parametrize("seed", SEEDS)
def test_leaving_while_a_store_reads(wait, expected, seed):
    out = np.zeros(32, np.uint32)
    report = run(kernel(STORE.replace("WAIT", wait), shared=128), out, seed=seed)
    found = [f"{finding.severity.value}: {finding.kind}" for finding in report.findings]
    assert found == expected
    assert (out == np.arange(32)).all()


LOAD = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    mbarrier.init.shared::cta.b64 [tile], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [tile], 16;
    STORE
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+16], [%d0], 16, [tile];
DONE:
"""


@pytest.mark.parametrize("store", [
    "",
    "cp.async.bulk.global.shared::cta.bulk_group [%d0], [tile+128], 16;",
])  # fmt: skip
def test_leaving_while_a_load_writes(store):
    """An error, whether or not there is a store, too, that nobody waits for."""
    report = run(kernel(LOAD.replace("STORE", store), shared=256), np.zeros(32, np.uint32))
    severities = {one.severity.value for one in report.findings if one.kind == "early-exit"}
    assert severities == ({"error", "isa"} if store else {"error"})


# Two warps use barrier 1 for themselves, one after the other; MEET is what orders the two uses.
BARRIERS = """
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra SECOND;
    bar.sync 1, 32;
    FIRST
    bra DONE;
SECOND:
    MEET
    bar.sync 1, 32;
DONE:
"""


@pytest.mark.parametrize(("first", "meet", "expected"), [
    ("bar.arrive 2, 64;", "bar.sync 2, 64;", []),
    ("bar.sync 2, 64;", "bar.sync 2, 64;", []),
    ("", "", ["barrier-misuse"]),
])  # fmt: skip
@pytest.mark.parametrize("seed", SEEDS)
def test_uses_of_a_named_barrier_do_not_mix(first, meet, expected, seed):
    text = kernel(BARRIERS.replace("FIRST", first).replace("MEET", meet))
    report = run(text, np.zeros(1, np.uint32), block=64, seed=seed)
    assert [finding.kind for finding in report.findings] == expected
