"""Order of accesses to tensor memory."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.emulator.state.machine import TensorRange
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
    fill,
    finds,
    meet,
    operate,
    play,
    wait,
)

# a warpgroup that works on tensor memory, and a thread that issues products
MATH, ISSUER = ONE, TWO
ISA = [("race", "isa")]
WAIT = [("missing-tcgen05-wait", "error")]
FENCE = [("missing-tcgen05-fence", "review")]


def found(*steps: Step | None, **options: Any) -> Found:
    """The findings on Blackwell; the warps of a warpgroup find the same."""
    begin = barrier("done", 1, ISSUER), barrier("free", 128, ISSUER), meet()
    stage = play(*begin, *steps, **{"sm": 100, **options})
    return sorted(set(stage.world.found()))


def part(stage: Stage, first: int = 0, columns: int = 128, who: Any = MATH) -> TensorRange:
    return TensorRange(stage.wg(who).cta, 0, 128, first, first + columns)


def product(
    first: int = 0, columns: int = 128, a: int | None = None, kind: str = "tcgen05.mma",
    who: Any = ISSUER, name: str = "op", after: str = "", **more: Any,
) -> Step:  # fmt: skip
    """A product into columns, of A in columns ``a``; it continues the one called ``after``."""

    def step(stage: Stage) -> None:
        stage.ops[name] = stage.world.operation(
            stage.wg(who), kind, tensor_reads=() if a is None else (part(stage, a, 8),),
            tensor_writes=(part(stage, first, columns),),
            **more, **({"continues": stage.ops[after]} if after else {}),
        )  # fmt: skip

    return step


def commit(name: str = "op") -> Step:
    def step(stage: Stage) -> None:
        tracked = {"tracks": [stage.ops[name]]}
        op = stage.world.operation(stage.wg(ISSUER), "tcgen05.commit", notes=tracked)
        stage.world.machine.complete(op)
        stage.barriers["done"].signal_arrival(op)

    return step


def side(who: Any, word: str, lanes: Any = None) -> Step:
    return fence(who, f"tcgen05.fence::{word}_thread_sync", lanes)


def waits(who: Any, name: str, lanes: Any = None, **more: Any) -> tuple[Step, Step]:
    """A wait, and the fence after it."""
    return wait(who, name, lanes, **more), side(who, "after", lanes)


def access(kind: str, first: int = 0, columns: int = 32, who: Any = MATH) -> Step:
    def step(stage: Stage) -> None:
        site = stage.world.site("tcgen05.ld" if kind == "read" else "tcgen05.st")
        where = [part(stage, first, columns, who)]
        stage.world.observer.tensor_access(stage.wg(who), None, where, kind, site)

    return step


def waited(kind: str, who: Any = MATH) -> Step:
    """tcgen05.wait::ld or ::st."""
    return lambda stage: stage.world.observer.tensor_waited(stage.wg(who), None, kind)


def free(stage: Stage) -> None:
    """The issuer's first warp deallocates the columns."""
    warp = stage.world.lanes(stage.wg(ISSUER), slice(0, 32))
    site = stage.world.site("tcgen05.dealloc")
    where = [part(stage)]
    stage.world.observer.tensor_access(stage.wg(ISSUER), warp, where, "free", site)


def needed(stage: Stage) -> None:
    """Values of loads are needed before they are released."""
    stage.world.loads.needed = True


