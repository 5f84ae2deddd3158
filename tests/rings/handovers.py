"""ProducerConsumerPipeline and EpiLoadPipeline: threads to threads, and TMA to threads."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from fa4gen.emulator import Program, TensorMap
from tests.rings.harness import (
    LANES,
    PANEL,
    ROUNDS,
    Done,
    Struct,
    Variant,
    compile_text,
    launch,
    render,
    small_integers,
)

STAGES: Final = (1, 2, 3, 4, 5)
ROWS: Final = 128
THREADS: Final = tuple(
    Variant(kind, stages) for kind in ("steps", "scoped", "arrives", "lane") for stages in STAGES
)
TILES: Final = tuple(
    Variant(kind, stages)
    for kind in ("steps", "scoped", "acquired", "arrives", "lane")
    for stages in STAGES[:4]
)
THREAD_MUTANTS: Final[dict[Variant, set[str]]] = {
    Variant("steps", 2, 1, "no_wait"): {"race", "uninitialised"},
    Variant("steps", 2, 1, "no_acquire"): {"race", "deadlock", "over-arrival"},
    Variant("scoped", 2, 1, "early_commit"): {"race", "uninitialised"},
    Variant("arrives", 3, 1, "early_release"): {"race"},
    Variant("scoped", 2, 1, "first_phase"): {"deadlock"},
    Variant("scoped", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("lane", 3, 1, "no_flip"): {"race", "deadlock"},
    Variant("scoped", 3, 1, "stage_early"): {"race", "uninitialised"},
}
TILE_MUTANTS: Final[dict[Variant, set[str]]] = {
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
NO_FENCE: Final = Variant("scoped", 2, 1, "no_fence")


@cache
def kernels() -> Program:
    source = render(
        "handovers.cu.j2", stage_counts=STAGES, threads=(*THREADS, *THREAD_MUTANTS),
        tiles=(*TILES, *TILE_MUTANTS, NO_FENCE),
    )  # fmt: skip
    return Program(compile_text("handovers", source))


def run_threads(variant: Variant, ctas: int, **options: Any) -> Done:
    steps = ROUNDS * variant.stages + 1
    random = np.random.default_rng(options.get("seed", 0))
    words = random.integers(0, 2**31, (steps, LANES), np.uint32)
    out = np.zeros_like(words)
    args = [words, out, np.int32(steps)]
    report = launch(kernels(), f"threads_{variant.name}", args, ctas, **options)
    return Done(report, out, np.roll(words, -1, axis=1))


def run_tiles(variant: Variant, ctas: int, **options: Any) -> Done:
    steps = ROUNDS * variant.stages + 1
    tiles = small_integers(options.get("seed", 0), 1, steps, 1, ROWS, PANEL)
    out = np.zeros((steps, ROWS, PANEL), np.uint16)
    args = [TensorMap(tiles, (1, 1, 1, ROWS, PANEL)), out, np.int32(steps)]
    report = launch(kernels(), f"tiles_{variant.name}", args, ctas, 160, **options)
    return Done(report, out, tiles[0, :, 0].view(np.uint16))


THREADS_TO_THREADS: Final = Struct(run_threads, {1: THREADS}, {1: THREAD_MUTANTS})
COPIES_TO_THREADS: Final = Struct(run_tiles, {1: TILES}, {1: TILE_MUTANTS})
