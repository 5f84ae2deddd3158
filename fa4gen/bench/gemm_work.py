"""A matrix product on the GPU: sets of operands, of which no call finds its own in L2."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_inputs import Inputs, draw_inputs
from fa4gen.bench.gemm_peers import GemmOperands
from fa4gen.bench.gemm_workload import ALPHA, BETAS
from fa4gen.bench.gpu_arrays import as_float32, as_torch, viewed
from fa4gen.bench.grouped_work import (
    as_groups,
    bytes_to_read,
    for_each_group,
    joined,
    row_arrays,
)
from fa4gen.bench.work import Expected, Run, Work
from fa4gen.overriding import override
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.verify.gemm.scales import of_each_line, scaled

if TYPE_CHECKING:
    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.designs.common.gemm_model import GemmPlan

WRONG = 1e-2
"""An output with a larger relative Frobenius distance from float64 or from a peer is wrong.

Rounding to bf16 alone is 0.0017."""
CHECKED_ROWS = 64
"""The number of first and of last rows that are compared with float64."""


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
        self._inputs = [draw_inputs(plan, workload, numbers, 3 * number) for number in self._sets]
        if scales_along_m:
            self._inputs = [_with_columns(one) for one in self._inputs]
        self._exact: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
        self.flop = workload.flop
        self.read_bytes = bytes_to_read(plan, workload)

    @override
    def prepare(self, kernel: Any, plan: GemmPlan, number: int, out: Any) -> Run:
        tensors = self._tensors(plan, number, out)
        launch: Run = kernel.prepare(**tensors, alpha=ALPHA, beta=BETAS[plan.residual])
        return launch

    def _tensors(self, plan: GemmPlan, number: int, out: Any) -> dict[str, Any]:
        """Return the arrays of a call of our kernel, by the names of a launcher's arguments."""
        inputs, rows = self._inputs[number], {}
        if plan.groups:
            inputs, rows = self._in_groups(plan, inputs), row_arrays(plan, self._workload)
            out = as_groups(plan, out, of_rows=True)
        if plan.gathers_rows:
            rows["row_index"] = inputs.row_index
        a, b, c = (viewed(bits, dtype) for bits, dtype in inputs.of(plan))
        scales = {row.name: viewed(inputs.scales[row.name], row.dtype) for row in plan.scales}
        return {"a": a, "b": b, "c": c, "out": out, **scales, **rows}

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
        bits = load_cupy().empty_like(out)
        theirs = as_torch(bits, plan.out_dtype)
        own = self._tensors(plan, number, viewed(bits, plan.out_dtype))
        scales = {row.name: as_torch(inputs.scales[row.name], row.dtype) for row in plan.scales}
        return GemmOperands(a, b, c, theirs, ALPHA, BETAS[plan.residual], **scales, own=own)

    @override
    def read_memory(self) -> Any:
        return joined([self._inputs[0].a, self._inputs[0].b])

    def _exact_rows(self, plan: GemmPlan, inputs: Inputs) -> Expected:
        """Yield the first and last rows of the output, by their slices, in float64."""
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
            part = None
            if plan.c.exists:
                part = as_float32(plan.c.rows_of(inputs.c, rows[1]), plan.out_dtype)
            yield rows, exact_output(plan, left @ factor, part)

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


def _with_columns(inputs: Inputs) -> Inputs:
    """Return the inputs with scales of A that lie column by column."""
    of_a = load_cupy().ascontiguousarray(inputs.scales["scale_a"].swapaxes(-1, -2))
    return replace(inputs, scales={**inputs.scales, "scale_a": of_a.swapaxes(-1, -2)})


def exact_output(plan: GemmPlan, product: Any, c: Any) -> Any:
    """Return the output in float64 for A . B and the part of C that is added, None without one."""
    from fa4gen.epilogues.activation import parse_activation
    from fa4gen.epilogues.gate import halves

    cupy, exact = load_cupy(), ALPHA * product
    added: Any = 0.0 if c is None else BETAS[plan.residual] * c
    if plan.gated and plan.activation is not None:
        bias, added = (0.0, added) if plan.c.is_matrix else (added, 0.0)
        gate, up = halves(plan.gate_layout, exact + bias)
        return parse_activation(plan.activation).evaluate_gated(gate, up, cupy) + added
    exact += added
    if plan.activation is None:
        return exact
    return parse_activation(plan.activation).evaluate(exact, cupy)
