"""ProducerConsumerPipeline and EpiLoadPipeline: threads to threads, and TMA to threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Program, TensorMap
from fa4gen.errors import CompileError
from tests.rings.harness import (
    LANES,
    PANEL,
    UNTOUCHED,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    compile_text,
    launch,
    render,
    small_integers,
)

if TYPE_CHECKING:
    from tests.rings.conftest import Policies

pytestmark = pytest.mark.compile
STAGES = (1, 2, 3, 4, 5)
ROWS = 128

THREADS = tuple(
    Variant(kind, stages) for kind in ("steps", "scoped", "arrives", "lane") for stages in STAGES
)
TILES = tuple(
    Variant(kind, stages)
    for kind in ("steps", "scoped", "acquired", "arrives", "lane")
    for stages in STAGES[:4]
)
# A mutant is reported as one of these, whatever the interleaving.
THREAD_MUTANTS: dict[Variant, set[str]] = {
    Variant("steps", 2, 1, "no_wait"): {"race", "uninitialised"},
    Variant("steps", 2, 1, "no_acquire"): {"race", "deadlock", "over-arrival"},
    Variant("scoped", 2, 1, "early_commit"): {"race", "uninitialised"},
    Variant("arrives", 3, 1, "early_release"): {"race"},
    Variant("scoped", 2, 1, "first_phase"): {"deadlock"},
    Variant("scoped", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("lane", 3, 1, "no_flip"): {"race", "deadlock"},
    Variant("scoped", 3, 1, "stage_early"): {"race", "uninitialised"},
}
TILE_MUTANTS: dict[Variant, set[str]] = {
    Variant("steps", 2, 1, "no_wait"): {"race", "uninitialised"},
    Variant("steps", 2, 1, "no_acquire"): {"race", "over-arrival"},
    Variant("arrives", 2, 1, "early_release"): {"race"},
    Variant("lane", 2, 1, "early_release"): {"race"},
    Variant("lane", 2, 1, "one_release"): {"deadlock"},
    Variant("lane", 2, 1, "double_release"): {"race", "phase-lap", "deadlock"},
    Variant("scoped", 2, 1, "first_phase"): {"deadlock"},
    Variant("scoped", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("scoped", 3, 1, "stage_early"): {"race", "uninitialised"},
}
NO_FENCE = Variant("scoped", 2, 1, "no_fence")


@cache
def handovers() -> Program:
    source = render(
        "handovers.cu.j2", stage_counts=STAGES, threads=(*THREADS, *THREAD_MUTANTS),
        tiles=(*TILES, *TILE_MUTANTS, NO_FENCE),
    )  # fmt: skip
    return Program(compile_text("handovers", source))


@dataclass
class Model:
    """Positions of producer and consumer, in this order, in a copy of the pipeline."""

    stages: int
    index: list[int] = field(default_factory=lambda: [0, 0])
    phase: list[int] = field(default_factory=lambda: [1, 0])

    def step(self, role: int) -> None:
        self.index[role] += 1
        if self.index[role] == self.stages:
            self.index[role] = 0
            self.phase[role] ^= 1

    def words(self) -> list[int]:
        """Index, parity, and the barrier that the role arrives on, for both."""
        producer, consumer = self.index
        return [
            producer, self.phase[0], 8 * producer, consumer, self.phase[1],
            8 * (self.stages + consumer),
        ]  # fmt: skip


def steps_of(variant: Variant) -> int:
    return 3 * variant.stages + 1


def expected_log(variant: Variant, role: int) -> list[list[list[int]]]:
    """For each step: inside, with the handle's stage and barrier, and after it."""
    model, log = Model(variant.stages), []
    for _ in range(steps_of(variant)):
        inside = model.words()
        inside += inside[3 * role], inside[3 * role + 2]
        model.step(role)
        log.append([inside, [*model.words(), UNTOUCHED, UNTOUCHED]])
    return log


def empty_log(variant: Variant) -> Any:
    return np.full((2, steps_of(variant), 2, 8), UNTOUCHED, np.int32)


