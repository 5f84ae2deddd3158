"""Lanes of one warp that hand shared memory to each other without ``__syncwarp``."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.checks.scenarios import (
    ONE,
    PEER,
    RACE,
    TWO,
    Found,
    Stage,
    Step,
    arrive,
    barrier,
    fence,
    findings,
    meet,
    operate,
    play,
    read,
    wait,
    write,
)
from tests.emulator.kernel import kernel, run

WARP, SECOND = slice(0, 32), slice(32, 64)
ISA = [("race", "isa")]
OTHERS = [2048 + 4 * (31 - lane) for lane in range(32)]


def split(stage: Stage) -> None:
    """One lane of the first warp takes a path of its own."""
    wg, world = stage.wg(ONE), stage.world
    some = world.lanes(wg, [0])
    world.observer.diverged(wg, some, world.lanes(wg, WARP) & ~some)


def together(stage: Stage) -> None:
    """The first warp executes an instruction together that orders no memory."""
    wg = stage.wg(ONE)
    stage.world.observer.converged(wg, stage.world.lanes(wg, WARP))


WRITE, WRITE_ALL, READ = write(lanes=WARP), write(), read(at=OTHERS, lanes=WARP)
READ_FIRST = WRITE, meet(ONE), READ
SCENARIOS: dict[str, tuple[tuple[Step, ...], Found]] = {
    "it overwrites what its lanes read": ((*READ_FIRST, WRITE), ISA),
    "it diverged in between": ((WRITE, split, together, READ), RACE),
    "it diverged before it overwrites": ((*READ_FIRST, split, together, WRITE), RACE),
    "it diverged and met before": ((split, together, WRITE, READ), ISA),
    "it has not met again": ((split, WRITE, READ), RACE),
    "other warps may diverge": (
        (split, write(lanes=SECOND), read(at=OTHERS, lanes=SECOND)), ISA,
    ),
    # the first lanes read their own warp's words, the last one that of another
    "what another warp wrote is reported first": (
        (WRITE_ALL, read(at=[*OTHERS[:31], 2048 + 4 * 40], lanes=WARP)), RACE,
    ),
    # an elected lane publishes to no one but its warp, however convergent
    "neither to other warps": (
        (barrier("b", 1), meet(), WRITE, arrive(ONE, "b", [0]), wait(TWO, "b"),
         read(TWO, [2048 + 40], lanes=[3])), RACE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_warp_that_runs_as_one(name: str) -> None:
    steps, expected = SCENARIOS[name]
    assert findings(*steps) == expected


def test_a_warp_that_never_diverged_reads_what_its_lanes_wrote() -> None:
    stage = play(WRITE, READ)
    assert stage.world.found() == ISA
    assert "only because their warp has run as one since" in stage.world.text()


def test_a_peers_memory_is_left_out() -> None:
    steps = write(lanes=WARP, into=PEER), read(at=OTHERS, lanes=WARP, into=PEER)
    assert findings(*steps, ctas=2) == RACE


def test_nor_to_the_async_proxy() -> None:
    found = findings(WRITE, fence(lanes=WARP), operate(reads=[(2048, 2048 + 128)]))
    assert "error" in {severity for _, severity in found}


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
