"""Threads that leave while copies go on, and named barriers whose uses could mix."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.instructions.copy import copies
from tests.emulator.instructions.copy.copies import WAIT, expect, first
from tests.emulator.instructions.tcgen05 import kernels as tensor_memory
from tests.emulator.instructions.tcgen05.products import COMMIT, SYNC, by_thread_0
from tests.emulator.instructions.wgmma import test_wgmma as wgmma
from tests.emulator.kernel import SYNC as MEET
from tests.emulator.kernel import launch, reported

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
    report = launch(STORE.replace("WAIT", wait), out, shared=128, seed=seed)
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
    report = launch(LOAD.replace("STORE", store), np.zeros(32, np.uint32), shared=256)
    severities = {one.severity.value for one in report.findings if one.kind == "early-exit"}
    assert severities == ({"error", "isa"} if store else {"error"})


# ---- what is missing, by kind of operation


def says(report) -> list[tuple[str, str]]:
    """Severities of the early exits, and what their messages ask for."""
    found = [one for one in report.findings if one.kind == "early-exit"]
    return [(one.severity.value, one.message.rpartition(": ")[2]) for one in found]


LATER = "the CTA has to wait for its mbarrier, or for that of a later commit of its thread"
SIGNAL = "the CTA has to wait for the mbarrier that it signals"
GROUPS = "its thread has to wait for it, by cp.async.bulk.commit_group and .wait_group.read"
COMMITTED = "cp.async.bulk.commit_group;"


@pytest.mark.parametrize("operation", [
    "cp.async.bulk.global.shared::cta.bulk_group [%d0], [tile], 128;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [tile], 128;",
])  # fmt: skip
@pytest.mark.parametrize(("wait", "waited"), [
    ("", False),
    (COMMITTED, False),
    ("cp.async.bulk.wait_group.read 0;", False),
    (COMMITTED + "cp.async.bulk.wait_group.read 1;", False),
    (COMMITTED + "cp.async.bulk.wait_group.read 0;", True),
])  # fmt: skip
def test_stores_and_reductions_of_bulk_groups(operation, wait, waited):
    body = first("fence.proxy.async.shared::cta;" + operation + wait)
    out = np.zeros(128, np.uint8)
    report = copies.launch(body, out, checks=["early-exit"])
    assert says(report) == ([] if waited else [("isa", GROUPS)])


@pytest.mark.parametrize(("wait", "waited"), [
    ("", False), ("cp.async.commit_group;", False), ("cp.async.wait_all;", True),
])  # fmt: skip
def test_copies_of_threads(wait, waited):
    body = "@%p8 cp.async.ca.shared.global [tile], [%d0], 16;" + wait
    report = copies.launch(body, np.zeros(16, np.uint8))
    asked = "its threads have to wait for it, by cp.async.wait_all or .wait_group"
    assert says(report) == ([] if waited else [("error", asked)])


@pytest.mark.parametrize("last", ["wgmma.wait_group", "wgmma.commit_group"])
def test_products_of_hopper(last):
    ptx = wgmma.matrix_kernel()
    report, _ = wgmma.launch(ptx[: ptx.index(last)] + "ret;}")
    assert says(report) == [("error", "wgmma.commit_group and .wait_group are missing")]


@pytest.mark.parametrize("waited", [True, False])
def test_tensor_core_copies_of_blackwell(waited):
    start = """
    shr.u32 %r30, %r2, 4; or.b32 %r30, %r30, 0x80000; mov.b64 %d8, {%r30, 0x4010};
    """
    copy = "tcgen05.cp.cta_group::1.128x256b [%r9], %d8;"
    body = start + SYNC + by_thread_0(copy + COMMIT) + (tensor_memory.wait() if waited else "")
    source = np.zeros(32768, np.uint8)
    text = tensor_memory.program(body, size=32768)
    report = tensor_memory.launch(text, source, np.zeros(1, np.uint32))
    asked = "the CTA has to wait for the mbarrier of a tcgen05.commit after it"
    assert says(report) == ([] if waited else [("error", asked), ("isa", LATER)])


# One product and its commits; the first barrier is BARRIER, the second EXTRA.
MORE_BARRIERS = """
    @%p2 mbarrier.init.shared::cta.b64 [tile+EXTRA], 1;
    fence.mbarrier_init.release.cluster;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("order", "waited", "missing"), [
    (("EXTRA", "BARRIER"), True, None),
    (("BARRIER", "EXTRA"), True, 16),
    (("BARRIER",), False, 8),
])  # fmt: skip
def test_commits_to_mbarriers_of_the_own_cta(order, waited, missing, schedule):
    """The last of a thread has to be waited for, which speaks for those before it."""
    commits = "".join(COMMIT.replace("BARRIER", place) for place in order)
    end = tensor_memory.wait() if waited else ""
    text = tensor_memory.program(MORE_BARRIERS + SYNC + by_thread_0(commits) + end)
    nothing = np.zeros(1, np.uint32)
    report = tensor_memory.launch(text, nothing, nothing, schedule=schedule)
    assert says(report) == ([] if missing is None else [("isa", LATER)])
    assert missing is None or f" mbarrier tile + {missing}" in str(report)
    assert len(report.findings) == (missing is not None)


