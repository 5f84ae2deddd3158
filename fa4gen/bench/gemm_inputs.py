"""The inputs of matrix products in bench: random numbers, and scales of blocks with them.

Scales are drawn, and laid out for a call, as ``fa4gen verify`` does it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fa4gen.runtime.device import load_cupy
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.scales import draw_scales, scale_bits
from fa4gen.verify.inputs import make_rng

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales


@dataclass(frozen=True)
class Inputs:
    """Bit patterns on the GPU: A (m, k), B (k, n), C or None, scales as a call takes them.

    All but a C with a single axis may have a batch in front, which is the same for all. Pairs of
    elements of four bits are one along k.
    """

    a: Any
    b: Any
    c: Any
    scales: Mapping[str, Any]
    """By the names of the arguments."""
    scale_values: tuple[Any, ...]
    """The numbers that ``scales`` stand for, in the plan's order: float32 on the GPU."""
    row_index: Any = None
    """Rows of A in the output's order, where they are gathered."""

    @property
    def in_order(self) -> Inputs:
        """The inputs of the same product without an index."""
        if self.row_index is None:
            return self
        scales = {**self.scales}
        if "scale_a" in scales:
            scales["scale_a"] = scales["scale_a"].take(self.row_index, axis=-2)
        values = tuple(
            one.take(self.row_index, axis=-2) if number == 0 else one
            for number, one in enumerate(self.scale_values)
        )
        a = self.a.take(self.row_index, axis=-2)
        return replace(self, a=a, scales=scales, scale_values=values, row_index=None)

    def of(self, plan: GemmPlan) -> tuple[tuple[Any, str], ...]:
        """Return A, B and C for ``plan``'s kernel, with their types: it may have no residual."""
        c = self.c if plan.c.exists else None
        return (self.a, plan.dtype), (self.b, plan.b_dtype), (c, plan.out_dtype)


def draw_inputs(
    plan: GemmPlan, workload: GemmWorkload, numbers: RandomNumbers, shift: int
) -> Inputs:
    """Draw inputs, each in the order of its elements in memory.

    Uneven groups with offsets have one A, masked ones a matrix each, of the most rows.
    """
    m, lead, n = workload.m, workload.lead, workload.n
    of_rows = lead
    if workload.uneven is not None:
        of_rows, m = (
            (lead, workload.uneven.most) if plan.groups == "masked" else ((), workload.rows)
        )
    k = workload.k // plan.elements_per_byte
    shape = (*of_rows, m, k) if plan.a_major == "k" else (*of_rows, k, m)
    a = numbers.array(shape, plan.dtype, shift=shift)
    shape = (*lead, n, k) if plan.b_major == "k" else (*lead, k, n)
    b = numbers.array(shape, plan.b_dtype, shift=shift + 1)
    c = None
    if plan.c.exists:
        of_c = of_rows if plan.c.is_matrix else ()
        shape = (*of_c, *plan.c_extents(m, plan.output_columns(n)))
        scale = workload.residual_scale
        c = numbers.array(shape, plan.out_dtype, shift=shift + 2, scale=scale)
    cupy = load_cupy()
    drawn = _drawn_scales(plan, workload, numbers.seed + shift)
    return Inputs(
        a if plan.a_major == "k" else a.swapaxes(-1, -2),
        b.swapaxes(-1, -2) if plan.b_major == "k" else b,
        c,
        {row.name: cupy.asarray(scale_bits(row, values, None)) for row, values in drawn},
        tuple(cupy.asarray(values) for _, values in drawn),
        cupy.asarray(_permutation(m, numbers.seed + shift)) if plan.gathers_rows else None,
    )


def _permutation(rows: int, seed: int) -> Any:
    """Draw an index that names each row once."""
    return make_rng(seed, "row index").permutation(rows).astype("int32")


def _drawn_scales(
    plan: GemmPlan, workload: GemmWorkload, seed: int
) -> list[tuple[OperandScales, Any]]:
    """Draw the plan's scales: float32 in NumPy's memory, with a batch where there are several."""
    case = GemmCase("bench", workload.m, workload.n, workload.k, workload.batch)
    uneven = workload.uneven
    if plan.groups:
        case = replace(case, counts=tuple(workload.group_rows))
    drawn = draw_scales(case, plan, make_rng(seed, case.name))
    if drawn and plan.groups == "offsets":
        of_a = drawn[0][0] if uneven else drawn[0].reshape(workload.batch, workload.m, -1)
        drawn = (of_a, drawn[1])
    batched = [values if workload.lead else values[0] for values in drawn]
    return list(zip(plan.scales, batched, strict=True))
