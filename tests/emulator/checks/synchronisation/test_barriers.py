"""Initialisation of mbarriers, relaxed arrivals and waits, and threads that leave early."""

from __future__ import annotations

import pytest

from fa4gen.emulator.state.machine import SharedRange
from tests.emulator.checks.world import World

# ---- initialisation


@pytest.mark.parametrize("fence", [True, False])
def test_signals_of_operations_need_the_fence(fence):
    world = World()
    one = world.wg()
    full = world.barrier(one, 1024, 1, fence=fence)
    world.sync(one)
    load = world.load(one, full, 4096, 8192)
    world.land(load, full, 4096)
    assert world.found() == ([] if fence else [("missing-init-fence", "review")])


@pytest.mark.parametrize(("fence", "release", "expected"), [
    (True, True, []),
    (True, False, []),
    (False, True, [("missing-init-fence", "review")]),
    (False, False, [("missing-init-fence", "error")]),
])  # fmt: skip
def test_signals_to_a_peer_need_the_fence_or_a_release(fence, release, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    full = world.barrier(peer, 1024, 1, fence=fence)
    world.sync(mine, peer, release=release)
    op = world.operation(mine, writes=[SharedRange(peer.cta, 4096, 8192)])
    full.expect(4096)
    world.land(op, full, 4096)
    assert world.found() == expected


def test_a_proxy_fence_does_as_well():
    world = World()
    one = world.wg()
    full = world.barrier(one, 1024, 1, fence=False)
    world.fence(one, lanes=[0])
    world.sync(one)
    load = world.load(one, full, 4096, 8192)
    world.land(load, full, 4096)
    assert world.found() == []


def test_local_arrivals_need_no_fence():
    world = World()
    one, two = world.wg(0), world.wg(1)
    barrier = world.barrier(one, 1024, 128, fence=False)
    world.sync(one, two)
    world.arrive(two, barrier)
    assert world.found() == []


@pytest.mark.parametrize(("fence", "release", "expected"), [
    (True, True, []),
    (True, False, []),
    (False, True, []),
    (False, False, [("race", "error")]),
])  # fmt: skip
def test_arrivals_of_a_peer(fence, release, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128, fence=fence)
    world.sync(mine, peer, release=release)
    world.arrive(mine, barrier)
    assert world.found() == expected


def test_arrivals_before_the_cluster_has_met():
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.arrive(mine, barrier)
    assert world.found() == [("race", "error")]


# ---- relaxed arrivals and waits, with fences beside them

RELEASE = "fence.release.sync_restrict::shared::cta.cluster"
ACQUIRE = "fence.acquire.sync_restrict::shared::cluster.cluster"


@pytest.mark.parametrize(("before_arrival", "after_wait", "expected"), [
    (RELEASE, ACQUIRE, []),
    (None, ACQUIRE, [("race", "error")]),
    (RELEASE, None, [("race", "error")]),
    (ACQUIRE, RELEASE, [("race", "error")]),
    ("fence.acq_rel.cluster", "fence.acq_rel.cluster", []),
    ("fence.acq_rel.cta", "fence.acq_rel.cta", [("race", "error")]),
])  # fmt: skip
def test_a_relaxed_hand_over_needs_a_fence_on_either_side(before_arrival, after_wait, expected):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    world.write(mine, 2048, cta=peer.cta)
    if before_arrival:
        world.fence(mine, before_arrival)
    world.arrive(mine, barrier, release="none")
    world.wait(peer, barrier, acquire="none")
    if after_wait:
        world.fence(peer, after_wait)
    world.read(peer, 2048)
    assert world.found() == expected


def test_a_release_fence_covers_only_what_came_before_it():
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    world.fence(mine, RELEASE)
    world.write(mine, 2048, cta=peer.cta)
    world.arrive(mine, barrier, release="none")
    world.wait(peer, barrier, acquire="none")
    world.fence(peer, ACQUIRE)
    world.read(peer, 2048)
    assert world.found() == [("race", "error")]


# ---- leaving


def leave(world, wg):
    world.observer.lanes_leave(wg, None)
    wg.leave(None)


@pytest.mark.parametrize("met", [True, False])
def test_leaving_while_a_peer_reads(met):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    world.write(peer, 2048)
    world.sync(mine, peer)
    world.read(mine, 2048, cta=peer.cta)
    if met:
        world.sync(mine, peer, release=False)
    leave(world, peer)
    leave(world, mine)
    assert world.found() == ([] if met else [("early-exit", "error")])
    assert met or "a read by" not in world.text()


def test_using_the_memory_of_a_peer_that_has_left():
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    barrier = world.barrier(peer, 1024, 128)
    world.sync(mine, peer)
    leave(world, peer)
    world.arrive(mine, barrier)
    assert world.found() == [("early-exit", "error")]


@pytest.mark.parametrize("wait", [True, False])
def test_a_copy_into_a_peer_that_leaves(wait):
    world = World(threads=128, ctas=2)
    mine, peer = world.wg(0, 0), world.wg(0, 1)
    full = world.barrier(peer, 1024, 1)
    world.sync(mine, peer)
    full.expect(4096)
    world.arrive(peer, full, [0])
    op = world.operation(mine, writes=[SharedRange(peer.cta, 4096, 8192)])
    world.land(op, full, 4096)
    if wait:
        world.wait(peer, full)
    leave(world, peer)
    assert world.found() == ([] if wait else [("early-exit", "error")])
