"""Arrivals and waits that could belong to another phase of their mbarrier."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.checks.world import World
from tests.emulator.kernel import kernel, run

LAP = [("phase-lap", "error")]


def test_a_ring_with_both_barriers():
    world = World()
    producer, consumer = world.wg(0), world.wg(1)
    full = world.barrier(producer, 1024, 1)
    empty = world.barrier(producer, 1032, 128)
    world.sync(producer, consumer)
    for turn in range(5):
        world.wait(producer, empty, [0], phase=turn - 1)
        load = world.load(producer, full, 4096, 8192)
        world.arrive(producer, full, [0])
        world.land(load, full, 4096)
        world.wait(consumer, full)
        op = world.operation(consumer, "wgmma", reads=[(4096, 8192)])
        world.observed(consumer, op)
        world.arrive(consumer, empty)
    assert world.found() == []


def test_nobody_says_that_the_phase_was_seen():
    world = World()
    producer, consumer = world.wg(0), world.wg(1)
    full = world.barrier(producer, 1024, 1)
    world.sync(producer, consumer)
    world.arrive(producer, full, [0])
    world.wait(consumer, full)
    assert world.found() == []
    world.arrive(producer, full, [0])
    assert world.found() == LAP
    assert "thread 128" in world.text()


def test_the_wait_that_is_lapped_is_named_not_the_last_one():
    world = World()
    producer, consumer = world.wg(0), world.wg(1)
    full, other = world.barrier(producer, 1024, 1), world.barrier(producer, 1032, 1)
    world.sync(producer, consumer)
    world.arrive(producer, full, [0])
    world.arrive(producer, other, [0])
    world.wait(consumer, full)
    line = world.line
    world.wait(consumer, other)
    world.arrive(producer, full, [0])
    [finding] = world.machine.log.findings()
    assert (finding.kind, finding.line) == ("phase-lap", line)


def test_one_lane_speaks_for_its_warp_only():
    for lanes, expected in (([0, 32, 64, 96], []), ([0], LAP)):
        world = World()
        producer, consumer = world.wg(0), world.wg(1)
        full = world.barrier(producer, 1024, 1)
        empty = world.barrier(producer, 1032, len(lanes))
        world.sync(producer, consumer)
        world.arrive(producer, full, [0])
        world.wait(consumer, full)
        world.arrive(consumer, empty, lanes)
        world.wait(producer, empty, [0])
        world.arrive(producer, full, [0])
        assert world.found() == expected


def test_a_wgmma_shows_that_all_warps_have_come_so_far():
    world = World()
    producer, consumer = world.wg(0), world.wg(1)
    full = world.barrier(producer, 1024, 1)
    empty = world.barrier(producer, 1032, 1)
    world.sync(producer, consumer)
    world.arrive(producer, full, [0])
    world.wait(consumer, full)
    world.observed(consumer, world.operation(consumer, "wgmma"))
    world.arrive(consumer, empty, [0])
    world.wait(producer, empty, [0])
    world.arrive(producer, full, [0])
    assert world.found() == []


# ---- arrivals

EARLY = [("over-arrival", "error")]


@pytest.mark.parametrize("wait", [True, False])
def test_an_arrival_comes_after_the_end_of_the_phase_before(wait):
    """Each of two threads arrives once a phase; either could come twice before the other comes."""
    world = World()
    one, two = world.wg(0), world.wg(1)
    both = world.barrier(one, 1024, 2)
    world.sync(one, two)
    world.arrive(one, both, [0])
    world.arrive(two, both, [0])
    if wait:
        world.wait(one, both, [0])
        world.wait(two, both, [0])
    world.arrive(one, both, [0])
    world.arrive(two, both, [0])
    assert world.found() == ([] if wait else 2 * EARLY)
    assert wait or "nothing orders it after the end of phase 0" in world.text()


def test_what_others_have_seen_will_do():
    """The second warpgroup has not waited itself: a named barrier tells it."""
    world = World()
    one, two = world.wg(0), world.wg(1)
    both = world.barrier(one, 1024, 256)
    world.sync(one, two)
    for _ in range(3):
        world.arrive(one, both)
        world.arrive(two, both)
        world.wait(one, both)
        world.sync(one, two)
    assert world.found() == []


def test_a_thread_knows_its_own_arrivals():
    world = World()
    one = world.wg(0)
    alone = world.barrier(one, 1024, 1)
    world.sync(one)
    for _ in range(3):
        world.arrive(one, alone, [7])
    assert world.found() == []


@pytest.mark.parametrize("lane", [9, 40])
def test_lanes_of_a_warp_that_runs_as_one_arrive_in_turn(lane):
    world = World()
    one = world.wg(0)
    alone = world.barrier(one, 1024, 1)
    world.sync(one)
    world.arrive(one, alone, [7])
    world.arrive(one, alone, [lane])
    assert world.found() == ([] if lane < 32 else EARLY)


def test_lanes_of_a_warp_that_has_diverged_do_not():
    world = World()
    one = world.wg(0)
    alone = world.barrier(one, 1024, 1)
    world.sync(one)
    world.observer.diverged(one, world.lanes(one, [7]), world.lanes(one, [9]))
    world.arrive(one, alone, [7])
    world.arrive(one, alone, [9])
    assert world.found() == EARLY


@pytest.mark.parametrize("told", [True, False])
def test_bytes_come_after_the_end_of_the_phase_before(told):
    """A second thread issues the copy of the next phase; it may come before the first copy."""
    world = World()
    one, two = world.wg(0), world.wg(1)
    full = world.barrier(one, 1024, 1)
    world.sync(one, two)
    first = world.load(one, full, 4096, 8192)
    world.arrive(one, full, [0])
    world.land(first, full, 4096)
    world.wait(one, full)
    if told:
        world.sync(one, two)
    second = world.load(two, full, 4096, 8192)
    world.arrive(one, full, [0])
    world.land(second, full, 4096)
    assert EARLY[0] in world.found() or told
    assert not told or world.found() == []


@pytest.mark.parametrize("together", [True, False])
def test_lanes_that_arrive_at_several_barriers_together_speak_for_each_other(together):
    """Lane 0 arrives at one barrier, lane 1 at another: by one instruction, or by two."""
    world = World()
    readers, one = world.wg(1), world.wg(0)
    first, second = world.barrier(one, 1024, 1), world.barrier(one, 1032, 1)
    world.sync(one, readers)
    site = world.site("mbarrier.arrive.shared::cta.b64")
    lanes = {barrier: world.lanes(readers, [n]) for n, barrier in enumerate((first, second))}
    both = world.lanes(readers, [0, 1]) if together else None
    for barrier, mask in lanes.items():
        world.observer.counted(readers, mask, mask if both is None else both, barrier, site)
    for barrier, mask in lanes.items():
        world.observer.arrived(readers, mask, barrier, "cta", site)
        barrier.arrive(1, "a lane")
    world.wait(one, first, [0])
    world.arrive(one, second, [0])
    assert world.found() == ([] if together else EARLY)


SPILL = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [tile], COUNT;
READY:
    bar.sync 0;
    mbarrier.arrive{how} [tile]{bytes};
"""


