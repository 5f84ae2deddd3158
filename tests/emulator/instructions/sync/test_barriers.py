from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Verdict
from tests.emulator.kernel import SYNC, clean, kernel, kinds, launch, reported, run

EXCHANGE = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    mov.u32 %r30, %ntid.x;
    shl.b32 %r22, %r21, 2;
    add.u32 %r23, %r20, %r22;
    st.shared.u32 [%r23], %r21;
    BARRIER
    sub.u32 %r24, %r30, 1;
    sub.u32 %r24, %r24, %r21;
    shl.b32 %r24, %r24, 2;
    add.u32 %r24, %r24, %r20;
    ld.shared.u32 %r25, [%r24];
    cvt.u64.u32 %d1, %r22;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r25;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 3, 160;", "barrier.cta.sync 1;"])
def test_a_barrier_orders_stores_before_loads(barrier: str, schedule: str) -> None:
    out = np.zeros(160, np.uint32)
    clean(EXCHANGE.replace("BARRIER", barrier), out, shared=1024, block=160, schedule=schedule)
    assert out.tolist() == list(range(159, -1, -1))


def test_without_a_barrier_it_is_a_race_in_every_schedule() -> None:
    for seed in range(5):
        out = np.zeros(160, np.uint32)
        body = EXCHANGE.replace("BARRIER", "")
        assert "race" in reported(body, out, shared=1024, block=160, seed=seed)


def ways(first: str, others: str, threads: int = 32) -> str:
    """The first threads take one way, the others another."""
    return f"""
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    setp.lt.u32 %p1, %r21, {threads};
    @%p1 bra FIRST;
    {others}
    bra DONE;
FIRST:
    {first}
DONE:
"""


def test_arrive_does_not_wait_and_sync_does() -> None:
    store = "setp.eq.u32 %p2, %r21, 0; @%p2 st.shared.u32 [%r20], 42; bar.arrive 1, 64;"
    load = "bar.sync 1, 64; ld.shared.u32 %r22, [%r20]; st.global.u32 [%d0], %r22;"
    out = np.zeros(1, np.uint32)
    report = launch(ways(store, load), out, shared=64, block=64)
    assert report.verdict in (Verdict.CLEAN, Verdict.REVIEW), str(report)
    assert out[0] == 42


@pytest.mark.parametrize(
    ("reduction", "kind", "expected"),
    [("popc.u32", "%r22", 10), ("or.pred", "%p5", 1), ("and.pred", "%p5", 0)],
)
def test_reductions(reduction: str, kind: str, expected: int) -> None:
    body = f"""
    mov.u32 %r21, %tid.x;
    setp.lt.u32 %p1, %r21, 10;
    bar.red.{reduction} {kind}, 0, %p1;
    {"selp.u32 %r22, 1, 0, %p5;" if kind == "%p5" else ""}
    mul.wide.u32 %d1, %r21, 4;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r22;
"""
    out = np.zeros(64, np.uint32)
    clean(body, out, block=64)
    assert (out == expected).all()


def test_threads_that_disagree_on_the_count_are_told() -> None:
    body = ways("bar.sync 1, 96;", "bar.sync 1, 64;")
    assert "barrier-misuse" in reported(body, shared=8, block=64)


def test_an_aligned_barrier_in_half_a_warp_is_told() -> None:
    body = ways("bar.sync 0;", "bar.sync 0;", 16)
    assert "partial-warp" in reported(body, shared=8, block=32)


def test_a_barrier_that_a_warp_never_reaches_is_a_deadlock() -> None:
    (finding,) = launch(ways("bar.sync 1, 64;", ""), shared=8, block=64).findings
    assert finding.kind == "deadlock"
    assert "named barrier 1 (32 of 64 threads have arrived" in finding.message


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("left", [20, 32])
@pytest.mark.parametrize(
    "barrier", ["barrier.sync 0;", "bar.sync 0;", "bar.red.popc.u32 %r22, 0, %p1;"]
)
def test_who_has_left_is_not_waited_for(barrier: str, left: int, schedule: str) -> None:
    body = ways("exit;", f"{barrier} st.global.u32 [%d0], 1;", left)
    out = np.zeros(1, np.uint32)
    launch(body, out, shared=8, block=96, schedule=schedule, checks=False)
    assert out[0] == 1


def test_who_arrives_at_a_named_barrier_and_leaves_counts() -> None:
    body = """
    mov.u32 %r21, %tid.x;
    setp.ge.u32 %p1, %r21, 32;
    @%p1 bra OTHERS;
    bar.sync 1, 96;
    st.global.u32 [%d0], 1;
    exit;
OTHERS:
    setp.ge.u32 %p1, %r21, 64;
    @%p1 bra.uni LAST;
    bar.arrive 1, 96;
    exit;
LAST:
    LOOP
"""
    late = """mov.u32 %r22, 0;
AGAIN: add.u32 %r22, %r22, 1; setp.lt.u32 %p2, %r22, 300; @%p2 bra AGAIN;
    bar.arrive 1, 96;"""
    for schedule in SCHEDULES:
        out = np.zeros(1, np.uint32)
        options = {"block": 96, "schedule": schedule, "checks": False}
        clean(body.replace("LOOP", late), out, **options)
        assert out[0] == 1
        (found,) = launch(body.replace("LOOP", ""), out, **options).findings
        assert found.kind == "deadlock"
        assert "(64 of 96 threads have arrived" in found.message


