"""Initialisation of mbarriers, relaxed arrivals and waits, and threads that leave early."""

from __future__ import annotations

import pytest

from tests.emulator.checks.scenarios import (
    ONE,
    PAIR,
    PEER,
    RACE,
    TWO,
    Found,
    arrive,
    barrier,
    fence,
    fill,
    fill_peer,
    findings,
    leave,
    meet,
    play,
    read,
    wait,
    write,
)

REVIEW, EARLY = [("missing-init-fence", "review")], [("early-exit", "error")]

# ---- initialisation


@pytest.mark.parametrize(("own", "proxy", "expected"), [
    (True, False, []), (False, False, REVIEW), (False, True, []),
])  # fmt: skip
def test_signals_of_operations_need_a_fence(own: bool, proxy: bool, expected: Found) -> None:
    steps = barrier("full", 1, fence=own), fence(lanes=[0]) if proxy else None, meet(ONE)
    assert findings(*steps, fill(arrives=None, size=4096, at=4096)) == expected


@pytest.mark.parametrize(("fenced", "release", "expected"), [
    (True, True, []), (True, False, []), (False, True, REVIEW),
    (False, False, [("missing-init-fence", "error")]),
])  # fmt: skip
def test_signals_to_a_peer_need_the_fence_or_a_release(
    fenced: bool, release: bool, expected: Found
) -> None:
    steps = barrier("full", 1, PEER, fence=fenced), meet(ONE, PEER, release=release)
    assert findings(*steps, fill_peer(ONE, "full"), **PAIR) == expected


def test_local_arrivals_need_no_fence() -> None:
    assert findings(barrier("b", fence=False), meet(), arrive(TWO, "b")) == []


@pytest.mark.parametrize(("fenced", "release", "expected"), [
    (True, True, []), (True, False, []), (False, True, []), (False, False, RACE),
])  # fmt: skip
def test_arrivals_of_a_peer(fenced: bool, release: bool, expected: Found) -> None:
    steps = barrier("b", who=PEER, fence=fenced), meet(ONE, PEER, release=release)
    assert findings(*steps, arrive(ONE, "b"), **PAIR) == expected


def test_arrivals_before_the_cluster_has_met() -> None:
    assert findings(barrier("b", who=PEER), arrive(ONE, "b"), **PAIR) == RACE


# ---- relaxed arrivals and waits, with fences beside them

RELEASE = "fence.release.sync_restrict::shared::cta.cluster"
ACQUIRE = "fence.acquire.sync_restrict::shared::cluster.cluster"


@pytest.mark.parametrize(("before_arrival", "after_wait", "expected"), [
    (RELEASE, ACQUIRE, []),
    (None, ACQUIRE, RACE),
    (RELEASE, None, RACE),
    (ACQUIRE, RELEASE, RACE),
    ("fence.acq_rel.cluster", "fence.acq_rel.cluster", []),
    ("fence.acq_rel.cta", "fence.acq_rel.cta", RACE),
])  # fmt: skip
@pytest.mark.parametrize("early", [False, True])
def test_a_relaxed_hand_over_needs_a_fence_on_either_side(
    before_arrival: str | None, after_wait: str | None, expected: Found, early: bool
) -> None:
    """A release fence covers only what came before it."""
    steps = [write(into=PEER), fence(ONE, before_arrival) if before_arrival else None]
    rest = (
        arrive(ONE, "b", release="none"), wait(PEER, "b", acquire="none"),
        fence(PEER, after_wait) if after_wait else None, read(PEER),
    )  # fmt: skip
    order = steps[::-1] if early else steps
    found = findings(barrier("b", who=PEER), meet(ONE, PEER), *order, *rest, **PAIR)
    assert found == (RACE if early else expected)


# ---- leaving


@pytest.mark.parametrize("met", [True, False])
def test_leaving_while_a_peer_reads(met: bool) -> None:
    steps = write(PEER), meet(ONE, PEER), read(into=PEER)
    again = meet(ONE, PEER, release=False) if met else None
    stage = play(*steps, again, leave(PEER), leave(ONE), **PAIR)
    assert stage.world.found() == ([] if met else EARLY)
    assert met or "a read by" not in stage.world.text()


def test_using_the_memory_of_a_peer_that_has_left() -> None:
    steps = barrier("b", who=PEER), meet(ONE, PEER), leave(PEER), arrive(ONE, "b")
    assert findings(*steps, **PAIR) == EARLY


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_into_a_peer_that_leaves(waits: bool) -> None:
    steps = barrier("full", 1, PEER), meet(ONE, PEER), fill_peer(ONE, "full", PEER)
    found = findings(*steps, wait(PEER, "full") if waits else None, leave(PEER), **PAIR)
    assert found == ([] if waits else EARLY)