def run_threads(variant: Variant, **options: Any) -> tuple[Run, Any]:
    steps = steps_of(variant)
    random = np.random.default_rng(options.get("seed", 0))
    words = random.integers(0, 2**31, (steps, LANES), np.uint32)
    out, log = np.zeros_like(words), empty_log(variant)
    args = [words, out, log, np.int32(steps)]
    report = launch(handovers(), f"threads_{variant.name}", args, **options)
    return Run(report, out, log), np.roll(words, -1, axis=1)


def run_tiles(variant: Variant, **options: Any) -> tuple[Run, Any]:
    steps = steps_of(variant)
    tiles = small_integers(options.get("seed", 0), 1, steps, 1, ROWS, PANEL)
    out, log = np.zeros((steps, ROWS, PANEL), np.uint16), empty_log(variant)
    args = [TensorMap(tiles, (1, 1, 1, ROWS, PANEL)), out, log, np.int32(steps)]
    report = launch(handovers(), f"tiles_{variant.name}", args, threads=160, **options)
    return Run(report, out, log), tiles[0, :, 0].view(np.uint16)


def check(variant: Variant, done: Run, expected: Any) -> None:
    assert_clean(done.report)
    np.testing.assert_array_equal(done.out, expected)
    for role in range(2):
        np.testing.assert_array_equal(done.log[role], expected_log(variant, role))


@pytest.mark.parametrize("variant", THREADS, ids=str)
def test_threads_hand_over(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        check(variant, *run_threads(variant, seed=seed, schedule=schedule))


@pytest.mark.parametrize("variant", TILES, ids=str)
def test_copies_are_handed_to_the_epilogue(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        check(variant, *run_tiles(variant, seed=seed, schedule=schedule))


@pytest.mark.parametrize("kind", ["scoped", "lane"])
def test_more_interleavings(kind: str) -> None:
    for seed in range(len(SCHEDULES), 4 * len(SCHEDULES)):
        options = {"seed": seed, "schedule": SCHEDULES[seed % len(SCHEDULES)]}
        check(Variant(kind, 2), *run_threads(Variant(kind, 2), **options))
        check(Variant(kind, 3), *run_tiles(Variant(kind, 3), **options))


def test_one_stage_flips_at_every_step() -> None:
    log = expected_log(Variant("steps", 1), 0)
    assert [(inside[0], inside[1]) for inside, _ in log] == [(0, 1), (0, 0), (0, 1), (0, 0)]


@pytest.mark.parametrize("stages", STAGES)
def test_full_barriers_come_first_with_their_counts(stages: int) -> None:
    arrivals = np.full((4, 2 * stages), UNTOUCHED, np.int32)
    assert_clean(launch(handovers(), f"counts_s{stages}", [arrivals], threads=32))
    # as requested; the epilogue's load by default, and with one arrival per warp; a pair's sums
    counts = [(3, 5), (1, 128), (1, 4), (1, 256)]
    assert arrivals.tolist() == [[full] * stages + [empty] * stages for full, empty in counts]


@pytest.mark.parametrize("variant", THREAD_MUTANTS, ids=str)
def test_mutants_of_threads_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = run_threads(variant, seed=seed, schedule=schedule)[0].report
        assert_reported(report, THREAD_MUTANTS[variant])


@pytest.mark.parametrize("variant", TILE_MUTANTS, ids=str)
def test_mutants_with_copies_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = run_tiles(variant, seed=seed, schedule=schedule)[0].report
        assert_reported(report, TILE_MUTANTS[variant])


def test_reads_are_fenced_before_the_copy_that_overwrites_them(policies: Policies) -> None:
    for seed, schedule in policies:
        report = run_tiles(NO_FENCE, seed=seed, schedule=schedule)[0].report
        # what was read has been stored before the release: so the reads are over
        assert report.verdict.value == "isa", str(report)
        assert {finding.kind for finding in report.findings} == {"proxy-war"}


@pytest.mark.parametrize(
    "handle", ["ProduceContext<2>", "ConsumeContext<2>", "ExplicitConsumeContext<2>"]
)
def test_a_handle_ends_once(handle: str) -> None:
    source = render("handovers.cu.j2", stage_counts=(), threads=(), tiles=())
    source += f"""
extern "C" __global__ void wrong_roles() {{
  ProducerConsumerPipeline<2> pipeline{{0}};
  const {handle} one(pipeline);
  const {handle} two(one);
}}
"""
    with pytest.raises(CompileError, match="deleted function"):
        compile_text(handle, source)
