"""TMAProducerPipeline and TMAConsumerPipeline: TMA fills a ring, MMAs read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES
from fa4gen.errors import CompileError
from tests.pipeline.harness import (
    LANES,
    ROWS,
    UNTOUCHED,
    Operands,
    Run,
    Variant,
    assert_reported,
    compile_text,
    launch,
    program,
    render,
    ring_states,
)

SEEDS = 2
MAX_STEPS = 16
pytestmark = pytest.mark.compile

KEYS = tuple(Variant("keys", stages, parts) for parts in (1, 2, 4) for stages in range(1, 6))
VALUES = tuple(Variant("values", stages) for stages in range(1, 6))
FUSED = tuple(Variant("fused", stages) for stages in range(2, 6))
PAIRS = (Variant("keys", 3, 2), Variant("values", 2), Variant("fused", 3))

# What each mistake may be reported as, by the interleaving.
MISTAKES: dict[Variant, set[str]] = {
    Variant("keys", 2, 2, "no_wait"): {"race", "uninitialised"},
    Variant("values", 1, 1, "no_wait"): {"race", "uninitialised"},
    Variant("keys", 2, 2, "no_acquire"): {"race"},
    Variant("keys", 2, 2, "early_release"): {"race"},
    Variant("values", 1, 1, "early_release"): {"race"},
    Variant("keys", 2, 1, "double_release"): {"race"},
    Variant("keys", 2, 2, "no_flip"): {"race"},
    Variant("values", 1, 1, "no_flip"): {"race"},
    Variant("keys", 2, 2, "first_phase"): {"deadlock"},
}
SINGLE = (*KEYS, *VALUES, *FUSED, *MISTAKES)


def steps_of(variant: Variant) -> int:
    """Three rounds and a bit; even, since keys and values take turns in a fused ring."""
    return min(MAX_STEPS, 3 * variant.stages + 2) // 2 * 2


def run(
    variant: Variant, *, ctas: int = 1, skipped: int = 0, operands: Operands | None = None,
    **options: Any,
) -> Run:  # fmt: skip
    steps = steps_of(variant)
    operands = operands or Operands.make(0, ctas, variant.parts, steps)
    out = np.full((ctas, steps, LANES, ROWS), np.nan, np.float32)
    log = np.full((ctas, 2, steps, variant.parts, 5), UNTOUCHED, np.int32)
    args = [*operands.maps(), out, log, np.int32(steps), np.uint32(skipped)]
    kernels = program("rings.cu.j2", "rings", SINGLE if ctas == 1 else PAIRS, ctas)
    return Run(launch(kernels, variant.name, args, ctas, **options), out, log)


def expected_product(variant: Variant, operands: Operands, step: int) -> Any:
    if variant.kind == "keys":
        return operands.key_product(step)
    if variant.kind == "values":
        return operands.value_product(step)
    return (operands.value_product if step % 2 else operands.key_product)(step // 2)


def expected_log(variant: Variant, role: int, ctas: int) -> Any:
    """Index, phase, offsets of both barriers, offset of the slot (or part, for the producer)."""
    steps, parts, stages = steps_of(variant), variant.parts, variant.stages
    part_bytes = (1024 if variant.kind == "keys" else 2048) // ctas
    log = np.empty((steps, parts, 5), np.int64)
    for step, (index, phase) in enumerate(ring_states(stages, steps, phase=1 - role)):
        for part in range(parts):
            log[step, part] = (
                index,
                phase,
                8 * (parts * index + part),
                8 * (parts * stages + parts * index + part),
                part_bytes * (parts * index + (part if role == 0 else 0)),
            )
    return log


def check(variant: Variant, ctas: int, seed: int, schedule: str) -> None:
    operands = Operands.make(seed, ctas, variant.parts, steps_of(variant))
    done = run(variant, ctas=ctas, operands=operands, seed=seed, schedule=schedule)
    assert done.report.verdict.value == "clean", str(done.report)
    for step in range(steps_of(variant)):
        np.testing.assert_array_equal(done.out[:, step], expected_product(variant, operands, step))
    for rank in range(ctas):
        np.testing.assert_array_equal(done.log[rank, 0], expected_log(variant, 0, ctas))
    np.testing.assert_array_equal(done.log[0, 1], expected_log(variant, 1, ctas))
    assert (done.log[1:, 1] == UNTOUCHED).all()  # the leader alone multiplies


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("variant", [*KEYS, *VALUES, *FUSED], ids=str)
def test_blocks_arrive_in_order(variant: Variant, schedule: str) -> None:
    for seed in range(SEEDS):
        check(variant, 1, seed, schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("variant", PAIRS, ids=str)
def test_a_pair_shares_the_leaders_barriers(variant: Variant, schedule: str) -> None:
    for seed in range(SEEDS):
        check(variant, 2, seed, schedule)
