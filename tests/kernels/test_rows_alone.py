"""A query row's result does not depend on the other rows of its warp, not even in its last bit.

Rescaling is decided per row. A kernel that lets a warp decide gives a row other bits when a
neighbour's maximum grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.memory import out_bits, place
from fa4gen.verify.rounding import round_to
from tests.kernels.source_mutation import Change, Kernel, kernel_of, program_of, ptx_of

if TYPE_CHECKING:
    from fa4gen.emulator import Program, Report

ROW = 5
NEIGHBOURS = slice(ROW + 1, 32)
GROWS = r"if \(\(new_max - max\) \* scale_log2 > kRescaleThreshold\) \{"
WARP_DECIDES = Change(
    GROWS,
    "if (__any_sync(0xffffffffu, (new_max - max) * scale_log2 > kRescaleThreshold)) {",
)
CONFIGS: dict[str, dict[str, Any]] = {
    "two query tiles": {"depth": 64},
    "one query tile": {"depth": 256},
    "depth 512": {"depth": 512, "cta_group": 2},
}


@dataclass(frozen=True)
class OneSchedule:
    """A program that completes every product at once: sums then have one order."""

    program: Program

    def launch(self, *args: Any, **options: Any) -> Report:
        return self.program.launch(*args, **{**options, "seed": 1, "schedule": "eager"})


def rows_beside(kernel: Kernel, factor: float) -> np.ndarray:
    """Bits of the output with the queries of ROW's neighbours times ``factor``."""
    plan = kernel.plan
    case = Case("rows", 1, 1, 1, 40, 5 * plan.BN, data="falling_slowly")
    inputs = make_inputs(case, plan.depth, plan.dtype, make_rng(1, case.name))
    inputs.query[:, NEIGHBOURS] = round_to(inputs.query[:, NEIGHBOURS] * factor, plan.dtype)
    memory = place(case, inputs, plan.dtype, lse=plan.lse, out_dtype=plan.out_dtype)
    program: Any = OneSchedule(program_of(ptx_of(kernel)))
    return out_bits(memory, EmulatedKernel(plan, program).run(memory))[0]


@pytest.mark.compile
@pytest.mark.parametrize("keys", CONFIGS.values(), ids=CONFIGS)
def test_neighbours_change_no_bit(keys: dict[str, Any]) -> None:
    kernel = kernel_of(keys)
    # maxima of the neighbours stay, or grow from block to block
    calm, restless = rows_beside(kernel, 2.0**-6), rows_beside(kernel, 8.0)
    assert not np.array_equal(calm[NEIGHBOURS], restless[NEIGHBOURS])
    np.testing.assert_array_equal(calm[ROW], restless[ROW])


@pytest.mark.compile
def test_a_warp_that_decides_is_seen() -> None:
    kernel = kernel_of({"depth": 64})
    kernel = kernel.with_code(WARP_DECIDES.apply(kernel.code))
    calm, restless = rows_beside(kernel, 2.0**-6), rows_beside(kernel, 8.0)
    assert not np.array_equal(calm[ROW], restless[ROW])
