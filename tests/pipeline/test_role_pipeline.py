"""RolePipeline: threads to threads, MMAs to threads, and a role that waits for its own MMAs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Report
from fa4gen.errors import CompileError
from tests.pipeline.harness import (
    LANES,
    ROWS,
    UNTOUCHED,
    Operands,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    compile_text,
    launch,
    program,
    render,
    ring_states,
)

STEPS = 7
SEEDS = 2
pytestmark = pytest.mark.compile

THREADS = tuple(Variant("threads", stages, parts) for stages in (1, 2) for parts in (1, 2, 3))
PRODUCTS = tuple(Variant("products", stages) for stages in (1, 2))
DRAIN = Variant("drain", 1)
# A mistake is reported as one of these, whatever the interleaving.
MISTAKES: dict[Variant, set[str]] = {
    Variant("threads", 2, 3, "no_wait"): {"race", "uninitialised"},
    Variant("threads", 1, 2, "no_acquire"): {"race", "over-arrival"},
    Variant("threads", 2, 1, "early_release"): {"race", "uninitialised"},
    Variant("threads", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("threads", 2, 2, "no_flip"): {"race", "deadlock"},
    Variant("products", 2, 1, "no_wait"): {"race", "uninitialised"},
    Variant("products", 2, 1, "no_acquire"): {"race", "over-arrival"},
    Variant("products", 1, 1, "thread_commit"): {"race"},
    Variant("drain", 1, 1, "no_wait"): {"race"},
}
SINGLE = (*THREADS, *PRODUCTS, DRAIN, *MISTAKES)
PAIR_MISTAKE = Variant("products", 2, 1, "no_acquire")
PAIR = (*PRODUCTS, PAIR_MISTAKE)


def expected_log(variant: Variant, role: int) -> Any:
    """Index, phase, offset of each part's barrier, offset of the consumer's, 0."""
    stages, parts = variant.stages, variant.parts
    return [
        [
            [index, phase, 8 * (parts * index + part), 8 * (parts * stages + index), 0]
            for part in range(parts)
        ]
        for index, phase in ring_states(stages, STEPS, phase=1 - role)
    ]


def run_threads(variant: Variant, **options: Any) -> tuple[Run, Any]:
    shape = (STEPS, variant.parts, LANES)
    words = np.random.default_rng(options.get("seed", 0)).integers(0, 2**31, shape, np.uint32)
    out = np.zeros_like(words)
    log = np.full((1, 2, STEPS, variant.parts, 5), UNTOUCHED, np.int32)
    args = [words, out, log, np.int32(STEPS)]
    report = launch(program("roles.cu.j2", "roles", SINGLE), variant.name, args, **options)
    return Run(report, out, log), np.roll(words, -1, axis=2)


def run_products(variant: Variant, ctas: int, operands: Operands, **options: Any) -> Run:
    out = np.full((ctas, STEPS, LANES, ROWS), np.nan, np.float32)
    log = np.full((ctas, 2, STEPS, 1, 5), UNTOUCHED, np.int32)
    keys = operands.maps()[1] if variant.kind == "products" else operands.stored_keys()
    args = [operands.maps()[0], keys, out, log, np.int32(STEPS)]
    kernels = program("roles.cu.j2", "roles", SINGLE if ctas == 1 else PAIR, ctas)
    return Run(launch(kernels, variant.name, args, ctas, **options), out, log)


def check_products(done: Run, operands: Operands) -> None:
    assert_clean(done.report)
    for step in range(STEPS):
        np.testing.assert_array_equal(done.out[:, step], operands.key_product(step))


def report_of(variant: Variant, **options: Any) -> Report:
    if variant.kind == "threads":
        return run_threads(variant, **options)[0].report
    return run_products(variant, 1, Operands.make(0, 1, 1, STEPS), **options).report


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("variant", THREADS, ids=str)
def test_threads_hand_over_in_parts(variant: Variant, schedule: str) -> None:
    for seed in range(SEEDS):
        done, expected = run_threads(variant, seed=seed, schedule=schedule)
        assert_clean(done.report)
        np.testing.assert_array_equal(done.out, expected)
        for role in range(2):
            np.testing.assert_array_equal(done.log[0, role], expected_log(variant, role))


@pytest.mark.parametrize("ctas", [1, 2], ids=["single", "pair"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("variant", PRODUCTS, ids=str)
def test_products_are_handed_over_by_commit(variant: Variant, schedule: str, ctas: int) -> None:
    for seed in range(SEEDS):
        operands = Operands.make(seed, ctas, 1, STEPS)
        done = run_products(variant, ctas, operands, seed=seed, schedule=schedule)
        check_products(done, operands)
        np.testing.assert_array_equal(done.log[0, 0], expected_log(variant, 0))
        for rank in range(ctas):
            np.testing.assert_array_equal(done.log[rank, 1], expected_log(variant, 1))
        assert (done.log[1:, 0] == UNTOUCHED).all()  # the leader alone multiplies


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_drain_waits_for_the_products_committed_last(schedule: str) -> None:
    for seed in range(SEEDS):
        operands = Operands.make(seed, 1, 1, STEPS)
        done = run_products(DRAIN, 1, operands, seed=seed, schedule=schedule)
        check_products(done, operands)
        # there is no consumer_mbar
        assert done.log[0, 0, :, 0, :3].tolist() == [
            [index, phase, 0] for index, phase in ring_states(1, STEPS, phase=1)
        ]


def test_drain_needs_one_slot() -> None:
    source = render("roles.cu.j2", roles=())
    source += """
extern "C" __global__ void mistaken() { RolePipeline<2, true>{0, 0}.drain(); }
"""
    with pytest.raises(CompileError, match="With more slots, the last commit was on another one"):
        compile_text("mistaken", source)


@pytest.mark.parametrize("variant", MISTAKES, ids=str)
def test_mistakes_are_reported(variant: Variant) -> None:
    for seed, schedule in enumerate(SCHEDULES):
        report = report_of(variant, seed=seed, schedule=schedule)
        assert_reported(report, MISTAKES[variant])


def test_mistakes_of_a_pair_are_reported() -> None:
    for seed, schedule in enumerate(SCHEDULES):
        operands = Operands.make(0, 2, 1, STEPS)
        done = run_products(PAIR_MISTAKE, 2, operands, seed=seed, schedule=schedule)
        assert_reported(done.report, {"race", "over-arrival"})
