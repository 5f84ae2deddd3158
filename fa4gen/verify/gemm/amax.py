"""The amax of an output: what it may be, and what verify passes for it.

A float32 result is known within an interval, and so is the largest magnitude of all; NaN does not
count. Where sums are exact, as of data that count, there is one number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.runtime.scale_arguments import AMAX
from fa4gen.verify.gemm.initial_amax import count_of, initial
from fa4gen.verify.gemm.reference import GemmProblem, compute
from fa4gen.verify.rounding import from_bits
from fa4gen.verify.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.gemm.inputs import GemmInputs
    from fa4gen.verify.gemm.memory import GemmMemory


@dataclass(frozen=True, eq=False)
class Amax:
    """The least and the largest that each element may be."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def check(self, memory: GemmMemory, after: Mapping[str, Image]) -> tuple[Failure, ...]:
        """Return the failure of the first element that is outside."""
        view = memory.views[AMAX]
        got = from_bits(view.bits(after[view.buffer]), "fp32").astype(np.float64)
        wrong = ~((self.low <= got) & (got <= self.high))
        return tuple(
            Failure(
                "numbers",
                f"{AMAX}[{at}]: expected {self.low[at]:.9g} to {self.high[at]:.9g}, "
                f"got {got[at]:.9g}",
            )
            for at in np.flatnonzero(wrong)[:1]
        )


def expected_amax(plan: GemmPlan, inputs: GemmInputs, xp: Any) -> Amax:
    """Return the bounds for the amax of a case."""
    result = compute(replace(GemmProblem.of(plan), out_dtype="fp32"), inputs, xp)
    before = initial(count_of(inputs)).astype(np.float64)
    low, high = before.copy(), before.copy()
    for part in inputs.parts:
        at = part.b if len(before) > 1 or plan.config.groups else 0
        matrix, first = part.place
        rows = (matrix, slice(first, first + part.rows))
        ends = [np.abs(_on_host(end[rows]).astype(np.float64)) for end in (result.low, result.high)]
        if not ends[0].size:
            continue
        crosses = _on_host(result.low[rows]) * _on_host(result.high[rows]) <= 0
        least = np.where(crosses, 0.0, np.fmin(*ends))
        low[at] = np.fmax(low[at], np.fmax.reduce(least, axis=None))
        high[at] = np.fmax(high[at], np.fmax.reduce(np.fmax(*ends), axis=None))
    return Amax(low, high)


def _on_host(values: Any) -> NDArray[Any]:
    return np.asarray(values.get() if hasattr(values, "get") else values)
