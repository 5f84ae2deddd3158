"""Races in shared memory between threads and asynchronous operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.checks.scenarios import (
    FENCE,
    ONE,
    PAIR,
    PEER,
    RACE,
    TWO,
    Found,
    Step,
    arrive,
    atomic,
    barrier,
    fence,
    fill,
    findings,
    finds,
    meet,
    observe,
    operate,
    play,
    read,
    wait,
    write,
)
from tests.emulator.checks.world import World

READS: Any = {"reads": [(2048, 2048 + 512)]}
RING = barrier("full", 1), barrier("empty"), meet()
"""ONE fills a stage, TWO reads it."""
FILLED = *RING, fill(), wait(TWO, "full")
FREED = arrive(TWO, "empty"), wait(ONE, "empty", [0])

SCENARIOS: dict[str, tuple[tuple[Step, ...], Found]] = {
    "a barrier orders": ((write(), meet(), read(TWO)), []),
    "own accesses need no barrier": ((write(), read(), write()), []),
    "a write after the barrier": ((write(), meet(), write(), read(TWO)), RACE),
    "readers that said so": ((write(), meet(), read(TWO), meet(), write()), []),
    "wide accesses cover all their bytes": (
        (write(size=16), read(TWO, [2048 + 16 * 127 + 12], lanes=[5])), RACE,
    ),
    "atomics do not race among themselves": (
        (write(at=[2048], lanes=[0]), meet(), atomic(ONE, [2048] * 128),
         atomic(TWO, [2048] * 128), finds([]), read(ONE, [2048], lanes=[0])), RACE,
    ),
    "lanes that write the same word": ((write(at=[2048] * 128),), [("race", "review")]),
    "what nobody wrote": ((read(),), [("uninitialised", "error")]),
    "data over a live barrier": (
        (barrier("b"), meet(ONE), read(ONE, [1028], lanes=[0])), [("barrier-misuse", "error")],
    ),
    # the async proxy
    "a copy is read after its barrier": ((*FILLED, read(TWO)), []),
    "a fence before the write is too early": (
        (fence(), write(), meet(ONE), operate(kind="bulk store", **READS)), FENCE,
    ),
    "no barrier, even with a fence": (
        (write(), fence(), operate(TWO, "bulk store", **READS)), RACE,
    ),
    "the target of a copy whose source only was waited for": (
        (operate(writes=[(2048, 2048 + 512)]), observe(kind="read"), read()), RACE,
    ),
    "operations read what nobody wrote": (
        (operate(kind="wgmma", reads=[(2048, 4096)]),), [("uninitialised", "error")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario(name: str) -> None:
    steps, expected = SCENARIOS[name]
    assert findings(*steps) == expected


def test_arrivals_of_the_open_phase_are_not_seen() -> None:
    steps = barrier("b"), meet(), arrive(ONE, "b"), write(), arrive(ONE, "b", slice(0, 64))
    assert findings(*steps, wait(TWO, "b"), read(TWO), phase_lap=False) == RACE


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((write(), read(TWO)), ("thread 0 of CTA 0", "tile + 1024")),
        ((write(), meet(), read(TWO), write()), ("a read by thread 128",)),
        ((barrier("b"), arrive(TWO, "b")), ("initialisation",)),
        ((*RING, fill(), read(TWO)), ("bulk copy issued by thread 0",)),
    ],
    ids=["unordered", "overwritten", "unknown barrier", "too early"],
)
def test_a_race_says_what_with(steps: tuple[Step, ...], words: tuple[str, ...]) -> None:
    stage = play(*steps)
    assert stage.world.found() == RACE
    assert all(word in stage.world.text() for word in words)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((write(size=2), meet(ONE), read(at=[2048 + 2 * (63 - n) for n in range(64)], size=2)), []),
        ((write(at=[2048], size=2, lanes=[0]), write(at=[2050], size=2, lanes=[40]), finds([]),
          write(at=[2048], size=2, lanes=[40])), RACE),
    ],
    ids=["neighbours", "one half"],
)  # fmt: skip
def test_halves_of_words(steps: tuple[Step, ...], expected: Found) -> None:
    assert findings(*steps, threads=64) == expected


@pytest.mark.parametrize("met", [False, True])
def test_an_elected_arrival_needs_the_warp_to_meet(met: bool) -> None:
    def warp_meets(stage: Any) -> None:
        wg = stage.wg(ONE)
        stage.world.observer.warp_sync(wg, stage.world.lanes(wg, slice(0, 32)))

    steps = barrier("b", 1), meet(), write(lanes=slice(0, 32)), warp_meets if met else None
    rest = arrive(ONE, "b", [0]), wait(TWO, "b"), read(TWO, [2048 + 40], lanes=[3])
    assert findings(*steps, *rest) == ([] if met else RACE)


@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("cta", "cta", True), ("none", "cta", False), ("cta", "none", False),
])  # fmt: skip
def test_mbarriers_carry_what_was_released(release: str, acquire: str, good: bool) -> None:
    steps = barrier("b"), meet(), write(), arrive(ONE, "b", release=release)
    rest = wait(TWO, "b", acquire=acquire), read(TWO)
    assert findings(*steps, *rest) == ([] if good else RACE)


@pytest.mark.parametrize("waits", [True, False])
def test_the_stage_is_filled_again(waits: bool) -> None:
    product = operate(TWO, "wgmma", reads=[(2048, 2048 + 8192)])
    stage = play(*FILLED, product, observe(TWO) if waits else None, *FREED, fill())
    assert stage.world.found() == ([] if waits else RACE)
    assert waits or "wgmma issued by thread 128" in stage.world.text()


@pytest.mark.parametrize(("by_writers", "by_issuer"), [
    (True, False), (False, True), (False, False),
])  # fmt: skip
def test_generic_writes_need_a_proxy_fence(by_writers: bool, by_issuer: bool) -> None:
    steps = write(), fence() if by_writers else None, meet()
    rest = fence(TWO, lanes=[0]) if by_issuer else None, operate(TWO, "bulk store", **READS)
    assert findings(*steps, *rest) == ([] if by_writers or by_issuer else FENCE)


def needed(stage: Any) -> None:
    """Values of loads are needed before they are released."""
    stage.world.loads.needed = True


@pytest.mark.parametrize(("between", "expected"), [
    ((fence(TWO), *FREED), []),
    (FREED, [("proxy-war", "error")]),
    ((needed, *FREED), [("proxy-war", "isa")]),
    ((meet(),), [("proxy-war", "review")]),
    ((needed, meet()), [("proxy-war", "isa")]),
], ids=["fenced", "arrival", "arrival that needs it", "barrier", "barrier that needs it"],
)  # fmt: skip
def test_generic_reads_before_a_refill(between: tuple[Step, ...], expected: Found) -> None:
    assert findings(*FILLED, read(TWO), *between, fill()) == expected


@pytest.mark.parametrize(("waits", "good"), [("read", True), ("complete", True), (None, False)])
def test_the_source_of_a_store_is_overwritten(waits: str | None, good: bool) -> None:
    steps = write(), fence(), meet(), operate(TWO, "bulk store", **READS)
    rest = observe(TWO, [0], waits) if waits else None, meet(), write()
    assert findings(*steps, *rest) == ([] if good else RACE)


# ---- clusters

HANDED = barrier("b", who=PEER), meet(ONE, PEER), write(into=PEER)


@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", []),
    # the wait itself is the same for both scopes, and shared memory is not cached
    ("cluster", "cta", [("race", "isa")]),
    # stores on their way to the peer are not waited for
    ("cta", "cluster", RACE),
    ("cta", "cta", RACE),
])  # fmt: skip
def test_scopes_between_ctas(release: str, acquire: str, expected: Found) -> None:
    steps = arrive(ONE, "b", release=release), wait(PEER, "b", acquire=acquire), read(PEER)
    stage = play(*HANDED, *steps, **PAIR)
    assert stage.world.found() == expected
    if expected:
        assert f".{'release' if release == 'cta' else 'acquire'}.cluster" in stage.world.text()


@pytest.mark.parametrize(("release", "expected"), [("cta", [("race", "isa")]), ("cluster", [])])
def test_reads_are_over_when_their_arrival_reaches_the_peer(release: str, expected: Found) -> None:
    steps = (
        barrier("b", who=PEER),
        write(),
        meet(ONE, PEER),
        read(),
        arrive(ONE, "b", None, release),
    )
    rest = wait(PEER, "b", acquire="cluster"), write(PEER, into=ONE)
    assert findings(*steps, *rest, **PAIR) == expected


def test_a_narrow_wait_learns_of_its_own_cta_and_of_completions() -> None:
    def copy_of_the_peer(stage: Any) -> None:
        world, done = stage.world, stage.barriers["b"]
        operate(PEER, writes=[(ONE, 8192, 8192 + 512)])(stage)
        done.expect(512)
        world.arrive(stage.wg(PEER), done, release="cluster")
        world.land(stage.ops["op"], done, 512)

    steps = barrier("b", 256, TWO), meet(ONE, TWO, PEER), write(), copy_of_the_peer
    rest = arrive(ONE, "b"), wait(TWO, "b"), read(TWO), read(TWO, 8192)
    assert findings(*steps, *rest, threads=256, ctas=2) == []


def test_a_fence_of_the_clusters_scope_after_a_narrow_wait() -> None:
    steps = (
        arrive(ONE, "b", release="cluster"),
        wait(PEER, "b"),
        fence(PEER, "fence.acq_rel.cluster"),
    )
    assert findings(*HANDED, *steps, read(PEER), **PAIR) == []


@pytest.mark.parametrize("fenced", [True, False])
def test_a_missing_proxy_fence_is_not_hidden_by_a_narrow_wait(fenced: bool) -> None:
    steps = fence() if fenced else None, arrive(ONE, "b", release="cluster"), wait(PEER, "b")
    found = findings(*HANDED, *steps, operate(PEER, "bulk store", **READS), **PAIR)
    assert found == ([("race", "isa")] if fenced else FENCE)


# ---- threads that store the same


def store(world: World, wg: Any, offset: int, value: Any, lanes: Any = None) -> None:
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


def test_storing_one_value_by_many() -> None:
    world = World()
    store(world, world.wg(0), 2048, 7)
    store(world, world.wg(1), 2048, 7)
    assert world.found() == []
    store(world, world.wg(0), 2048, 8, [0])
    assert world.found() == RACE


def test_storing_several_values_with_one_instruction() -> None:
    world = World()
    store(world, world.wg(0), 2048, np.arange(128))
    assert world.found() == [("race", "review")]
