"""OutputRingBuffer: MMAs fill stages of tensor memory, the epilogue of one CTA or a pair reads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.rings.harness import ROUNDS, ROWS, Done, Operands, Struct, Variant, launch, program

LANES, BLOCKS, THREADS = 128, 16, 160

# kind, stages, stage_stride_cols
CLEAN: Final = (
    Variant("acquired", 1, 32), Variant("scoped", 1, 128), Variant("scoped", 2, 32),
    Variant("acquired", 2, 64), Variant("acquired", 3, 128), Variant("scoped", 3, 64),
    Variant("acquired", 4, 32), Variant("scoped", 4, 128),
)  # fmt: skip
MUTANTS: Final[dict[int, dict[Variant, set[str]]]] = {
    1: {
        Variant("acquired", 2, 32, "no_wait"): {"race", "uninitialised"},
        Variant("acquired", 2, 32, "no_acquire"): {"race", "over-arrival", "deadlock"},
        Variant("acquired", 2, 32, "early_release"): {"missing-tcgen05-wait"},
        Variant("acquired", 1, 32, "early_commit"): {"race"},
        Variant("scoped", 2, 32, "first_phase"): {"deadlock"},
        Variant("scoped", 1, 32, "no_flip"): {"race", "deadlock"},
        Variant("scoped", 2, 32, "stage_early"): {"race", "uninitialised"},
    },
    2: {
        Variant("acquired", 2, 32, "early_release"): {"missing-tcgen05-wait"},
        Variant("acquired", 2, 32, "one_release"): {"deadlock"},
        Variant("scoped", 2, 32, "half_count"): {"race", "phase-lap", "deadlock"},
        Variant("scoped", 2, 32, "one_told"): {"deadlock"},
        Variant("scoped", 2, 32, "stage_early"): {"race", "uninitialised"},
    },
}
NO_FENCE: Final = Variant("scoped", 1, 32, "no_fence")


def run(variant: Variant, ctas: int, **options: Any) -> Done:
    """``parts`` are shown of a stage: its first 32 columns and, where it has more, the last."""
    steps, parts = ROUNDS * variant.stages + 1, 2 if variant.parts > ROWS else 1
    operands = Operands.make(options.get("seed", 0), ctas, 1, BLOCKS)
    out = np.full((ctas, steps, parts, LANES, ROWS), np.nan, np.float32)
    args = [*operands.maps()[:2], out, np.int32(steps)]
    kernels = program("output_ring.cu.j2", "variants", (*CLEAN, NO_FENCE, *MUTANTS[ctas]), ctas)
    report = launch(kernels, variant.name, args, ctas, THREADS, **options)
    left = operands.left[:, 0, 0].astype(np.float32)
    keys = operands.keys[0, 0, 0].astype(np.float32).reshape(BLOCKS, ROWS, -1)
    blocks = (2 * np.arange(steps)[:, None] + np.arange(parts)) % BLOCKS
    return Done(report, out, np.einsum("glc,sprc->gsplr", left, keys[blocks]))


OUTPUT: Final = Struct(run, {1: CLEAN, 2: CLEAN}, MUTANTS)
