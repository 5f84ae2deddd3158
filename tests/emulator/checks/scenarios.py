"""Steps of threads and asynchronous operations, and the findings that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.state.machine import SharedRange
from tests.emulator.checks.world import World

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import AsyncOp, Mbarrier

Who = tuple[int, int, int]
"""A warpgroup: its number in its CTA, the CTA's rank, its cluster."""
ONE, TWO, PEER, OTHER = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)
PAIR = {"threads": 128, "ctas": 2}
CLUSTERS = {"clusters": 2}
RACE, FENCE = [("race", "error")], [("missing-proxy-fence", "error")]
Found = list[tuple[str, str]]
"""Kinds and severities of findings."""


@dataclass
class Stage:
    """A world, and its barriers and operations by name."""

    world: World
    barriers: dict[str, Mbarrier] = field(default_factory=dict)
    ops: dict[str, AsyncOp] = field(default_factory=dict)

    def wg(self, who: Who) -> Any:
        return self.world.wg(*who)

    def ranges(self, parts: Any) -> list[Any]:
        """Ranges of the own CTA's shared memory, of that of another, or made of the stage."""
        found = [part(self) if callable(part) else part for part in parts]
        return [
            SharedRange(self.wg(part[0]).cta, *part[1:]) if isinstance(part, tuple) and part[2:]
            else part
            for part in found
        ]  # fmt: skip


Step = Callable[[Stage], Any]


def play(*steps: Step | None, **options: Any) -> Stage:
    """The stage after the steps; ``options`` are those of the world."""
    stage = Stage(World(**options))
    for step in steps:
        if step is not None:
            step(stage)
    return stage


def findings(*steps: Step | None, **options: Any) -> Found:
    return play(*steps, **options).world.found()


def finds(expected: Found) -> Step:
    """Compare what has been found so far."""

    def step(stage: Stage) -> None:
        assert stage.world.found() == expected

    return step


# ---- threads


def _access(kind: str, who: Who, at: Any, into: Who | None, more: dict[str, Any]) -> Step:
    def step(stage: Stage) -> None:
        cta = None if into is None else stage.wg(into).cta
        stage.world.access(stage.wg(who), kind, at, cta=cta, **more)

    return step


def write(who: Who = ONE, at: Any = 2048, into: Who | None = None, **more: Any) -> Step:
    """Each lane writes four bytes (``size``); one place for the first lane gives all a row."""
    return _access("write", who, at, into, more)


def read(who: Who = ONE, at: Any = 2048, into: Who | None = None, **more: Any) -> Step:
    return _access("read", who, at, into, more)


def atomic(who: Who, at: Any) -> Step:
    return _access("atomic", who, at, None, {})


def meet(*who: Who, **more: Any) -> Step:
    """All threads of the warpgroups meet at a barrier; without names, ONE and TWO."""
    return lambda stage: stage.world.sync(*map(stage.wg, who or (ONE, TWO)), **more)


def fence(who: Who = ONE, kind: str = "fence.proxy.async.shared::cta", lanes: Any = None) -> Step:
    return lambda stage: stage.world.fence(stage.wg(who), kind, lanes)


def leave(who: Who) -> Step:
    def step(stage: Stage) -> None:
        stage.world.observer.lanes_leave(stage.wg(who), None)
        stage.wg(who).leave(None)

    return step


# ---- mbarriers


def barrier(name: str, count: int = 128, who: Who = ONE, **more: Any) -> Step:
    """Its first thread initialises a barrier; they are side by side from 1024 on."""

    def step(stage: Stage) -> None:
        at = 1024 + 8 * len(stage.barriers)
        stage.barriers[name] = stage.world.barrier(stage.wg(who), at, count, **more)

    return step


def arrive(who: Who, name: str, lanes: Any = None, release: str = "cta") -> Step:
    return lambda stage: stage.world.arrive(stage.wg(who), stage.barriers[name], lanes, release)


def wait(who: Who, name: str, lanes: Any = None, acquire: str = "cta", **more: Any) -> Step:
    return lambda stage: stage.world.wait(
        stage.wg(who), stage.barriers[name], lanes, acquire, **more
    )


# ---- asynchronous operations


def operate(
    who: Who = ONE, kind: str = "bulk copy", *, reads: Any = (), writes: Any = (), name: str = "op"
) -> Step:
    """Ranges: (first, stop) of the own CTA, (who, first, stop) of another, or made of the stage."""

    def step(stage: Stage) -> None:
        stage.ops[name] = stage.world.operation(
            stage.wg(who), kind, reads=stage.ranges(reads), writes=stage.ranges(writes)
        )

    return step


def fill(
    who: Who = ONE, name: str = "full", arrives: Who | None = ONE, size: int = 16384, at: int = 2048
) -> Step:
    """A copy is expected, issued, and completes its barrier."""

    def step(stage: Stage) -> None:
        full = stage.barriers[name]
        op = stage.world.load(stage.wg(who), full, at, at + size)
        if arrives is not None:
            stage.world.arrive(stage.wg(arrives), full, [0])
        stage.world.land(op, full, size)

    return step


def fill_peer(who: Who, name: str, arrives: Who | None = None) -> Step:
    """A copy into the shared memory of the peer, whose barrier is completed."""

    def step(stage: Stage) -> None:
        full = stage.barriers[name]
        full.expect(4096)
        if arrives is not None:
            stage.world.arrive(stage.wg(arrives), full, [0])
        target = SharedRange(full.cta, 4096, 8192)
        stage.world.land(stage.world.operation(stage.wg(who), writes=[target]), full, 4096)

    return step


def observe(who: Who = ONE, lanes: Any = None, kind: str = "complete", name: str = "op") -> Step:
    """The threads have waited for an operation: to be complete, or to have read."""
    return lambda stage: stage.world.observed(
        stage.wg(who), stage.ops[name], lanes=lanes, kind=kind
    )


# ---- global memory


def _global(kind: str, who: Who, at: int, size: int, lanes: Any, text: str) -> Step:
    def step(stage: Stage) -> None:
        world, wg = stage.world, stage.wg(who)
        mask = world.lanes(wg, lanes)
        count = wg.lanes if mask is None else int(mask.sum())
        places = (world.array + at + size * np.arange(count)).astype(np.uint64)
        world.observer.global_access(wg, mask, places, size, kind, world.site(text))

    return step


def load(
    who: Who, at: int = 0, size: int = 4, lanes: Any = None, text: str = "ld.global.b32"
) -> Step:
    """Each lane reads its place in an array of global memory."""
    return _global("read", who, at, size, lanes, text)


def store(
    who: Who, at: int = 0, size: int = 4, lanes: Any = None, text: str = "st.global.b32"
) -> Step:
    return _global("write", who, at, size, lanes, text)


def update(who: Who, text: str, at: int = 256, lanes: Any = None) -> Step:
    return _global("atomic", who, at, 4, lanes, text)


def flag(
    who: Who, order: str, *, reads: bool = False, writes: bool = False, scope: str = "gpu",
    at: int = 4096,
) -> Step:  # fmt: skip
    """The first thread reads or writes a word that others wait for."""

    def step(stage: Stage) -> None:
        world, wg = stage.world, stage.wg(who)
        site = world.site(f"atom.{order}.{scope}.add")
        place = np.array([world.array + at], np.uint64)
        world.observer.atomic_sync(
            wg, world.lanes(wg, [0]), place, order, scope, reads, writes, site
        )

    return step


def both_ways(who: Who) -> Step:
    """A relaxed update of the flag."""
    return flag(who, "relaxed", reads=True, writes=True)