@pytest.mark.parametrize(("how", "bytes_"), [
    (".shared::cta.b64 _,", ""), (".expect_tx.shared::cta.b64 _,", ", 0"),
])  # fmt: skip
@pytest.mark.parametrize(("count", "found"), [
    (64, []), (128, []), (32, ["over-arrival"]), (1, ["over-arrival"]),
])  # fmt: skip
def test_one_instruction_arrives_in_one_phase(count, found, how, bytes_):
    """No lane of one instruction comes after another lane of it."""
    body = SPILL.format(how=how, bytes=bytes_).replace("COUNT", str(count))
    for schedule in SCHEDULES:
        report = run(kernel(body, shared=8), np.zeros(1), block=64, schedule=schedule)
        assert [one.kind for one in report.findings] == found


# ---- waits

# Thread 0 arrives TIMES times at the barrier at tile, and the threads of the second warp wait for
# the first of these phases.
LAPPED = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [tile], 1;
    mbarrier.init.shared::cta.b64 [tile+8], 32;
READY:
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra SECOND;
    @%p1 bra DONE;
    ARRIVALS
    bra DONE;
SECOND:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [tile], 0;
    @!%p3 bra SECOND;
    mbarrier.arrive.shared::cta.b64 _, [tile+8];
DONE:
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [tile];"
SEEN = """
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [tile+8], 0;
    @!%p4 bra WAIT;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_phase_that_may_be_missed_is_found_whoever_comes_first(times, seed, schedule):
    body = LAPPED.replace("ARRIVALS", ARRIVE * times)
    report = run(kernel(body, shared=16), np.zeros(1), block=64, schedule=schedule, seed=seed)
    assert "phase-lap" in [one.kind for one in report.findings]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_later_phases_come_after_the_wait(times, schedule):
    arrivals = ARRIVE + SEEN + ARRIVE * (times - 1)
    body = LAPPED.replace("ARRIVALS", arrivals)
    report = run(kernel(body, shared=16), np.zeros(1), block=64, schedule=schedule)
    assert report.findings == ()
