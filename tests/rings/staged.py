"""StagedPipeline: threads fill the parts of a slot by stores, MMAs read and release them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.rings.harness import (
    ROUNDS,
    Done,
    Operands,
    Struct,
    Variant,
    empty_products,
    launch,
    program,
)

RINGS: Final = tuple(
    Variant("staged", stages, parts) for parts in (1, 2, 4) for stages in range(1, 6)
)
# A producer that is a round ahead completes phases which the consumer then waits for in vain.
MUTANTS: Final[dict[Variant, set[str]]] = {
    Variant("staged", 2, 2, "no_wait"): {"race", "uninitialised"},
    Variant("staged", 2, 2, "no_acquire"): {"race", "deadlock"},
    Variant("staged", 3, 2, "one_release"): {"deadlock"},
    Variant("staged", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("staged", 3, 4, "no_flip"): {"race", "deadlock"},
}


def run(variant: Variant, ctas: int, **options: Any) -> Done:
    steps = ROUNDS * variant.stages + 1
    operands = Operands.make(options.get("seed", 0), ctas, variant.parts, steps)
    out = empty_products(ctas, steps)
    args = [operands.maps()[0], operands.stored_keys(), out, np.int32(steps)]
    kernels = program("staged.cu.j2", "rings", (*RINGS, *MUTANTS))
    report = launch(kernels, variant.name, args, **options)
    return Done(report, out, operands.key_products(steps))


STAGED: Final = Struct(run, {1: RINGS}, {1: MUTANTS})
