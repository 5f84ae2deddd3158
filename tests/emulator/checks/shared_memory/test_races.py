"""Races in shared memory between threads and asynchronous operations."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator.state.machine import SharedRange
from tests.emulator.checks.world import World

RACE = [("race", "error")]


def test_unordered_read_of_another_threads_write():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.read(two, 2048)
    assert world.found() == RACE
    assert "thread 0 of CTA 0" in world.text()
    assert "tile + 1024" in world.text()


def test_a_barrier_orders():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.sync(one, two)
    world.read(two, 2048)
    assert world.found() == []


def test_own_accesses_need_no_barrier():
    world = World()
    one = world.wg(0)
    world.write(one, 2048)
    world.read(one, 2048)
    world.write(one, 2048)
    assert world.found() == []


def test_a_write_after_the_barrier_is_not_covered():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.sync(one, two)
    world.write(one, 2048)
    world.read(two, 2048)
    assert world.found() == RACE


def test_overwriting_what_others_read():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.sync(one, two)
    world.read(two, 2048)
    world.write(one, 2048)
    assert world.found() == RACE
    assert "a read by thread 128" in world.text()


def test_overwriting_after_the_readers_said_so():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.sync(one, two)
    world.read(two, 2048)
    world.sync(one, two)
    world.write(one, 2048)
    assert world.found() == []


def test_neighbouring_halves_do_not_race():
    world = World(threads=64)
    wg = world.wg()
    world.write(wg, 2048, size=2)
    world.sync(wg)
    world.read(wg, [2048 + 2 * (63 - lane) for lane in range(64)], size=2)
    assert world.found() == []


def test_one_half_races():
    world = World(threads=64)
    wg = world.wg()
    world.write(wg, [2048], size=2, lanes=[0])
    world.write(wg, [2050], size=2, lanes=[40])
    assert world.found() == []
    world.write(wg, [2048], size=2, lanes=[40])
    assert world.found() == RACE


def test_wide_accesses_cover_all_their_bytes():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048, size=16)
    world.read(two, [2048 + 16 * 127 + 12], lanes=[5])
    assert world.found() == RACE


def test_atomics_do_not_race_among_themselves():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, [2048], lanes=[0])
    world.sync(one, two)
    world.access(one, "atomic", [2048] * 128)
    world.access(two, "atomic", [2048] * 128)
    assert world.found() == []
    world.read(one, [2048], lanes=[0])
    assert world.found() == RACE


def test_lanes_that_write_the_same_word_are_for_review():
    world = World()
    world.write(world.wg(), [2048] * 128)
    assert world.found() == [("race", "review")]


def test_reading_what_nobody_wrote():
    world = World()
    world.read(world.wg(), 2048)
    assert world.found() == [("uninitialised", "error")]


def test_an_elected_arrival_needs_the_warp_to_meet():
    for met in (False, True):
        world = World()
        one, two = world.wg(0), world.wg(1)
        barrier = world.barrier(one, 1024, 1)
        world.sync(one, two)
        world.write(one, 2048, lanes=slice(0, 32))
        if met:
            world.observer.warp_sync(one, world.lanes(one, slice(0, 32)))
        world.arrive(one, barrier, [0])
        world.wait(two, barrier)
        world.read(two, [2048 + 40], lanes=[3])
        assert world.found() == ([] if met else RACE)


@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("cta", "cta", True), ("none", "cta", False), ("cta", "none", False),
])  # fmt: skip
def test_mbarriers_carry_what_was_released(release, acquire, good):
    world = World()
    one, two = world.wg(0), world.wg(1)
    barrier = world.barrier(one, 1024, 128)
    world.sync(one, two)
    world.write(one, 2048)
    world.arrive(one, barrier, release=release)
    world.wait(two, barrier, acquire=acquire)
    world.read(two, 2048)
    assert world.found() == ([] if good else RACE)


def test_arrivals_of_the_open_phase_are_not_seen():
    world = World(phase_lap=False)
    one, two = world.wg(0), world.wg(1)
    barrier = world.barrier(one, 1024, 128)
    world.sync(one, two)
    world.arrive(one, barrier)
    world.write(one, 2048)
    world.arrive(one, barrier, slice(0, 64))
    world.wait(two, barrier)
    world.read(two, 2048)
    assert world.found() == RACE


def test_a_barrier_nobody_knows_of():
    world = World()
    one, two = world.wg(0), world.wg(1)
    barrier = world.barrier(one, 1024, 128)
    world.arrive(two, barrier)
    assert world.found() == RACE
    assert "initialisation" in world.text()


def test_data_over_a_live_barrier():
    world = World()
    one = world.wg()
    world.barrier(one, 1024, 128)
    world.sync(one)
    world.read(one, [1028], lanes=[0])
    assert world.found() == [("barrier-misuse", "error")]


# ---- the async proxy


def ring(world: World):
    """A producer thread, a consumer warpgroup, and their full and empty barriers."""
    producer, consumer = world.wg(0), world.wg(1)
    full = world.barrier(producer, 1024, 1)
    empty = world.barrier(producer, 1032, 128)
    world.sync(producer, consumer)
    return producer, consumer, full, empty


def fill(world: World, producer, full, start=2048, stop=2048 + 16384):
    op = world.load(producer, full, start, stop)
    world.arrive(producer, full, [0])
    world.land(op, full, stop - start)
    return op


def test_a_copy_is_read_after_its_barrier():
    world = World()
    producer, consumer, full, _ = ring(world)
    fill(world, producer, full)
    world.wait(consumer, full)
    world.read(consumer, 2048)
    assert world.found() == []


def test_a_copy_is_read_too_early():
    world = World()
    producer, consumer, full, _ = ring(world)
    fill(world, producer, full)
    world.read(consumer, 2048)
    assert world.found() == RACE
    assert "bulk copy issued by thread 0" in world.text()


@pytest.mark.parametrize("wait", [True, False])
def test_the_stage_is_filled_again(wait):
    world = World()
    producer, consumer, full, empty = ring(world)
    fill(world, producer, full)
    world.wait(consumer, full)
    op = world.operation(consumer, "wgmma", reads=[(2048, 2048 + 8192)])
    if wait:
        world.observed(consumer, op)
    world.arrive(consumer, empty)
    world.wait(producer, empty, [0])
    fill(world, producer, full)
    assert world.found() == ([] if wait else RACE)
    if not wait:
        assert "wgmma issued by thread 128" in world.text()


@pytest.mark.parametrize(("fence", "kind"), [
    ("writers", None), ("issuer", None), ("none", "missing-proxy-fence"),
])  # fmt: skip
def test_generic_writes_need_a_proxy_fence(fence, kind):
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    if fence == "writers":
        world.fence(one)
    world.sync(one, two)
    if fence == "issuer":
        world.fence(two, lanes=[0])
    world.operation(two, "bulk store", reads=[(2048, 2048 + 512)])
    assert world.found() == ([] if kind is None else [(kind, "error")])


def test_a_fence_before_the_write_is_too_early():
    world = World()
    one = world.wg()
    world.fence(one)
    world.write(one, 2048)
    world.sync(one)
    world.operation(one, "bulk store", reads=[(2048, 2048 + 512)])
    assert world.found() == [("missing-proxy-fence", "error")]


def test_no_barrier_is_a_race_even_with_a_fence():
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.fence(one)
    world.operation(two, "bulk store", reads=[(2048, 2048 + 512)])
    assert world.found() == RACE


@pytest.mark.parametrize(("fence", "needed", "expected"), [
    (True, False, []),
    (False, False, [("proxy-war", "error")]),
    (False, True, [("proxy-war", "isa")]),
])  # fmt: skip
def test_generic_reads_before_a_refill(fence, needed, expected):
    world = World()
    world.loads.needed = needed
    producer, consumer, full, empty = ring(world)
    fill(world, producer, full)
    world.wait(consumer, full)
    world.read(consumer, 2048)
    if fence:
        world.fence(consumer)
    world.arrive(consumer, empty)
    world.wait(producer, empty, [0])
    fill(world, producer, full)
    assert world.found() == expected


@pytest.mark.parametrize(("needed", "expected"), [(False, "review"), (True, "isa")])
def test_generic_reads_before_a_refill_after_a_barrier(needed, expected):
    world = World()
    world.loads.needed = needed
    producer, consumer, full, _ = ring(world)
    fill(world, producer, full)
    world.wait(consumer, full)
    world.read(consumer, 2048)
    world.sync(producer, consumer)
    fill(world, producer, full)
    assert world.found() == [("proxy-war", expected)]


@pytest.mark.parametrize(("wait", "good"), [("read", True), ("complete", True), (None, False)])
def test_the_source_of_a_store_is_overwritten(wait, good):
    world = World()
    one, two = world.wg(0), world.wg(1)
    world.write(one, 2048)
    world.fence(one)
    world.sync(one, two)
    op = world.operation(two, "bulk store", reads=[(2048, 2048 + 512)])
    if wait:
        world.observed(two, op, lanes=[0], kind=wait)
    world.sync(one, two)
    world.write(one, 2048)
    assert world.found() == ([] if good else RACE)


def test_reading_the_target_of_a_copy_whose_source_only_was_waited_for():
    world = World()
    one = world.wg()
    op = world.operation(one, writes=[(2048, 2048 + 512)])
    world.observed(one, op, kind="read")
    world.read(one, 2048)
    assert world.found() == RACE


def test_operations_read_what_nobody_wrote():
    world = World()
    world.operation(world.wg(), "wgmma", reads=[(2048, 4096)])
    assert world.found() == [("uninitialised", "error")]


# ---- clusters


@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", []),
    # the wait itself is the same for both scopes, and shared memory is not cached
    ("cluster", "cta", [("race", "isa")]),
    # stores on their way to the peer are not waited for
    ("cta", "cluster", [("race", "error")]),
    ("cta", "cta", [("race", "error")]),
])  # fmt: skip
def test_scopes_between_ctas(release, acquire, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    world.write(mine, 2048, cta=peer.cta)
    world.arrive(mine, barrier, release=release)
    world.wait(peer, barrier, acquire=acquire)
    world.read(peer, 2048)
    assert world.found() == expected
    if expected:
        assert f".{'release' if release == 'cta' else 'acquire'}.cluster" in world.text()


@pytest.mark.parametrize(("release", "expected"), [("cta", [("race", "isa")]), ("cluster", [])])
def test_reads_are_over_when_their_arrival_reaches_the_peer(release, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.write(mine, 2048)
    world.sync(mine, peer)
    world.read(mine, 2048)
    world.arrive(mine, barrier, release=release)
    world.wait(peer, barrier, acquire="cluster")
    world.write(peer, 2048, cta=mine.cta)
    assert world.found() == expected


def test_a_narrow_wait_learns_of_its_own_cta_and_of_completions():
    world = World(threads=256, ctas=2)
    one, two = world.wg(0, 0), world.wg(1, 0)
    peer = world.wg(0, 1)
    barrier = world.barrier(two, 1024, 256)
    world.sync(one, two, peer)
    world.write(one, 2048)
    op = world.operation(peer, writes=[SharedRange(one.cta, 8192, 8192 + 512)])
    barrier.expect(512)
    world.arrive(peer, barrier, release="cluster")
    world.land(op, barrier, 512)
    world.arrive(one, barrier)
    world.wait(two, barrier)
    world.read(two, 2048)
    world.read(two, 8192)
    assert world.found() == []


def test_a_fence_of_the_clusters_scope_after_a_narrow_wait():
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    world.write(mine, 2048, cta=peer.cta)
    world.arrive(mine, barrier, release="cluster")
    world.wait(peer, barrier)
    world.fence(peer, "fence.acq_rel.cluster")
    world.read(peer, 2048)
    assert world.found() == []


@pytest.mark.parametrize("fence", [True, False])
def test_a_missing_proxy_fence_is_not_hidden_by_a_narrow_wait(fence):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    world.write(mine, 2048, cta=peer.cta)
    if fence:
        world.fence(mine)
    world.arrive(mine, barrier, release="cluster")
    world.wait(peer, barrier)
    world.operation(peer, "bulk store", reads=[(2048, 2048 + 512)])
    assert world.found() == [("race", "isa") if fence else ("missing-proxy-fence", "error")]


# ---- threads that store the same


def store(world, wg, offset, value, lanes=None):
    """All lanes store one number at one place, told before it is there."""
    mask = world.lanes(wg, lanes)
    count = wg.lanes if mask is None else int(mask.sum())
    values = np.broadcast_to(np.asarray(value, np.uint32), count)
    site = world.shared_site = getattr(world, "shared_site", None) or world.site("st.shared.b32")
    world.observer.shared_access(
        wg, mask, wg.cta, np.full(count, offset), 4, "write", site,
        np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4),
    )  # fmt: skip
    wg.cta.shared.words[offset // 4] = values[-1]


def test_storing_one_value_by_many():
    world = World()
    store(world, world.wg(0), 2048, 7)
    store(world, world.wg(1), 2048, 7)
    assert world.found() == []
    store(world, world.wg(0), 2048, 8, [0])
    assert world.found() == RACE


def test_storing_several_values_with_one_instruction():
    world = World()
    store(world, world.wg(0), 2048, np.arange(128))
    assert world.found() == [("race", "review")]
