"""Arrivals and waits that could belong to another phase of their mbarrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.checks.scenarios import (
    ONE,
    TWO,
    Found,
    Stage,
    Step,
    arrive,
    barrier,
    fill,
    findings,
    finds,
    meet,
    observe,
    operate,
    play,
    wait,
)
from tests.emulator.kernel import kernel, run

LAP = [("phase-lap", "error")]
EARLY = [("over-arrival", "error")]
FULL = barrier("full", 1), meet(), arrive(ONE, "full", [0])


def test_a_ring_with_both_barriers() -> None:
    steps: list[Step] = [barrier("full", 1), barrier("empty"), meet()]
    for turn in range(5):
        steps += [wait(ONE, "empty", [0], phase=turn - 1), fill(size=4096, at=4096)]
        product = operate(TWO, "wgmma", reads=[(4096, 8192)])
        steps += [wait(TWO, "full"), product, observe(TWO), arrive(TWO, "empty")]
    assert findings(*steps) == []


def test_nobody_says_that_the_phase_was_seen() -> None:
    stage = play(*FULL, wait(TWO, "full"), finds([]), arrive(ONE, "full", [0]))
    assert stage.world.found() == LAP
    assert "thread 128" in stage.world.text()


def test_the_wait_that_is_lapped_is_named_not_the_last_one() -> None:
    lines = []
    steps = barrier("full", 1), barrier("other", 1), meet()
    arrivals = arrive(ONE, "full", [0]), arrive(ONE, "other", [0]), wait(TWO, "full")
    last = (
        lambda stage: lines.append(stage.world.line),
        wait(TWO, "other"),
        arrive(ONE, "full", [0]),
    )
    stage = play(*steps, *arrivals, *last)
    [finding] = stage.world.machine.log.findings()
    assert [finding.kind, finding.line] == ["phase-lap", *lines]


@pytest.mark.parametrize(("lanes", "product", "expected"), [
    ([0, 32, 64, 96], False, []), ([0], False, LAP), ([0], True, []),
])  # fmt: skip
def test_one_lane_speaks_for_its_warp_only(
    lanes: list[int], product: bool, expected: Found
) -> None:
    """Unless a wgmma shows that all warps have come so far."""
    seen = (operate(TWO, "wgmma"), observe(TWO)) if product else ()
    steps = barrier("full", 1), barrier("empty", len(lanes)), meet(), arrive(ONE, "full", [0])
    freed = wait(TWO, "full"), *seen, arrive(TWO, "empty", lanes), wait(ONE, "empty", [0])
    assert findings(*steps, *freed, arrive(ONE, "full", [0])) == expected


# ---- arrivals


@pytest.mark.parametrize("waits", [True, False])
def test_an_arrival_comes_after_the_end_of_the_phase_before(waits: bool) -> None:
    """Each of two threads arrives once a phase; either could come twice before the other comes."""
    each = [arrive(who, "both", [0]) for who in (ONE, TWO)]
    between = [wait(who, "both", [0]) for who in (ONE, TWO)] if waits else []
    stage = play(barrier("both", 2), meet(), *each, *between, *each)
    assert stage.world.found() == ([] if waits else 2 * EARLY)
    assert waits or "nothing orders it after the end of phase 0" in stage.world.text()


def test_what_others_have_seen_will_do() -> None:
    """The second warpgroup has not waited itself: a named barrier tells it."""
    turn = arrive(ONE, "both"), arrive(TWO, "both"), wait(ONE, "both"), meet()
    assert findings(barrier("both", 256), meet(), *turn * 3) == []


@pytest.mark.parametrize(("lanes", "diverged", "expected"), [
    ([7, 7, 7], False, []), ([7, 9], False, []), ([7, 40], False, EARLY), ([7, 9], True, EARLY),
])  # fmt: skip
def test_lanes_of_a_warp_that_runs_as_one_arrive_in_turn(
    lanes: list[int], diverged: bool, expected: Found
) -> None:
    """And a thread knows its own arrivals."""

    def diverge(stage: Stage) -> None:
        wg, world = stage.wg(ONE), stage.world
        world.observer.diverged(wg, world.lanes(wg, [7]), world.lanes(wg, [9]))

    each = [arrive(ONE, "alone", [lane]) for lane in lanes]
    assert (
        findings(barrier("alone", 1), meet(ONE), diverge if diverged else None, *each) == expected
    )


@pytest.mark.parametrize("told", [True, False])
def test_bytes_come_after_the_end_of_the_phase_before(told: bool) -> None:
    """A second thread issues the copy of the next phase; it may come before the first copy."""
    place: Any = {"size": 4096, "at": 4096}
    steps = barrier("full", 1), meet(), fill(**place), wait(ONE, "full"), meet() if told else None
    found = findings(*steps, fill(TWO, arrives=ONE, **place))
    assert EARLY[0] in found or told
    assert not told or found == []


@pytest.mark.parametrize("together", [True, False])
def test_lanes_that_arrive_at_several_barriers_together_speak_for_each_other(
    together: bool,
) -> None:
    """Lane 0 arrives at one barrier, lane 1 at another: by one instruction, or by two."""

    def lanes_arrive(stage: Stage) -> None:
        world, readers = stage.world, stage.wg(TWO)
        site = world.site("mbarrier.arrive.shared::cta.b64")
        lanes = {one: world.lanes(readers, [n]) for n, one in enumerate(stage.barriers.values())}
        both = world.lanes(readers, [0, 1]) if together else None
        for one, mask in lanes.items():
            world.observer.counted(readers, mask, mask if both is None else both, one, site)
        for one, mask in lanes.items():
            world.observer.arrived(readers, mask, one, "cta", site)
            one.arrive(1, "a lane")

    steps = barrier("first", 1), barrier("second", 1), meet(), lanes_arrive
    found = findings(*steps, wait(ONE, "first", [0]), arrive(ONE, "second", [0]))
    assert found == ([] if together else EARLY)


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
