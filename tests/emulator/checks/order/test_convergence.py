"""Lanes of one warp that hand shared memory to each other without ``__syncwarp``."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.checks.world import World
from tests.emulator.kernel import kernel, run

WARP = slice(0, 32)
ISA, ERROR = [("race", "isa")], [("race", "error")]
OTHERS = [2048 + 4 * (31 - lane) for lane in range(32)]


def split(world: World, lane: int = 0) -> None:
    """One lane of the first warp takes a path of its own."""
    wg = world.wg()
    some = world.lanes(wg, [lane])
    rest = world.lanes(wg, WARP) & ~some
    world.observer.diverged(wg, some, rest)


def meet(world: World) -> None:
    """The first warp executes an instruction together that orders no memory."""
    wg = world.wg()
    world.observer.converged(wg, world.lanes(wg, WARP))


def test_a_warp_that_never_diverged_reads_what_its_lanes_wrote() -> None:
    world = World()
    world.write(world.wg(), 2048, lanes=WARP)
    world.read(world.wg(), OTHERS, lanes=WARP)
    assert world.found() == ISA
    assert "only because their warp has run as one since" in world.text()


def test_it_overwrites_what_its_lanes_read() -> None:
    world = World()
    wg = world.wg()
    world.write(wg, 2048, lanes=WARP)
    world.sync(wg)
    world.read(wg, OTHERS, lanes=WARP)
    world.write(wg, 2048, lanes=WARP)
    assert world.found() == ISA


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_warp_that_diverged_in_between(overwrites: bool) -> None:
    world = World()
    wg = world.wg()
    world.write(wg, 2048, lanes=WARP)
    if overwrites:
        world.sync(wg)
        world.read(wg, OTHERS, lanes=WARP)
    split(world)
    meet(world)
    if overwrites:
        world.write(wg, 2048, lanes=WARP)
    else:
        world.read(wg, OTHERS, lanes=WARP)
    assert world.found() == ERROR


def test_a_warp_that_diverged_and_met_before() -> None:
    world = World()
    split(world)
    meet(world)
    world.write(world.wg(), 2048, lanes=WARP)
    world.read(world.wg(), OTHERS, lanes=WARP)
    assert world.found() == ISA


def test_a_warp_that_has_not_met_again() -> None:
    world = World()
    split(world)
    world.write(world.wg(), 2048, lanes=WARP)
    world.read(world.wg(), OTHERS, lanes=WARP)
    assert world.found() == ERROR


def test_other_warps_may_diverge() -> None:
    world = World()
    split(world, lane=0)
    other = slice(32, 64)
    world.write(world.wg(), 2048, lanes=other)
    world.read(world.wg(), OTHERS, lanes=other)
    assert world.found() == ISA


def test_what_another_warp_wrote_is_reported_first() -> None:
    world = World()
    wg = world.wg()
    world.write(wg, 2048)
    # the first lanes read their own warp's words, the last one that of another
    world.read(wg, [*OTHERS[:31], 2048 + 4 * 40], lanes=WARP)
    assert world.found() == ERROR


def test_a_peers_memory_is_left_out() -> None:
    world = World(ctas=2)
    wg, peer = world.wg(), world.clusters[0].ctas[1]
    world.write(wg, 2048, lanes=WARP, cta=peer)
    world.read(wg, OTHERS, lanes=WARP, cta=peer)
    assert world.found() == ERROR


def test_an_elected_lane_publishes_to_no_one_but_its_warp() -> None:
    """Neither to other warps nor to the async proxy, however convergent the warp."""
    world = World()
    one, two = world.wg(0), world.wg(1)
    barrier = world.barrier(one, 1024, 1)
    world.sync(one, two)
    world.write(one, 2048, lanes=WARP)
    world.arrive(one, barrier, [0])
    world.wait(two, barrier)
    world.read(two, [2048 + 40], lanes=[3])
    assert world.found() == ERROR

    world = World()
    wg = world.wg()
    world.write(wg, 2048, lanes=WARP)
    world.fence(wg, lanes=WARP)
    world.operation(wg, reads=[(2048, 2048 + 128)])
    assert "error" in {severity for _, severity in world.found()}


BODY = """
    mov.u32 %r20, tile;
    mov.u32 %r21, %tid.x;
    setp.eq.u32 %p1, %r21, 0;
    BEFORE
    shl.b32 %r22, %r21, 2;
    add.u32 %r23, %r20, %r22;
    st.shared.u32 [%r23], %r21;
    BETWEEN
    xor.b32 %r24, %r22, 124;
    add.u32 %r24, %r24, %r20;
    ld.shared.u32 %r25, [%r24];
    cvt.u64.u32 %d1, %r22;
    add.u64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r25;
"""
BRANCH = """
    @!%p1 bra AFTER;
    mov.u32 %r30, 1;
AFTER:
"""
VOTE = "vote.sync.ballot.b32 %r31, %p1, 0xffffffff;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("before", "between", "verdict"),
    [
        ("", "", "isa"),
        ("", VOTE, "isa"),
        ("", "@%p1 mov.u32 %r30, 1;", "isa"),
        ("", BRANCH, "error"),
        ("", BRANCH + VOTE, "error"),
        (BRANCH, "", "error"),
        (BRANCH + VOTE, "", "isa"),
        (BRANCH + "bar.warp.sync 0xffffffff;", "", "isa"),
        (BRANCH + "bar.sync 0;", "", "isa"),
        ("", BRANCH + "bar.warp.sync 0xffffffff;", "clean"),
    ],
)
def test_a_kernel(before: str, between: str, verdict: str, schedule: str) -> None:
    out = np.zeros(32, np.uint32)
    ptx = kernel(BODY.replace("BEFORE", before).replace("BETWEEN", between), shared=1024)
    report = run(ptx, out, schedule=schedule)
    assert report.verdict.value == verdict, str(report)
