"""TMAProducerPipeline and TMAConsumerPipeline: TMA fills a ring, MMAs read it."""

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

MAX_STEPS: Final = 16
KEYS: Final = tuple(Variant("keys", stages, parts) for parts in (1, 2, 4) for stages in range(1, 6))
VALUES: Final = tuple(Variant("values", stages) for stages in range(1, 6))
FUSED: Final = tuple(Variant("fused", stages) for stages in range(2, 6))
CLEAN: Final = {
    1: (*KEYS, *VALUES, *FUSED),
    2: (Variant("keys", 3, 2), Variant("values", 2), Variant("fused", 3)),
}
MUTANTS: Final[dict[int, dict[Variant, set[str]]]] = {
    1: {
        Variant("keys", 2, 2, "no_wait"): {"race"},
        Variant("values", 1, 1, "no_wait"): {"race"},
        Variant("keys", 2, 2, "no_acquire"): {"race", "over-arrival"},
        Variant("keys", 2, 2, "early_release"): {"race"},
        Variant("values", 1, 1, "early_release"): {"race"},
        Variant("keys", 2, 1, "double_release"): {"phase-lap"},
        Variant("keys", 2, 2, "no_flip"): {"race", "deadlock"},
        Variant("values", 1, 1, "no_flip"): {"race", "deadlock"},
        Variant("keys", 2, 2, "first_phase"): {"deadlock"},
        Variant("fused", 3, 1, "first_slot"): {"race", "deadlock"},
    },
    2: {
        Variant("keys", 2, 2, "early_release"): {"race"},
        Variant("values", 1, 1, "no_flip"): {"race", "deadlock"},
    },
}


def run(variant: Variant, ctas: int, skipped: int = 0, **options: Any) -> Done:
    """Three rounds and a bit; even, since keys and values take turns in a fused ring.

    ``skipped`` has a bit for each step whose block is released without a product.
    """
    steps = min(MAX_STEPS, ROUNDS * variant.stages + 2) // 2 * 2
    operands = Operands.make(options.get("seed", 0), ctas, variant.parts, steps)
    out = empty_products(ctas, steps)
    args = [*operands.maps(), out, np.int32(steps), np.uint32(skipped)]
    kernels = program("rings.cu.j2", "rings", (*CLEAN[ctas], *MUTANTS[ctas]), ctas)
    report = launch(kernels, variant.name, args, ctas, **options)
    return Done(report, out, expected(variant, operands, steps))


def expected(variant: Variant, operands: Operands, steps: int) -> Any:
    """The products of keys, of values, or of both in turn."""
    if variant.kind == "keys":
        return operands.key_products(steps)
    if variant.kind == "values":
        return operands.value_products(steps)
    both = [operands.key_products(steps // 2), operands.value_products(steps // 2)]
    return np.stack(both, 2).reshape(len(operands.left), steps, *both[0].shape[2:])


TMA: Final = Struct(run, CLEAN, MUTANTS)
