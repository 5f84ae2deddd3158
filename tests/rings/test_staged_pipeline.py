"""StagedPipeline: threads fill the parts of a slot by stores, MMAs read and release them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.rings.harness import (
    LANES,
    ROWS,
    UNTOUCHED,
    Operands,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    launch,
    program,
    ring_states,
)

if TYPE_CHECKING:
    from tests.rings.conftest import Policies

pytestmark = pytest.mark.compile

RINGS = tuple(Variant("staged", stages, parts) for parts in (1, 2, 4) for stages in range(1, 6))
# A mutant is reported as one of these, whatever the interleaving. A producer that is a round
# ahead completes phases which the consumer then waits for in vain.
MUTANTS: dict[Variant, set[str]] = {
    Variant("staged", 2, 2, "no_wait"): {"race", "uninitialised"},
    Variant("staged", 2, 2, "no_acquire"): {"race", "deadlock"},
    Variant("staged", 3, 2, "one_release"): {"deadlock"},
    Variant("staged", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("staged", 3, 4, "no_flip"): {"race", "deadlock"},
}


def steps_of(variant: Variant) -> int:
    return 3 * variant.stages + 1


def run(variant: Variant, operands: Operands | None = None, **options: Any) -> Run:
    steps = steps_of(variant)
    operands = operands or Operands.make(0, 1, variant.parts, steps)
    out = np.full((1, steps, LANES, ROWS), np.nan, np.float32)
    log = np.full((1, 2, steps, variant.parts, 5), UNTOUCHED, np.int32)
    args = [operands.maps()[0], operands.stored_keys(), out, log, np.int32(steps)]
    kernels = program("staged.cu.j2", "rings", (*RINGS, *MUTANTS))
    return Run(launch(kernels, variant.name, args, **options), out, log)


def expected_log(variant: Variant, role: int) -> Any:
    """Index, phase, offsets of both barriers."""
    stages, parts = variant.stages, variant.parts
    return [
        [
            [
                index,
                phase,
                8 * (parts * index + part),
                8 * (parts * (stages + index) + part),
                0,
            ]
            for part in range(parts)
        ]
        for index, phase in ring_states(stages, steps_of(variant), phase=1 - role)
    ]


@pytest.mark.parametrize("variant", RINGS, ids=str)
def test_blocks_arrive_in_order(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        operands = Operands.make(seed, 1, variant.parts, steps_of(variant))
        done = run(variant, operands, seed=seed, schedule=schedule)
        assert_clean(done.report)
        for step in range(steps_of(variant)):
            np.testing.assert_array_equal(done.out[:, step], operands.key_product(step))
        for role in range(2):
            np.testing.assert_array_equal(done.log[0, role], expected_log(variant, role))


@pytest.mark.parametrize("variant", MUTANTS, ids=str)
def test_mutants_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = run(variant, seed=seed, schedule=schedule).report
        assert_reported(report, MUTANTS[variant])
