"""Schedules under which a warpgroup, or some of its warps, run only when nothing else can."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Limits, Report
from tests.emulator.kernel import kernel, run

SEEDS = 40
LIMITS = Limits(steps=50_000, idle_steps=10_000)

# Each warp takes six numbers in the order in which warps run.
ORDER = """
    mov.u32 %r20, %tid.x; shr.u32 %r21, %r20, 5; and.b32 %r22, %r20, 31;
    setp.ne.u32 %p1, %r22, 0;
    mov.u32 %r23, 0;
AGAIN:
    @%p1 bra COUNTED;
    atom.global.add.u32 %r24, [%d0], 1;
    mad.lo.u32 %r25, %r21, 6, %r23; mul.wide.u32 %d10, %r25, 4; add.u64 %d10, %d10, %d1;
    st.global.u32 [%d10], %r24;
COUNTED:
    bar.warp.sync 0xffffffff;
    add.u32 %r23, %r23, 1; setp.lt.u32 %p2, %r23, 6; @%p2 bra AGAIN;
"""

# All four warps of the producer wait until the stage is empty; only its first one fills it, and
# nothing says that the others have seen the phase before the next one completes.
PRODUCERS = """
    .shared .align 8 .b64 full, empty;
    mov.u32 %r20, %tid.x; mov.u32 %r30, full; mov.u32 %r31, empty;
    setp.ne.u32 %p1, %r20, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r30], 1; mbarrier.init.shared::cta.b64 [%r31], 1;
READY:
    bar.sync 0;
    mov.u32 %r21, 0;
    setp.ge.u32 %p2, %r20, 128;
    @%p2 bra CONSUMER;
PRODUCER:
    xor.b32 %r22, %r21, 1; and.b32 %r22, %r22, 1;
EMPTY:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r31], %r22;
    @!%p3 bra EMPTY;
    TOGETHER
    @%p1 bra FILLED;
    mbarrier.arrive.shared::cta.b64 _, [%r30];
FILLED:
    bar.warp.sync 0xffffffff;
    add.u32 %r21, %r21, 1; setp.lt.u32 %p4, %r21, 6; @%p4 bra PRODUCER;
    bra DONE;
CONSUMER:
    and.b32 %r22, %r21, 1;
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r30], %r22;
    @!%p3 bra FULL;
    setp.ne.u32 %p5, %r20, 128;
    @%p5 bra EMPTIED;
    mbarrier.arrive.shared::cta.b64 _, [%r31];
EMPTIED:
    bar.warp.sync 0xffffffff;
    add.u32 %r21, %r21, 1; setp.lt.u32 %p4, %r21, 6; @%p4 bra CONSUMER;
DONE:
"""

# The first thread polls for a flag that the last one sets.
POLLING = """
    mov.u32 %r20, %tid.x; mov.u32 %r21, %ntid.x; sub.u32 %r21, %r21, 1;
    setp.ne.u32 %p1, %r20, %r21;
    @%p1 bra POLL;
    st.release.gpu.global.u32 [%d0], 1;
    bra DONE;
POLL:
    setp.ne.u32 %p1, %r20, 0;
    @%p1 bra DONE;
AGAIN:
    ld.acquire.gpu.global.u32 %r22, [%d0];
    setp.eq.u32 %p2, %r22, 0;
    @%p2 bra AGAIN;
DONE:
"""


def order(seed: int) -> np.ndarray:
    """Run ORDER: the turns of each of four warps."""
    turns = np.zeros((4, 6), np.uint32)
    run(kernel(ORDER, ("u64", "u64")), np.zeros(1, np.uint32), turns, block=128, seed=seed,
        schedule="starve_warp")  # fmt: skip
    assert sorted(turns.flat) == list(range(24))
    return turns


def test_each_warp_lags_behind_its_warpgroup_and_runs_ahead_of_it() -> None:
    last, first = Counter[int](), Counter[int]()
    for seed in range(SEEDS):
        turns = order(seed)
        for warp in range(4):
            others = np.delete(turns, warp, axis=0)
            last[warp] += bool(turns[warp].min() > others.max())
            first[warp] += bool(turns[warp].max() < others.min())
    assert sum(last.values()) + sum(first.values()) == SEEDS
    assert set(+last) == set(+first) == {0, 1, 2, 3}


def producers(together: str, seed: int, schedule: str, checks: bool) -> Report:
    return run(
        kernel(PRODUCERS.replace("TOGETHER", together), ()),
        block=160, seed=seed, schedule=schedule, limits=LIMITS, checks=checks,
    )  # fmt: skip


def hangs(together: str, schedule: str) -> int:
    """In how many runs, without the checks that find the mistake in every order, threads wait
    forever."""
    reports = (producers(together, seed, schedule, False) for seed in range(SEEDS))
    return sum("deadlock" in [one.kind for one in report.findings] for report in reports)


def test_a_warp_that_lags_misses_a_phase_and_waits_forever() -> None:
    assert hangs("", "starve_warp") > SEEDS / 4


@pytest.mark.parametrize("schedule", [one for one in SCHEDULES if one != "starve_warp"])
def test_no_other_schedule_lets_a_warp_lag_so_far(schedule: str) -> None:
    assert hangs("", schedule) == 0


def test_warps_that_meet_in_each_round_cannot_miss_a_phase() -> None:
    assert hangs("bar.sync 1, 128;", "starve_warp") == 0
    for seed in range(5):
        report = producers("bar.sync 1, 128;", seed, "starve_warp", True)
        assert report.verdict.value == "clean", str(report)


@pytest.mark.parametrize("block", [128, 256])
@pytest.mark.parametrize("schedule", ["starve", "starve_warp"])
def test_threads_that_poll_for_starved_ones_get_their_answer(schedule: str, block: int) -> None:
    for seed in (0, 1, 4):  # the last thread is starved in one of them at the least
        flag = np.zeros(1, np.uint32)
        report = run(
            kernel(POLLING), flag, block=block, seed=seed, schedule=schedule, limits=LIMITS
        )
        assert report.verdict.value == "clean", str(report)
        assert flag[0] == 1