CLUSTER = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %cluster_ctarank;
    xor.b32 %r22, %r21, 1;
    mapa.shared::cluster.u32 %r23, %r20, %r22;
    mov.u32 %r24, %tid.x;
    shl.b32 %r25, %r24, 2;
    add.u32 %r23, %r23, %r25;
    mad.lo.u32 %r26, %r21, 100, %r24;
    SYNC
    st.shared::cluster.u32 [%r23], %r26;
    SYNC
    add.u32 %r27, %r20, %r25;
    ld.shared.u32 %r28, [%r27];
    mad.lo.u32 %r29, %r21, 128, %r25;
    cvt.u64.u32 %d1, %r29;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r28;
""".replace("SYNC", SYNC)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cluster_barrier_orders_stores_to_a_peer(schedule: str) -> None:
    out = np.zeros(64, np.uint32)
    clean(CLUSTER, out, shared=256, grid=2, cluster=2, schedule=schedule)
    assert out.tolist() == [*range(100, 132), *range(32)]


def test_arriving_twice_or_waiting_without_arriving_is_misuse() -> None:
    for body in ("barrier.cluster.arrive; barrier.cluster.arrive;", "barrier.cluster.wait;"):
        assert reported(body, block=32, checks=False) == ["barrier-misuse"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", [64, 128])
def test_a_use_takes_no_more_warps_than_it_counts(count: int, schedule: str) -> None:
    """Four warps at a barrier of two: two uses, which nothing keeps apart."""
    found = reported(f"bar.sync 1, {count};", block=128, schedule=schedule)
    assert found == ([] if count == 128 else ["barrier-misuse"])


LEAVERS = """
    mov.u32 %r20, tile; mov.u32 %r21, %tid.x; mov.u32 %r22, %cluster_ctarank;
    mad.lo.u32 %r22, %r22, 128, %r21;
    setp.lt.u32 %p0, %r22, 32;
    @%p0 bra SLOW;
    barrier.cluster.arrive.release;
    setp.ge.u32 %p1, %r22, 64;
    @%p1 exit;
    barrier.cluster.wait.acquire;
    mapa.shared::cluster.u32 %r23, %r20, 0;
    ld.shared::cluster.u32 %r24, [%r23];
    mul.wide.u32 %d1, %r22, 4;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r24;
    exit;
SLOW:
    mov.u32 %r25, 0;
LOOP:
    add.u32 %r25, %r25, 1;
    setp.lt.u32 %p2, %r25, 300;
    @%p2 bra LOOP;
    setp.eq.u32 %p3, %r21, 0;
    @%p3 st.shared.u32 [%r20], 7;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
"""
"""A kernel of one CTA or two: 32 threads write, 32 read, the others arrive at the barrier and
leave."""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("ctas", [1, 2])
def test_who_arrives_at_the_cluster_barrier_and_leaves_opens_it_for_nobody(
    ctas: int, schedule: str
) -> None:
    ptx = kernel(LEAVERS, shared=8)
    for seed in range(3):
        out = np.zeros(128, np.uint32)
        report = run(ptx, out, block=128, grid=ctas, cluster=ctas, seed=seed, schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        assert (out[32:64] == 7).all()


def test_who_leaves_without_arriving_at_the_cluster_barrier_is_not_waited_for() -> None:
    body = """
    mov.u32 %r21, %tid.x;
    setp.lt.u32 %p1, %r21, 40;
    @%p1 exit;
    barrier.cluster.arrive; barrier.cluster.wait;
    barrier.cluster.arrive; barrier.cluster.wait;
    st.global.u32 [%d0], 1;
"""
    for schedule in SCHEDULES:
        out = np.zeros(1, np.uint32)
        clean(body, out, block=64, grid=2, cluster=2, schedule=schedule, checks=False)
        assert out[0] == 1


def test_a_cluster_barrier_that_a_warp_never_reaches_is_a_deadlock() -> None:
    body = """
    mov.u32 %r21, %tid.x; mov.u32 %r22, %cluster_ctarank;
    setp.eq.u32 %p1, %r21, 40;
    setp.eq.and.u32 %p1, %r22, 1, %p1;
    @%p1 bra STUCK;
    barrier.cluster.arrive;
    setp.lt.u32 %p2, %r21, 32;
    @%p2 exit;
    barrier.cluster.wait;
    exit;
STUCK:
    bar.sync 1, 64;
"""
    report = launch(body, block=64, grid=2, cluster=2, checks=False)
    assert "partial-warp" in kinds(report)
    waits = next(one.message for one in report.findings if one.kind == "deadlock")
    assert "(1 threads have not arrived, first: CTA 1, thread 40;" in waits
