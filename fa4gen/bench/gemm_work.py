"""A matrix product on the GPU: sets of A, B and C, of which no call finds its own in L2."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gemm_peers import GemmOperands
from fa4gen.bench.gemm_workload import ALPHA, BETAS
from fa4gen.bench.gpu_arrays import as_float32, as_torch, viewed
from fa4gen.bench.work import Expected, Run, Work
from fa4gen.overriding import override
from fa4gen.runtime.device import load_cupy, require_device

if TYPE_CHECKING:
    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.designs.common.gemm_model import GemmPlan

WRONG = 1e-2
"""An output with a larger relative Frobenius distance from float64 or from a peer is wrong.

Rounding to bf16 alone is 0.0017."""
CHECKED_ROWS = 64
"""The number of first and of last rows that are compared with float64."""


@dataclass(frozen=True)
class Inputs:
    """Bit patterns on the GPU: A (m, k), B (k, n), C or None.

    All but a C with a single axis may have a batch in front, which is the same for all.
    """

    a: Any
    b: Any
    c: Any

    def of(self, plan: GemmPlan) -> tuple[tuple[Any, str], ...]:
        """Return those that ``plan``'s kernel takes, with their types: it may have no residual."""
        c = self.c if plan.c.exists else None
        return (self.a, plan.dtype), (self.b, plan.dtype), (c, plan.out_dtype)


class GemmWork(Work):
    """A matrix product: its first and last rows are checked, and those between by peers."""

    def __init__(self, plan: GemmPlan, workload: GemmWorkload, numbers: RandomNumbers) -> None:
        """Draw the inputs of the sets."""
        sets = workload.count_sets(plan, require_device(plan.arch).l2_bytes)
        shape = (*workload.lead, workload.m, workload.n)
        super().__init__(workload, shape, most_error=WRONG, sets=sets)
        self._workload = workload
        self._inputs = [_draw(plan, workload, numbers, 3 * number) for number in self._sets]
        self._exact: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
        self.flop = workload.flop

    @override
    def prepare(self, kernel: Any, plan: GemmPlan, number: int, out: Any) -> Run:
        arrays = (viewed(bits, dtype) for bits, dtype in self._inputs[number].of(plan))
        beta = BETAS[plan.residual]
        launch: Run = kernel.prepare(*arrays, out=out, alpha=ALPHA, beta=beta)
        return launch

    @override
    def expected(self, plan: GemmPlan, number: int) -> Expected:
        key = plan.residual, number
        if key not in self._exact:
            self._exact[key] = list(self._exact_rows(plan, self._inputs[number]))
        return ((itemgetter(rows), exact) for rows, exact in self._exact[key])

    @override
    def operands(self, plan: GemmPlan, number: int, out: Any) -> GemmOperands:
        a, b, c = (as_torch(bits, dtype) for bits, dtype in self._inputs[number].of(plan))
        theirs = as_torch(load_cupy().empty_like(out), plan.out_dtype)
        return GemmOperands(a, b, c, theirs, ALPHA, BETAS[plan.residual])

    def _exact_rows(self, plan: GemmPlan, inputs: Inputs) -> Expected:
        """Yield the first and last rows of the output, by their slices, in float64."""
        from fa4gen.epilogues.activation import parse_activation

        cupy = load_cupy()
        factor = as_float32(inputs.b, plan.dtype).astype(cupy.float64)
        for first in sorted({0, max(0, self._workload.m - CHECKED_ROWS)}):
            rows: Any = (..., slice(first, first + CHECKED_ROWS), slice(None))
            left = as_float32(inputs.a[rows], plan.dtype).astype(cupy.float64)
            exact = ALPHA * (left @ factor)
            if plan.c.exists:
                part = plan.c.rows_of(inputs.c, rows[1])
                exact += BETAS[plan.residual] * as_float32(part, plan.out_dtype)
            if plan.activation is not None:
                exact = parse_activation(plan.activation).evaluate(exact, cupy)
            yield rows, exact


def _draw(plan: GemmPlan, workload: GemmWorkload, numbers: RandomNumbers, shift: int) -> Inputs:
    """Draw inputs, each in the order of its elements in memory."""
    m, n, k, lead = workload.m, workload.n, workload.k, workload.lead
    shape = (*lead, m, k) if plan.a_major == "k" else (*lead, k, m)
    a = numbers.array(shape, plan.dtype, shift=shift)
    shape = (*lead, n, k) if plan.b_major == "k" else (*lead, k, n)
    b = numbers.array(shape, plan.dtype, shift=shift + 1)
    c = None
    if plan.c.exists:
        shape = (*(lead if plan.c.is_matrix else ()), *plan.c.extents(m, n))
        scale = workload.residual_scale
        c = numbers.array(shape, plan.out_dtype, shift=shift + 2, scale=scale)
    return Inputs(
        a if plan.a_major == "k" else a.swapaxes(-1, -2),
        b.swapaxes(-1, -2) if plan.b_major == "k" else b,
        c,
    )
