"""Races in global memory, inside a cluster and between clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from fa4gen.emulator.state.async_ops import GlobalRange
from tests.emulator.checks.scenarios import (
    CLUSTERS,
    FENCE,
    ONE,
    OTHER,
    PAIR,
    PEER,
    RACE,
    TWO,
    Found,
    Step,
    arrive,
    barrier,
    both_ways,
    fence,
    findings,
    finds,
    flag,
    load,
    meet,
    observe,
    operate,
    play,
    store,
    update,
    wait,
    write,
)
from tests.emulator.kernel import kernel, run

FIRST: Any = {"lanes": [0]}
SCENARIOS: dict[str, tuple[tuple[Step, ...], Found]] = {
    "clusters read the same place": (
        (load(ONE, 256), load(OTHER, 256), finds([]), store(ONE, 256)), RACE,
    ),
    "neighbouring halves": (
        (store(ONE, size=2, lanes=[0]), store(OTHER, at=2, size=2, lanes=[0])), [],
    ),
    "what was written after the release": (
        (flag(ONE, "release", writes=True), store(ONE, 256), flag(OTHER, "acquire", reads=True),
         load(OTHER, 256)), RACE,
    ),
    "atomics and strong accesses": (
        (update(ONE, "red.global.add.f32"), update(OTHER, "red.global.add.f32"),
         store(OTHER, 256, text="st.release.gpu.global.u32"),
         load(ONE, 256, text="ld.acquire.gpu.global.u32"), finds([]), load(ONE, 256)), RACE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_of_two_clusters(name: str) -> None:
    steps, expected = SCENARIOS[name]
    assert findings(*steps, **CLUSTERS) == expected


@pytest.mark.parametrize("ordered", [True, False])
def test_threads_of_a_cta(ordered: bool) -> None:
    stage = play(store(ONE), meet() if ordered else None, load(TWO))
    assert stage.world.found() == ([] if ordered else RACE)
    assert ordered or "array + 0 after the write by thread 0" in stage.world.text()


@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", []),
    ("cluster", "cta", RACE),  # what is cached of global memory stays
    ("cta", "cluster", RACE),
])  # fmt: skip
def test_scopes_of_a_hand_over_between_ctas_matter(
    release: str, acquire: str, expected: Found
) -> None:
    steps = barrier("b", who=PEER), meet(ONE, PEER), store(ONE), arrive(ONE, "b", release=release)
    assert findings(*steps, wait(PEER, "b", acquire=acquire), load(PEER), **PAIR) == expected


@pytest.mark.parametrize("ordered", [True, False])
def test_overwriting_what_was_read_before_anybody_wrote(ordered: bool) -> None:
    found = findings(load(ONE, 70_000), meet() if ordered else None, store(TWO, 70_000))
    assert found == ([] if ordered else RACE)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("reads", [100, 500, 3000])
def test_a_page_remembers_its_readers_however_many_there_are(reads: int, ordered: bool) -> None:
    """The last read alone is at odds with the write."""
    many = [load(ONE, 4 * number, **FIRST) for number in range(reads - 1)]
    last = load(ONE, 4 * reads, **FIRST), meet() if ordered else None
    found = findings(*many, meet(), *last, store(TWO, 4 * reads, **FIRST))
    assert found == ([] if ordered else RACE)


def test_clusters_write_the_same_place() -> None:
    steps = store(ONE, 256), store(OTHER, 768), finds([]), store(OTHER, 256 + 508)
    stage = play(*steps, **CLUSTERS)
    assert stage.world.found() == RACE
    assert "cluster 0" in stage.world.text()


BOTH_STORE = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r1, 8; add.u64 %d2, %d0, %d1;
    add.u32 %r3, %r1, 5; mul.lo.u32 %r4, %r2, FACTOR; setp.eq.u32 %p1, %r1, 9;
    @%p1 add.u32 %r3, %r3, %r4;
    st.global.v2.u32 [%d2+OFFSET], {%r3, %r3};
    THEN
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("factor", "then", "expected"), [
    (0, "", [("race", "review")]),
    (1, "", [("race", "error"), ("race", "review")]),
    (0, "ld.global.u32 %r5, [%d2+OFFSET];", [("race", "error"), ("race", "review")]),
])  # fmt: skip
@pytest.mark.parametrize("offset", [0, 65_536 - 128])
def test_ctas_store_the_same_values(factor, then, offset, expected, schedule):
    """For review where all that two store is equal; a read of it is at odds with either."""
    body = BOTH_STORE.replace("FACTOR", str(factor)).replace("THEN", then)
    out = np.zeros(40_000, np.uint32)
    ptx = kernel(body.replace("OFFSET", str(offset)))
    report = run(ptx, out, grid=2, schedule=schedule, resident_clusters=2)
    found = [(one.kind, one.severity.value) for one in report.findings]
    assert set(found) == set(expected)
    assert "(both store the same value)" in str(report)


def handed(signal: Step, *seen: Step | None) -> tuple[Step | None, ...]:
    """ONE writes, its first thread signals; that of OTHER sees it, and all of them read."""
    return (
        store(ONE, 256),
        meet(ONE, key="one"),
        signal,
        *seen,
        meet(OTHER, key="two"),
        load(OTHER, 256),
    )


@pytest.mark.parametrize(("release", "acquire", "scope", "good"), [
    ("release", "acquire", "gpu", True), ("acq_rel", "acq_rel", "sys", True),
    ("relaxed", "acquire", "gpu", False), ("release", "acquire", "cta", False),
])  # fmt: skip
def test_clusters_synchronise_by_a_flag(release: str, acquire: str, scope: str, good: bool) -> None:
    signal = flag(ONE, release, writes=True, scope=scope)
    steps = handed(signal, flag(OTHER, acquire, reads=True, scope=scope))
    assert findings(*steps, **CLUSTERS) == ([] if good else RACE)


@pytest.mark.parametrize(("before", "after", "good"), [
    ("membar.gl", "membar.gl", True), ("fence.acq_rel.gpu", "fence.acq_rel.gpu", True),
    ("fence.sc.sys", "membar.sys", True), ("fence.release.gpu", "fence.acquire.gpu", True),
    (None, "membar.gl", False), ("membar.gl", None, False), (None, None, False),
    ("fence.acq_rel.cta", "membar.gl", False), ("membar.gl", "fence.acq_rel.cta", False),
    ("fence.acq_rel.cluster", "membar.gl", False), ("fence.acquire.gpu", "membar.gl", False),
    ("membar.gl", "fence.release.gpu", False), ("fence.proxy.async.global", "membar.gl", False),
    ("membar.gl", "fence.acquire.sync_restrict::shared::cluster.cluster", False),
])  # fmt: skip
def test_relaxed_atomics_synchronise_by_the_fences_beside_them(
    before: str | None, after: str | None, good: bool
) -> None:
    write = store(ONE, 256), meet(ONE, key="one"), fence(ONE, before, [0]) if before else None
    seen = both_ways(ONE), both_ways(OTHER), fence(OTHER, after, [0]) if after else None
    found = findings(*write, *seen, meet(OTHER, key="two"), load(OTHER, 256), **CLUSTERS)
    assert found == ([] if good else RACE)


@pytest.mark.parametrize(("release", "acquire"), [("relaxed", "acquire"), ("release", "relaxed")])
def test_a_fence_too_early_does_nothing(release: str, acquire: str) -> None:
    signal = flag(ONE, release, writes=True)
    steps = handed(signal, fence(OTHER, "membar.gl"), flag(OTHER, acquire, reads=True))
    assert findings(fence(ONE, "membar.gl"), *steps, **CLUSTERS) == RACE


@pytest.mark.parametrize("fenced", [True, False])
def test_the_last_to_count_sets_a_counter_to_zero(fenced: bool) -> None:
    """No store comes before the branch that depends on what a relaxed read has seen."""
    counts = [update(who, "atom.global.add.u32", lanes=[0]) for who in (ONE, OTHER)]
    fenced_or_not = fence(OTHER, "membar.gl", [0]) if fenced else None
    zero = both_ways(OTHER), both_ways(ONE), store(ONE, 256, **FIRST)
    rest = finds([] if fenced else RACE), load(OTHER, 256, **FIRST)
    assert RACE[0] in findings(*counts, fenced_or_not, *zero, *rest, **CLUSTERS)


def test_fences_of_all_threads_before_and_after_barriers() -> None:
    """By each thread for itself, with a barrier to the one thread that signals or waits."""
    more, another = (1, 0, 0), (1, 0, 1)
    steps = (
        fence(ONE, "membar.gl"), store(more, 256), fence(more, "membar.gl"),
        meet(ONE, more, key="one"), store(more, 2048),
        fence(more, "membar.gl"),  # nothing orders this one and the atomic
        both_ways(ONE), flag(OTHER, "relaxed", reads=True), meet(OTHER, another, key="two"),
        fence(another, "membar.gl"), load(another, 256), finds([]), load(another, 2048),
    )  # fmt: skip
    assert findings(*steps, **CLUSTERS) == RACE


@pytest.mark.parametrize("times", [1, 2, 7, 8, 9, 20])
def test_every_release_before_the_fence_counts(times: int) -> None:
    """However often a flag is read before it, with other values or the same."""
    released, seen = flag(ONE, "release", writes=True), flag(OTHER, "relaxed", reads=True)
    steps: list[Step] = []
    for number in range(times):
        steps += [store(ONE, 256 + 4 * number, **FIRST), released, seen, seen]
    steps.append(fence(OTHER, "membar.gl", [0]))
    steps += [load(OTHER, 256 + 4 * number, **FIRST) for number in range(times)]
    late = store(ONE, 1024, **FIRST), released, seen, load(OTHER, 1024, **FIRST)
    assert findings(*steps, finds([]), *late, **CLUSTERS) == RACE


@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("cluster", "cluster", True), ("gpu", "cluster", True), ("cta", "gpu", False),
    ("gpu", "cta", False), ("cta", "cta", False),
])  # fmt: skip
@pytest.mark.parametrize("fenced", [False, True])
def test_scopes_between_the_ctas_of_a_cluster(
    release: str, acquire: str, good: bool, fenced: bool
) -> None:
    """Each has to include the other CTA; fences count by their own scopes."""
    if fenced:
        steps = (
            fence(ONE, f"fence.acq_rel.{release}", [0]), flag(ONE, "relaxed", writes=True),
            flag(PEER, "relaxed", reads=True), fence(PEER, f"fence.acq_rel.{acquire}", [0]),
        )  # fmt: skip
    else:
        released = flag(ONE, "release", writes=True, scope=release)
        steps = released, flag(PEER, "acquire", reads=True, scope=acquire)
    found = findings(store(ONE, **FIRST), *steps, load(PEER, **FIRST), **PAIR)
    assert found == ([] if good else RACE)


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("scope", ["cta", "gpu"])
@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("release", "acquire", True), ("release", "relaxed", False), ("relaxed", "acquire", False),
])  # fmt: skip
def test_threads_of_a_cta_synchronise_by_a_flag(
    scope: str, release: str, acquire: str, good: bool, ctas: int
) -> None:
    signal = flag(ONE, release, writes=True, scope=scope)
    steps = store(ONE, **FIRST), signal, flag(TWO, acquire, reads=True, scope=scope)
    assert findings(*steps, load(TWO, **FIRST), ctas=ctas) == ([] if good else RACE)


@pytest.mark.parametrize(("first", "second", "expected"), [
    ("gpu", "gpu", []), ("sys", "gpu", []), ("cta", "gpu", RACE), ("gpu", "cta", RACE),
    ("cluster", "gpu", RACE),
])  # fmt: skip
def test_atomics_of_other_clusters_need_the_scope_of_the_gpu(
    first: str, second: str, expected: Found
) -> None:
    scopes = zip((ONE, OTHER), (first, second), strict=True)
    steps = [update(who, f"red.relaxed.{scope}.global.add.u32", lanes=[0]) for who, scope in scopes]
    assert findings(*steps, **CLUSTERS) == expected


@pytest.mark.parametrize(("scope", "expected"), [("cluster", []), ("cta", RACE)])
def test_atomics_of_other_ctas_need_the_scope_of_the_cluster(scope: str, expected: Found) -> None:
    text = f"red.relaxed.{scope}.global.add.u32"
    assert findings(*(update(who, text, lanes=[0]) for who in (ONE, PEER)), ctas=2) == expected


# ---- the async proxy


def globally(first: int, stop: int) -> Any:
    return lambda stage: GlobalRange(stage.world.array + first, stage.world.array + stop)


@pytest.mark.parametrize("fenced", [True, False])
def test_generic_writes_that_a_copy_reads(fenced: bool) -> None:
    steps = store(ONE), fence(ONE, "fence.proxy.async.global") if fenced else None, meet()
    found = findings(*steps, operate(TWO, reads=[globally(0, 512)], writes=[(2048, 2560)]))
    assert found == ([] if fenced else FENCE)


@pytest.mark.parametrize(("kind", "good"), [("complete", True), ("read", False)])
def test_reading_what_a_bulk_store_wrote(kind: str, good: bool) -> None:
    copy = operate(kind="bulk store", reads=[(2048, 2560)], writes=[globally(0, 512)])
    steps = write(), fence(), meet(ONE), copy, observe(lanes=[0], kind=kind), meet()
    assert findings(*steps, load(TWO)) == ([] if good else RACE)


@dataclass(frozen=True)
class Rows(GlobalRange):
    rows: tuple[np.ndarray, int] = ()


def rows(start: int, count: int) -> Any:
    """Rows of 128 bytes, 4096 bytes from each other."""

    def made(stage: Any) -> Rows:
        starts = stage.world.array + start + 4096 * np.arange(count)
        return Rows(int(starts[0]), int(starts[-1]) + 128, (starts, 128))

    return made


def test_boxes_of_clusters_side_by_side() -> None:
    boxes = [
        operate(who, "tensor store", writes=[rows(start, count)])
        for who, start, count in ((ONE, 0, 64), (OTHER, 128, 64), (OTHER, 64, 1))
    ]
    assert findings(*boxes[:2], finds([]), boxes[2], **CLUSTERS) == RACE


def test_reductions_into_the_same_place() -> None:
    place = [globally(0, 200_000)]
    steps = [operate(who, "bulk reduction", writes=place) for who in (ONE, OTHER)]
    assert findings(*steps, **CLUSTERS) == []