@pytest.mark.parametrize("waited", [True, False])
def test_an_arrival_that_follows_the_copies_of_a_thread(waited):
    """It is one even where no copy is under way."""
    body = "@%p8 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];" + (WAIT if waited else "")
    report = copies.launch(body, np.zeros(16, np.uint8))
    assert says(report) == ([] if waited else [("isa", SIGNAL)])
    assert waited or " signals mbarrier bar" in str(report)


# Rank 0 does something with the tile of rank 1, which expects bytes at its barrier.
PEERS = """
    mov.u32 %r22, %cluster_ctarank;
    setp.ne.u32 %p7, %r22, 0;
    mapa.shared::cluster.u32 %r23, %r20, 1;
    mov.u32 %r24, bar;
    mapa.shared::cluster.u32 %r24, %r24, 1;
    and.pred %p10, %p7, %p8;
    mov.u16 %h1, 2;
    MEET
    @%p10 EXPECT
    @%p7 bra ISSUED;
    @!%p8 bra ISSUED;
    fence.proxy.async;
    OPERATION
ISSUED:
    @!%p7 bra OVER;
    WAIT
OVER:
    LAST
""".replace("MEET", MEET)
DONE = ".mbarrier::complete_tx::bytes"
READS_OWN = [
    f"cp.async.bulk.shared::cluster.shared::cta{DONE} [%r23+1024], [%r20], 16, [%r24];",
    f"cp.reduce.async.bulk.shared::cluster.shared::cta{DONE}.add.u32 [%r23+1024], [%r20], 16,"
    " [%r24];",
]
WRITES_ONLY = [
    f"st.async.shared::cluster{DONE}.v4.b32 [%r23+1024], {{%r22, %r22, %r22, %r22}}, [%r24];",
    f"cp.async.bulk.shared::cluster.global{DONE}.multicast::cluster [tile+1024], [%d0], 16, [bar],"
    " %h1;",
]


@pytest.mark.parametrize("operation", READS_OWN + WRITES_ONLY)
@pytest.mark.parametrize(("waits", "meets"), [(False, False), (True, False), (True, True)])
def test_operations_on_the_shared_memory_of_a_peer(operation, waits, meets):
    """The peer has to wait, and has to tell the CTA whose shared memory is read."""
    body = PEERS.replace("EXPECT", expect(16)).replace("OPERATION", operation)
    body = body.replace("WAIT", WAIT if waits else "").replace("LAST", MEET if meets else "")
    report = copies.launch(body, np.zeros(16, np.uint8), ctas=2, checks=["early-exit"])
    good = waits and (meets or operation in WRITES_ONLY)
    assert says(report) == ([] if good else [("error", SIGNAL)])


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
    body = BARRIERS.replace("FIRST", first).replace("MEET", meet)
    assert reported(body, block=64, seed=seed) == expected
