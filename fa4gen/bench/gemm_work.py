"""A matrix product on the GPU: sets of operands, of which no call finds its own in L2.

Scales of blocks are drawn, and laid out for a call, as ``fa4gen verify`` does it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_peers import GemmOperands
from fa4gen.bench.gemm_workload import ALPHA, BETAS
from fa4gen.bench.gpu_arrays import as_float32, as_torch, viewed
from fa4gen.bench.grouped_work import as_groups, for_each_group, row_arrays
from fa4gen.bench.work import Expected, Run, Work
from fa4gen.overriding import override
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.scales import draw_scales, of_each_line, scale_bits, scaled
from fa4gen.verify.inputs import make_rng

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales

WRONG = 1e-2
"""An output with a larger relative Frobenius distance from float64 or from a peer is wrong.

Rounding to bf16 alone is 0.0017."""
CHECKED_ROWS = 64
"""The number of first and of last rows that are compared with float64."""


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


class GemmWork(Work):
    """A matrix product: its first and last rows are checked, and those between by peers."""

    def __init__(
        self,
        plan: GemmPlan,
        workload: GemmWorkload,
        numbers: RandomNumbers,
        *,
        scales_along_m: bool = False,
    ) -> None:
        """Draw the inputs of the sets.

        ``scales_along_m``: scales of A that are no atoms lie column by column, not row by row.
        """
        sets = workload.count_sets(plan, require_device(plan.arch).l2_bytes)
        shape = (*workload.lead, workload.m, plan.output_columns(workload.n))
        super().__init__(workload, shape, most_error=WRONG, sets=sets)
        self._workload = workload
        self._inputs = [_draw(plan, workload, numbers, 3 * number) for number in self._sets]
        if scales_along_m:
            self._inputs = [_with_columns(one) for one in self._inputs]
        self._exact: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
        self.flop = workload.flop

    @override
    def prepare(self, kernel: Any, plan: GemmPlan, number: int, out: Any) -> Run:
        inputs, rows = self._inputs[number], {}
        if plan.groups:
            inputs, rows = self._in_groups(plan, inputs), row_arrays(plan, self._workload)
            out = as_groups(plan, out, of_rows=True)
        arrays = (viewed(bits, dtype) for bits, dtype in inputs.of(plan))
        beta = BETAS[plan.residual]
        scales: dict[str, Any] = {
            row.name: viewed(inputs.scales[row.name], row.dtype) for row in plan.scales
        }
        scales |= rows
        if plan.gathers_rows:
            scales["row_index"] = self._inputs[number].row_index
        launch: Run = kernel.prepare(*arrays, out=out, alpha=ALPHA, beta=beta, **scales)
        return launch

    def _in_groups(self, plan: GemmPlan, inputs: Inputs) -> Inputs:
        """Return the inputs as a kernel with groups takes them."""
        c = inputs.c
        if plan.c.exists:
            matrix = plan.c.is_matrix
            c = as_groups(plan, c, of_rows=True) if matrix else for_each_group(self._workload, c)
        scales = {**inputs.scales}
        for row in plan.scales:
            if not row.in_atoms:
                of_a = row.operand == "a"
                scales[row.name] = as_groups(plan, scales[row.name], of_rows=of_a)
            elif not self._workload.lead:
                scales[row.name] = scales[row.name][None]
        a = as_groups(plan, inputs.a, of_rows=True)
        return replace(inputs, a=a, b=as_groups(plan, inputs.b, of_rows=False), c=c, scales=scales)

    @override
    def expected(self, plan: GemmPlan, number: int) -> Expected:
        key = plan.residual, number
        if key not in self._exact:
            self._exact[key] = list(self._exact_rows(plan, self._inputs[number].in_order))
        return ((itemgetter(rows), exact) for rows, exact in self._exact[key])

    @override
    def operands(self, plan: GemmPlan, number: int, out: Any) -> GemmOperands:
        inputs = self._inputs[number].in_order
        a, b, c = (as_torch(bits, dtype) for bits, dtype in inputs.of(plan))
        theirs = as_torch(load_cupy().empty_like(out), plan.out_dtype)
        scales = {row.name: as_torch(inputs.scales[row.name], row.dtype) for row in plan.scales}
        return GemmOperands(a, b, c, theirs, ALPHA, BETAS[plan.residual], **scales)

    def _exact_rows(self, plan: GemmPlan, inputs: Inputs) -> Expected:
        """Yield the first and last rows of the output, by their slices, in float64."""
        from fa4gen.epilogues.activation import parse_activation
        from fa4gen.epilogues.gate import halves

        cupy = load_cupy()
        of_a, of_b = self._line_scales(plan, inputs)
        factor = as_float32(inputs.b, plan.b_dtype, contiguous=-2).astype(cupy.float64)
        if of_b is not None:
            factor = scaled(factor, of_b, -2, plan.scales[1].columns, cupy)
        for first in sorted({0, max(0, self._workload.m - CHECKED_ROWS)}):
            rows: Any = (..., slice(first, first + CHECKED_ROWS), slice(None))
            left = as_float32(inputs.a[rows], plan.dtype).astype(cupy.float64)
            if of_a is not None:
                left = scaled(left, of_a[rows], -1, plan.scales[0].columns, cupy)
            exact = ALPHA * (left @ factor)
            added: Any = 0.0
            if plan.c.exists:
                part = plan.c.rows_of(inputs.c, rows[1])
                added = BETAS[plan.residual] * as_float32(part, plan.out_dtype)
            if plan.gated and plan.activation is not None:
                bias, added = (0.0, added) if plan.c.is_matrix else (added, 0.0)
                gate, up = halves(plan.gate_layout, exact + bias)
                yield rows, parse_activation(plan.activation).evaluate_gated(gate, up, cupy) + added
                continue
            exact += added
            if plan.activation is not None:
                exact = parse_activation(plan.activation).evaluate(exact, cupy)
            yield rows, exact

    def _line_scales(self, plan: GemmPlan, inputs: Inputs) -> tuple[Any, Any]:
        """Return the scales of each row of A and of each column of B by blocks of k, or None."""
        if not plan.scales:
            return None, None
        lines = (self._workload.m, self._workload.n)
        of_a, of_b = (
            of_each_line(row, values, extent, load_cupy())
            for row, values, extent in zip(plan.scales, inputs.scale_values, lines, strict=True)
        )
        return of_a, of_b


def _draw(plan: GemmPlan, workload: GemmWorkload, numbers: RandomNumbers, shift: int) -> Inputs:
    """Draw inputs, each in the order of its elements in memory."""
    m, n, lead = workload.m, workload.n, workload.lead
    k = workload.k // plan.elements_per_byte
    shape = (*lead, m, k) if plan.a_major == "k" else (*lead, k, m)
    a = numbers.array(shape, plan.dtype, shift=shift)
    shape = (*lead, n, k) if plan.b_major == "k" else (*lead, k, n)
    b = numbers.array(shape, plan.b_dtype, shift=shift + 1)
    c = None
    if plan.c.exists:
        shape = (*(lead if plan.c.is_matrix else ()), *plan.c_extents(m, plan.output_columns(n)))
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
    if plan.groups:
        case = replace(case, counts=(workload.m,) * workload.batch)
    drawn = draw_scales(case, plan, make_rng(seed, case.name))
    if drawn and plan.groups == "offsets":
        drawn = (drawn[0].reshape(workload.batch, workload.m, -1), drawn[1])
    batched = [values if workload.lead else values[0] for values in drawn]
    return list(zip(plan.scales, batched, strict=True))


def _with_columns(inputs: Inputs) -> Inputs:
    """Return the inputs with scales of A that lie column by column."""
    of_a = load_cupy().ascontiguousarray(inputs.scales["scale_a"].swapaxes(-1, -2))
    return replace(inputs, scales={**inputs.scales, "scale_a": of_a.swapaxes(-1, -2)})
