"""Classes of bugs in kernels whose CTAs hand results to each other through global memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.emulator.classes.bug_class import BugClass, Data
from tests.emulator.classes.problems import Make, copied, numbers
from tests.emulator.mutations.mutant import Found

RACE: Final = (Found("race", "out[threadIdx.x] = parts[threadIdx.x]", ""),)


def handed_over(*shape: int) -> Make:
    """Words ``in``, room for them in ``parts``, a counter of zero, and 64 words ``out``."""

    def make(random: np.random.Generator) -> Data:
        words = {"parts": np.zeros(shape, np.uint32), "counter": np.zeros(1, np.uint32)}
        return {**numbers(*shape, out=(64,))(random), **words}

    return make


def arguments(data: Data) -> list[Any]:
    return [data["in"], data["parts"], data["counter"], data["out"]]


def summed(data: Data) -> NDArray[Any]:
    return data["in"].sum(axis=0, dtype=np.uint32)


CLASSES: Final = (
    BugClass(
        "flag_not_acquired", "flags", "GF", "a flag of another CTA is polled by relaxed loads",
        "Partial results that the SM has cached are used, from before they were written.",
        "A34", handed_over(64), arguments, copied, RACE, threads=64, grid=2,
    ),
    BugClass(
        "counter_not_released", "flags", "GF", "a counter goes up without a fence before it",
        "The CTA that has waited for it reads what was there before the partial result.",
        "A35", handed_over(64), arguments, copied, RACE, threads=64, grid=2,
    ),
    BugClass(
        "ticket_without_fence", "flags", "GF", "the last CTA has no fence after its ticket",
        "It may add what its SM has cached of the other CTAs' partial results.",
        "", handed_over(3, 64), arguments, summed, RACE, threads=64, grid=3,
    ),
    BugClass(
        "counter_for_its_cta", "flags", "GF", "a counter for other CTAs is released at CTA scope",
        "Nothing has the partial result written where the other CTAs read.",
        "", handed_over(64), arguments, copied, RACE, threads=64, grid=2,
    ),
)  # fmt: skip
