"""Races in global memory, inside a cluster and between clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fa4gen.emulator.state.async_ops import GlobalRange
from tests.emulator.checks.world import World

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


def test_fences_make_relaxed_atomics_synchronise():
    world = World(clusters=2)
    one, two = world.wg(0, cluster=0), world.wg(0, cluster=1)
    access(world, one, "write", 256)
    world.sync(one, key="one")
    world.fence(one, "membar.gl", [0])
    sync(world, one, "relaxed", reads=True, writes=True)
    sync(world, two, "relaxed", reads=True, writes=True)
    world.fence(two, "membar.gl", [0])
    world.sync(two, key="two")
    access(world, two, "read", 256)
    assert world.found() == []


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