READ, WRITE = access("read"), access("write")
COMPLETE = product(), commit()
LOADED = *waits(MATH, "done"), READ
GIVEN = arrive(MATH, "free"), *waits(ISSUER, "free", [0])
OVER_A = product(256, a=0)
SCENARIOS: dict[str, tuple[tuple[Step, ...], Found]] = {
    "a product is loaded after its commit": ((*COMPLETE, *LOADED), []),
    "relaxed waits do with the fences": (
        (*COMPLETE, *waits(MATH, "done", acquire="none"), READ), [],
    ),
    "loads whose values were needed before the release": (
        (needed, READ, *GIVEN, product()), [("missing-tcgen05-wait", "isa")],
    ),
    "a store over what the warp loaded": ((READ, WRITE), WAIT),
    "a store over loads whose values were needed": (
        (needed, READ, WRITE), [("missing-tcgen05-wait", "isa")],
    ),
    "stores are complete by a wait only": ((needed, WRITE, *GIVEN, OVER_A), WAIT),
    "columns that nobody handed over": ((READ, waited("read"), product()), RACE),
    "other columns do not matter": ((READ, product(32, 96)), []),
    "store, wait, load": ((WRITE, waited("write"), READ), []),
    "store, load": ((WRITE, READ), WAIT),
    "products on one accumulator are in order": ((product(), product()), []),
    # as where both wait for the same slot of a ring: order within the queue is enough
    "products in order, the first known to be complete": (
        (*COMPLETE, wait(ISSUER, "done"), product()), [],
    ),
    "another accumulator over a complete product": (
        (*COMPLETE, wait(ISSUER, "done"), product(64)), FENCE,
    ),
    "a product read as operand needs completion": ((product(), OVER_A), RACE),
    "the operand of a product in the queue is overwritten": ((OVER_A, product()), ISA),
    "the queue of another thread orders nothing": ((OVER_A, meet(), product(who=MATH)), RACE),
    "a copy before the product that reads it": ((product(0, 8, kind="tcgen05.cp"), OVER_A), []),
    "products of two threads without order": ((product(), product(who=MATH)), RACE),
    "what a product reads where it continues another": (
        (access("write", 256), product(name="first"), product(a=256, after="first")), RACE,
    ),
    "shared memory that it reads there": (
        (product(name="first", reads=()),
         lambda stage: stage.world.operation(
             stage.wg(ISSUER), "tcgen05.mma", tensor_writes=(part(stage),),
             continues=stage.ops["first"], reads=[(2048, 4096)])),
        [("uninitialised", "error")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario(name: str) -> None:
    steps, expected = SCENARIOS[name]
    assert found(*steps) == expected


def test_a_product_is_loaded_before_its_commit() -> None:
    stage = play(product(), meet(), side(MATH, "after"), READ, sm=100)
    assert set(stage.world.found()) == set(RACE)
    assert "tcgen05.mma issued by thread 128" in stage.world.text()


@pytest.mark.parametrize(("level", "expected"), [
    ("canonical", FENCE), ("acqrel", []), ("off", []),
])  # fmt: skip
def test_no_fence_after_the_wait(level: str, expected: Found) -> None:
    assert found(*COMPLETE, wait(MATH, "done"), READ, tcgen05_fences=level) == expected


@pytest.mark.parametrize(("when", "before", "after", "expected"), [
    ("before", True, True, []),
    (None, True, True, WAIT),
    ("after", True, True, WAIT),
    ("before", False, True, FENCE),
    ("before", True, False, FENCE),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["read", "write"])
def test_handing_columns_to_the_issuer(
    kind: str, when: str | None, before: bool, after: bool, expected: Found
) -> None:
    steps = (
        access(kind), waited(kind) if when == "before" else None,
        side(MATH, "before") if before else None, arrive(MATH, "free"),
        waited(kind) if when == "after" else None, wait(ISSUER, "free", [0]),
        side(ISSUER, "after", [0]) if after else None,
    )  # fmt: skip
    assert found(*steps, OVER_A if kind == "write" else product()) == expected


@pytest.mark.parametrize(("when", "lanes", "expected"), [
    ("before", slice(0, 128, 32), ISA),
    ("before", slice(0, 128), []),
    ("before", slice(0, 64, 32), [*RACE, *ISA]),
    ("after", slice(0, 128, 32), RACE),
    (None, slice(0, 128, 32), RACE),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["read", "write"])
def test_one_lane_hands_over_the_columns_of_its_warp(
    kind: str, when: str | None, lanes: slice, expected: Found
) -> None:
    """The wait is one operation of the warp; without it the access may be under way."""
    steps = (
        barrier("lanes", len(range(128)[lanes]), ISSUER), meet(), access(kind),
        waited(kind) if when == "before" else None, side(MATH, "before"),
        arrive(MATH, "lanes", lanes), waited(kind) if when == "after" else None,
        *waits(ISSUER, "lanes", [0]),
    )  # fmt: skip
    assert found(*steps, OVER_A if kind == "write" else product()) == expected


@pytest.mark.parametrize("committed", [True, False])
def test_what_orders_a_product_orders_those_that_continue_it(committed: bool) -> None:
    def same(stage: Stage) -> None:
        first, last = stage.ops["first"], stage.ops["op"]
        assert (last.slot, last.epoch) == (first.slot, first.epoch)

    chain = product(name="first"), product(name="next", after="first"), product(after="next"), same
    end = (commit(), *waits(MATH, "done")) if committed else ()
    assert found(*chain, *end, READ) == ([] if committed else RACE)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize(("release", "acquire", "expected"), [
    ("cluster", "cluster", FENCE), ("cluster", "cta", ISA), ("cta", "cta", ISA),
])  # fmt: skip
def test_handing_columns_to_the_issuer_of_the_pair(
    kind: str, release: str, acquire: str, expected: Found
) -> None:
    def overwritten(stage: Stage) -> None:
        columns = part(stage, 0, 32, PEER)
        stage.world.operation(stage.wg(ONE), "tcgen05.mma", tensor_writes=(columns,))

    steps = (
        barrier("free"), meet(PEER, ONE), access(kind, who=PEER), waited(kind, PEER),
        arrive(PEER, "free", release=release), *waits(ONE, "free", [0], acquire=acquire),
        overwritten,
    )  # fmt: skip
    stage = play(*steps, threads=128, ctas=2, sm=100)
    assert sorted(set(stage.world.found())) == expected


LOST, LATE = [("tensor-memory", "error")], [("missing-tcgen05-wait", "isa")]
LETTER = [("tensor-memory", "isa")]
USED = *COMPLETE, *LOADED, waited("read")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*USED, meet()), []),
        # a relaxed barrier orders what has been executed; the letter asks for more
        ((*USED, meet(release=False)), LETTER),
        ((*COMPLETE, *waits(MATH, "done"), meet(release=False)), LETTER),
        (USED, LOST),
        ((*COMPLETE, *waits(MATH, "done")), LOST),
        # without a wait, a load that was over when its warp came to the barrier still is
        ((needed, READ, meet()), LATE),
        ((needed, READ, meet(release=False)), LATE),
        ((READ, meet(release=False)), LOST),
        ((needed, READ), LOST),
    ],
    ids=["met", "relaxed", "product, relaxed", "apart", "product, apart", "needed, met",
         "needed, relaxed", "under way", "needed, apart"],
)  # fmt: skip
def test_giving_columns_back(steps: tuple[Step, ...], expected: Found) -> None:
    assert found(*steps, free) == expected


def test_a_stage_freed_by_a_commit_is_filled_again() -> None:
    """The first time; the second product has no commit."""
    turn = fill(MATH, arrives=MATH, size=4096, at=4096), *waits(ISSUER, "full", [0])
    use = *turn, product(reads=[(4096, 8192)])
    freed = commit(), *waits(MATH, "done", [0]), finds([])
    steps = barrier("full", 1, MATH), meet(), *use, *freed, *use
    assert ("race", "error") in found(*steps, operate(MATH, writes=[(4096, 8192)]))
