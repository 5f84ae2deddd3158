"""Races in global memory, inside a cluster and between clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from fa4gen.emulator.state.async_ops import GlobalRange
from tests.emulator.checks.world import World
from tests.emulator.kernel import kernel, run

RACE = [("race", "error")]


def access(world, wg, kind, start, size=4, lanes=None, text=None):
    mask = world.lanes(wg, lanes)
    count = wg.lanes if mask is None else int(mask.sum())
    at = world.array + start + size * np.arange(count)
    site = world.site(text or {"read": "ld.global.b32", "write": "st.global.b32"}[kind])
    world.observer.global_access(wg, mask, at.astype(np.uint64), size, kind, site)


def sync(world, wg, order, *, reads=False, writes=False, scope="gpu", at=0, lanes=(0,)):
    address = np.array([world.array + at] * len(lanes), np.uint64)
    site = world.site(f"atom.{order}.{scope}.add")
    world.observer.atomic_sync(
        wg, world.lanes(wg, list(lanes)), address, order, scope, reads, writes, site
    )


@dataclass(frozen=True)
class Rows(GlobalRange):
    rows: tuple[np.ndarray, int] = ()


def rows(world, start, count, stride, width):
    starts = world.array + start + stride * np.arange(count)
    return Rows(int(starts[0]), int(starts[-1]) + width, (starts, width))


def test_threads_of_a_cta():
    for ordered in (True, False):
        world = World()
        one, two = world.wg(0), world.wg(1)
        access(world, one, "write", 0)
        if ordered:
            world.sync(one, two)
        access(world, two, "read", 0)
        assert world.found() == ([] if ordered else RACE)
        assert ordered or "array + 0 after the write by thread 0" in world.text()


@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", []),
    ("cluster", "cta", RACE),  # what is cached of global memory stays
    ("cta", "cluster", RACE),
])  # fmt: skip
def test_scopes_of_a_hand_over_between_ctas_matter(release, acquire, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    access(world, mine, "write", 0)
    world.arrive(mine, barrier, release=release)
    world.wait(peer, barrier, acquire=acquire)
    access(world, peer, "read", 0)
    assert world.found() == expected


def test_overwriting_what_was_read_before_anybody_wrote():
    for ordered in (True, False):
        world = World()
        one, two = world.wg(0), world.wg(1)
        access(world, one, "read", 70_000)
        if ordered:
            world.sync(one, two)
        access(world, two, "write", 70_000)
        assert world.found() == ([] if ordered else RACE)


@pytest.mark.parametrize("reads", [100, 500, 3000])
def test_a_page_remembers_its_readers_however_many_there_are(reads):
    """The last read alone is at odds with the write."""
    for ordered in (True, False):
        world = World()
        one, two = world.wg(0), world.wg(1)
        for number in range(reads - 1):
            access(world, one, "read", 4 * number, lanes=[0])
        world.sync(one, two)
        access(world, one, "read", 4 * reads, lanes=[0])
        if ordered:
            world.sync(one, two)
        access(world, two, "write", 4 * reads, lanes=[0])
        assert world.found() == ([] if ordered else RACE)


def test_clusters_write_the_same_place():
    world = World(clusters=2)
    access(world, world.wg(0, cluster=0), "write", 256)
    access(world, world.wg(0, cluster=1), "write", 768)
    assert world.found() == []
    access(world, world.wg(0, cluster=1), "write", 256 + 508)
    assert world.found() == RACE
    assert "cluster 0" in world.text()


BOTH_STORE = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r1, 8; add.u64 %d2, %d0, %d1;
    add.u32 %r3, %r1, 5; mul.lo.u32 %r4, %r2, FACTOR; setp.eq.u32 %p1, %r1, 9;
    @%p1 add.u32 %r3, %r3, %r4;
    st.global.v2.u32 [%d2+OFFSET], {%r3, %r3};
    THEN
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("factor", "then", "expected"), [
    (0, "", [("race", "review")]),
    (1, "", [("race", "error"), ("race", "review")]),
    (0, "ld.global.u32 %r5, [%d2+OFFSET];", [("race", "error"), ("race", "review")]),
])  # fmt: skip
@pytest.mark.parametrize("offset", [0, 65_536 - 128])
def test_ctas_store_the_same_values(factor, then, offset, expected, schedule):
    """For review where all that two store is equal; a read of it is at odds with either."""
    body = BOTH_STORE.replace("FACTOR", str(factor)).replace("THEN", then)
    out = np.zeros(40_000, np.uint32)
    ptx = kernel(body.replace("OFFSET", str(offset)))
    report = run(ptx, out, grid=2, schedule=schedule, resident_clusters=2)
    found = [(one.kind, one.severity.value) for one in report.findings]
    assert set(found) == set(expected)
    assert "(both store the same value)" in str(report)


def test_neighbouring_halves_of_clusters():
    world = World(clusters=2)
    access(world, world.wg(0, cluster=0), "write", 0, size=2, lanes=[0])
    access(world, world.wg(0, cluster=1), "write", 2, size=2, lanes=[0])
    assert world.found() == []


def test_clusters_read_the_same_place():
    world = World(clusters=2)
    access(world, world.wg(0, cluster=0), "read", 256)
    access(world, world.wg(0, cluster=1), "read", 256)
    assert world.found() == []
    access(world, world.wg(0, cluster=0), "write", 256)
    assert world.found() == RACE


@pytest.mark.parametrize(("release", "acquire", "scope", "good"), [
    ("release", "acquire", "gpu", True), ("acq_rel", "acq_rel", "sys", True),
    ("relaxed", "acquire", "gpu", False), ("release", "acquire", "cta", False),
])  # fmt: skip
def test_clusters_synchronise_by_a_flag(release, acquire, scope, good):
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    access(world, one, "write", 256)
    world.sync(one, key="one")
    sync(world, one, release, writes=True, scope=scope)
    sync(world, two, acquire, reads=True, scope=scope)
    world.sync(two, key="two")
    access(world, two, "read", 256)
    assert world.found() == ([] if good else RACE)


@pytest.mark.parametrize(("before", "after", "good"), [
    ("membar.gl", "membar.gl", True), ("fence.acq_rel.gpu", "fence.acq_rel.gpu", True),
    ("fence.sc.sys", "membar.sys", True), ("fence.release.gpu", "fence.acquire.gpu", True),
    (None, "membar.gl", False), ("membar.gl", None, False), (None, None, False),
    ("fence.acq_rel.cta", "membar.gl", False), ("membar.gl", "fence.acq_rel.cta", False),
    ("fence.acq_rel.cluster", "membar.gl", False), ("fence.acquire.gpu", "membar.gl", False),
    ("membar.gl", "fence.release.gpu", False), ("fence.proxy.async.global", "membar.gl", False),
    ("membar.gl", "fence.acquire.sync_restrict::shared::cluster.cluster", False),
])  # fmt: skip
def test_relaxed_atomics_synchronise_by_the_fences_beside_them(before, after, good):
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    access(world, one, "write", 256)
    world.sync(one, key="one")
    if before:
        world.fence(one, before, [0])
    sync(world, one, "relaxed", reads=True, writes=True)
    sync(world, two, "relaxed", reads=True, writes=True)
    if after:
        world.fence(two, after, [0])
    world.sync(two, key="two")
    access(world, two, "read", 256)
    assert world.found() == ([] if good else RACE)


@pytest.mark.parametrize(("release", "acquire"), [("relaxed", "acquire"), ("release", "relaxed")])
def test_a_fence_too_early_does_nothing(release, acquire):
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    world.fence(one, "membar.gl")
    access(world, one, "write", 256)
    world.sync(one, key="one")
    sync(world, one, release, writes=True)
    world.fence(two, "membar.gl")
    sync(world, two, acquire, reads=True)
    world.sync(two, key="two")
    access(world, two, "read", 256)
    assert world.found() == RACE


@pytest.mark.parametrize("fenced", [True, False])
def test_the_last_to_count_sets_a_counter_to_zero(fenced):
    """No store comes before the branch that depends on what a relaxed read has seen."""
    world = World(clusters=2)
    last, other = world.wg(0, cluster=0), world.wg(0, cluster=1)
    access(world, last, "atomic", 256, lanes=[0], text="atom.global.add.u32")
    access(world, other, "atomic", 256, lanes=[0], text="atom.global.add.u32")
    if fenced:
        world.fence(other, "membar.gl", [0])
    sync(world, other, "relaxed", reads=True, writes=True)
    sync(world, last, "relaxed", reads=True, writes=True)
    access(world, last, "write", 256, lanes=[0])
    assert world.found() == ([] if fenced else RACE)
    access(world, other, "read", 256, lanes=[0])
    assert RACE[0] in world.found()


def test_fences_of_all_threads_before_and_after_barriers():
    """By each thread for itself, with a barrier to the one thread that signals or waits."""
    world = World(clusters=2)
    threads = [(world.wg(0, cluster=one), world.wg(1, cluster=one)) for one in range(2)]
    (one, other), (two, another) = threads
    world.fence(one, "membar.gl")
    access(world, other, "write", 256)
    world.fence(other, "membar.gl")
    world.sync(one, other, key="one")
    access(world, other, "write", 2048)
    world.fence(other, "membar.gl")  # nothing orders this one and the atomic
    sync(world, one, "relaxed", reads=True, writes=True)
    sync(world, two, "relaxed", reads=True)
    world.sync(two, another, key="two")
    world.fence(another, "membar.gl")
    access(world, another, "read", 256)
    assert world.found() == []
    access(world, another, "read", 2048)
    assert world.found() == RACE


@pytest.mark.parametrize("times", [1, 2, 7, 8, 9, 20])
def test_every_release_before_the_fence_counts(times):
    """However often a flag is read before it, with other values or the same."""
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    for number in range(times):
        access(world, one, "write", 256 + 4 * number, lanes=[0])
        sync(world, one, "release", writes=True)
        sync(world, two, "relaxed", reads=True)
        sync(world, two, "relaxed", reads=True)
    world.fence(two, "membar.gl", [0])
    for number in range(times):
        access(world, two, "read", 256 + 4 * number, lanes=[0])
    assert world.found() == []
    access(world, one, "write", 1024, lanes=[0])
    sync(world, one, "release", writes=True)
    sync(world, two, "relaxed", reads=True)
    access(world, two, "read", 1024, lanes=[0])
    assert world.found() == RACE


@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("cluster", "cluster", True), ("gpu", "cluster", True), ("cta", "gpu", False),
    ("gpu", "cta", False), ("cta", "cta", False),
])  # fmt: skip
@pytest.mark.parametrize("fenced", [False, True])
def test_scopes_between_the_ctas_of_a_cluster(release, acquire, good, fenced):
    """Each has to include the other CTA; fences count by their own scopes."""
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    access(world, mine, "write", 0, lanes=[0])
    if fenced:
        world.fence(mine, f"fence.acq_rel.{release}", [0])
        sync(world, mine, "relaxed", writes=True, at=4096)
        sync(world, peer, "relaxed", reads=True, at=4096)
        world.fence(peer, f"fence.acq_rel.{acquire}", [0])
    else:
        sync(world, mine, "release", writes=True, at=4096, scope=release)
        sync(world, peer, "acquire", reads=True, at=4096, scope=acquire)
    access(world, peer, "read", 0, lanes=[0])
    assert world.found() == ([] if good else RACE)


@pytest.mark.parametrize("scope", ["cta", "gpu"])
@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("release", "acquire", True), ("release", "relaxed", False), ("relaxed", "acquire", False),
])  # fmt: skip
def test_threads_of_a_cta_synchronise_by_a_flag(scope, release, acquire, good):
    world = World(ctas=2)
    one, two = world.wg(0), world.wg(1)
    access(world, one, "write", 0, lanes=[0])
    sync(world, one, release, writes=True, at=4096, scope=scope)
    sync(world, two, acquire, reads=True, at=4096, scope=scope)
    access(world, two, "read", 0, lanes=[0])
    assert world.found() == ([] if good else RACE)


def test_what_was_written_after_the_release():
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    sync(world, one, "release", writes=True)
    access(world, one, "write", 256)
    sync(world, two, "acquire", reads=True)
    access(world, two, "read", 256)
    assert world.found() == RACE


def test_atomics_and_strong_accesses_do_not_race():
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    access(world, one, "atomic", 256, text="red.global.add.f32")
    access(world, two, "atomic", 256, text="red.global.add.f32")
    access(world, two, "write", 256, text="st.release.gpu.global.u32")
    access(world, one, "read", 256, text="ld.acquire.gpu.global.u32")
    assert world.found() == []
    access(world, one, "read", 256)
    assert world.found() == RACE


@pytest.mark.parametrize(("first", "second", "expected"), [
    ("gpu", "gpu", []), ("sys", "gpu", []), ("cta", "gpu", RACE), ("gpu", "cta", RACE),
    ("cluster", "gpu", RACE),
])  # fmt: skip
def test_atomics_of_other_clusters_need_the_scope_of_the_gpu(first, second, expected):
    world = World(clusters=2)
    one, two = world.wg(0), world.wg(0, cluster=1)
    access(world, one, "atomic", 256, lanes=[0], text=f"red.relaxed.{first}.global.add.u32")
    access(world, two, "atomic", 256, lanes=[0], text=f"red.relaxed.{second}.global.add.u32")
    assert world.found() == expected


@pytest.mark.parametrize(("scope", "expected"), [("cluster", []), ("cta", RACE)])
def test_atomics_of_other_ctas_need_the_scope_of_the_cluster(scope, expected):
    world = World(ctas=2)
    one, two = world.wg(0), world.wg(0, 1)
    for wg in (one, two):
        access(world, wg, "atomic", 256, lanes=[0], text=f"red.relaxed.{scope}.global.add.u32")
    assert world.found() == expected


def test_atomics_in_a_flag_order_threads_of_a_cluster():
    world = World()
    one, two = world.wg(0), world.wg(1)
    access(world, one, "write", 0, lanes=[0])
    sync(world, one, "release", writes=True, at=4096)
    sync(world, two, "acquire", reads=True, at=4096)
    access(world, two, "read", 0, lanes=[0])
    assert world.found() == []


# ---- the async proxy


@pytest.mark.parametrize("fence", [True, False])
def test_generic_writes_that_a_copy_reads(fence):
    world = World()
    one, two = world.wg(0), world.wg(1)
    access(world, one, "write", 0)
    if fence:
        world.fence(one, "fence.proxy.async.global")
    world.sync(one, two)
    reads = [GlobalRange(world.array, world.array + 512)]
    world.operation(two, reads=reads, writes=[(2048, 2560)])
    assert world.found() == ([] if fence else [("missing-proxy-fence", "error")])


@pytest.mark.parametrize(("kind", "good"), [("complete", True), ("read", False)])
def test_reading_what_a_bulk_store_wrote(kind, good):
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.fence(one)
    world.sync(one)
    op = world.operation(
        one,
        "bulk store",
        reads=[(2048, 2560)],
        writes=[GlobalRange(world.array, world.array + 512)],
    )
    world.observed(one, op, lanes=[0], kind=kind)
    world.sync(one, two)
    access(world, two, "read", 0)
    assert world.found() == ([] if good else RACE)


def test_boxes_of_clusters_side_by_side():
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    world.operation(one, "tensor store", writes=[rows(world, 0, 64, 4096, 128)])
    world.operation(two, "tensor store", writes=[rows(world, 128, 64, 4096, 128)])
    assert world.found() == []
    world.operation(two, "tensor store", writes=[rows(world, 64, 1, 4096, 128)])
    assert world.found() == RACE


def test_reductions_into_the_same_place():
    world = World(clusters=2)
    for cluster in range(2):
        world.operation(
            world.wg(0, cluster=cluster),
            "bulk reduction",
            writes=[GlobalRange(world.array, world.array + 200_000)],
        )
    assert world.found() == []
