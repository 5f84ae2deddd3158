"""A matrix product in float64, the same with a kernel's roundings, and how far they may differ.

``xp`` is the array module, numpy or cupy. Everything is computed for some rows at a time, so
that the many arrays of bounds stay small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.epilogues.activation import parse_activation
from fa4gen.epilogues.gate import halves
from fa4gen.verify.gemm.activation import ActivationError
from fa4gen.verify.gemm.gated import GatedError
from fa4gen.verify.gemm.scales import of_each_line, scaled, sum_scaled
from fa4gen.verify.gemm.tolerance import Accumulation, GemmResult, sum_products
from fa4gen.verify.rounding import round_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.epilogues import Residual
    from fa4gen.epilogues.activation import Activation
    from fa4gen.epilogues.gate import GateLayout
    from fa4gen.verify.gemm.groups import Part
    from fa4gen.verify.gemm.inputs import GemmInputs

CPU_CHUNK = 1 << 18
"""Elements of the output that are computed at a time on a CPU: they fit its caches."""
GPU_CHUNK = 1 << 24
FLOAT32_ROUNDOFF = 2.0**-24


@dataclass(frozen=True)
class GemmProblem:
    """The computation and the roundings of a kernel, except for its tensors' values.

    ``out_dtype`` of an output that is quantised is fp32: ``quantised`` has what follows.
    """

    out_dtype: str
    residual: Residual
    activation: Activation | None
    accumulation: Accumulation
    scales: tuple[OperandScales, ...] = ()
    gate: GateLayout | None = None
    """The order of B's columns with a gated activation."""

    @classmethod
    def of(cls, plan: GemmPlan) -> GemmProblem:
        """Return the problem of the kernel of ``plan``."""
        expression = None if plan.activation is None else parse_activation(plan.activation)
        out_dtype = plan.out_dtype if plan.output_scales is None else "fp32"
        gate = plan.gate_layout if plan.gated else None
        return cls(out_dtype, plan.c, expression, Accumulation.of(plan), plan.scales, gate)

    @property
    def c_is_added_last(self) -> bool:
        """Whether C is added to what the activation gives, and not before it."""
        return self.gate is not None and self.residual.is_matrix


def compute(problem: GemmProblem, inputs: GemmInputs, xp: Any = np) -> GemmResult:
    """Compute the exact result, the kernel's, and the interval between."""
    inputs = inputs.in_order
    shape = inputs.result_shape
    out = (*shape[:2], shape[2] // (1 if problem.gate is None else 2))
    exact, slack = (xp.zeros(out, xp.float64) for _ in range(2))
    low, high, own = (xp.zeros(out, xp.float32) for _ in range(3))
    if exact.size:
        apply = _activation(problem)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for at, operands, c in _blocks(problem, inputs, shape, xp):
                before, after = (None, c) if problem.c_is_added_last else (c, None)
                x, error = _before_activation(problem, inputs, operands, before, xp)
                ends = apply(x, error, xp)
                if after is not None:
                    ends = _with_c(inputs.beta, after, ends, xp)
                if inputs.scatter is not None:
                    ends = _weighted(*inputs.scatter.factors(at[1], xp), ends, xp)
                exact[at], lowest, highest = ends
                slack[at] = xp.maximum(highest - exact[at], exact[at] - lowest)
                low[at] = _round(lowest.astype(xp.float32), problem.out_dtype, xp)
                high[at] = _round(highest.astype(xp.float32), problem.out_dtype, xp)
                own[at] = _rounded_block(problem, inputs, operands, c, at, xp)
    return GemmResult(exact, low, high, slack, own)


def _activation(problem: GemmProblem) -> Callable[[Any, Any, Any], tuple[Any, Any, Any]]:
    """Return the function from sums and their errors to the result and the ends of the kernel's."""
    if problem.gate is None:
        return ActivationError(problem.activation).apply
    assert problem.activation is not None
    return GatedError(problem.activation, problem.gate).apply


def _with_c(beta: float, c: Any, ends: tuple[Any, Any, Any], xp: Any) -> tuple[Any, Any, Any]:
    """Return the result of an activation and its interval with beta * C added."""
    exact, lowest, highest = ends
    added = beta * c.astype(xp.float64)
    error = xp.zeros_like(added)
    if not _is_power_of_two(beta):
        error = _rounding(added, error, xp)
    found = exact + added
    width = xp.nan_to_num(xp.maximum(highest - exact, exact - lowest))
    error += xp.where((exact == 0) | (added == 0), 0.0, _rounding(found, error + width, xp))
    return found, lowest + added - error, highest + added + error


def _weighted(
    weights: Any, is_written: Any, ends: tuple[Any, Any, Any], xp: Any
) -> tuple[Any, Any, Any]:
    """Return a result and its interval times the weights of its rows; zeros if not written."""
    exact, one, other = (xp.where(is_written, weights * end, 0.0) for end in ends)
    low, high = xp.minimum(one, other), xp.maximum(one, other)
    exponents = xp.abs(xp.frexp(weights)[0])
    error = FLOAT32_ROUNDOFF * xp.maximum(xp.abs(low), xp.abs(high))
    error = xp.where(exponents == 0.5, 0.0, error)
    return exact, low - error, high + error


def _before_activation(
    problem: GemmProblem, inputs: GemmInputs, operands: _Operands, c: Any, xp: Any
) -> tuple[Any, Any]:
    """Return alpha * A . B + beta * C in float64, and the largest distance of float32 from it.

    Each of the two products, and their sum, is rounded to float32 once where it is not exact: a
    factor that is a power of two, or a zero as the other, makes no error; nor does a result that
    float32 holds.
    """
    total, error = operands.sums(problem, xp)
    scaled = inputs.alpha * total
    error = abs(inputs.alpha) * error
    if not _is_power_of_two(inputs.alpha):
        error += _rounding(scaled, error, xp)
    if c is None:
        return scaled, error
    added = inputs.beta * c.astype(xp.float64)
    if not _is_power_of_two(inputs.beta):
        error += _rounding(added, xp.zeros_like(added), xp)
    x = scaled + added
    error += xp.where((scaled == 0) | (added == 0), 0.0, _rounding(x, error, xp))
    return x, error


def _rounding(x: Any, error: Any, xp: Any) -> Any:
    """Return the error of rounding ``x`` to float32, which may be off by ``error`` already."""
    exact = (error == 0) & (x.astype(xp.float32) == x)
    return xp.where(exact, 0.0, FLOAT32_ROUNDOFF * (xp.abs(x) + error))


def _rounded_block(
    problem: GemmProblem, inputs: GemmInputs, operands: _Operands, c: Any, at: Any, xp: Any
) -> Any:
    x = operands.product(problem, xp) * np.float32(inputs.alpha)
    added = 0.0 if c is None else c * np.float32(inputs.beta)
    if not problem.c_is_added_last:
        x += added
    if problem.activation is not None and problem.gate is not None:
        x = problem.activation.evaluate_gated(*halves(problem.gate, x), xp).astype(xp.float32)
    elif problem.activation is not None:
        x = problem.activation.evaluate(x, xp).astype(xp.float32)
    if problem.c_is_added_last:
        x = x + added
    if inputs.scatter is not None:
        weights, is_written = inputs.scatter.factors(at[1], xp)
        x = xp.where(is_written, weights * x, np.float32(0))
    return _round(x, problem.out_dtype, xp)


def _round(values: Any, dtype: str, xp: Any) -> Any:
    return values if dtype == "fp32" else round_to(values, dtype, xp)


def _is_power_of_two(factor: float) -> bool:
    return factor == 0 or abs(np.frexp(factor)[0]) == 0.5


def _blocks(
    problem: GemmProblem, inputs: GemmInputs, shape: tuple[int, ...], xp: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield a place in the output with the operands of its rows and, where it counts, C.

    A and B without columns and rows where their product does not count.
    """
    n, depth = shape[2], inputs.a.shape[2] if inputs.alpha else 0
    most = max(1, (CPU_CHUNK if xp is np else GPU_CHUNK) // n)
    for part in inputs.parts:
        of_part = part.depth if inputs.alpha else slice(0)
        b = xp.asarray(inputs.b[part.b % inputs.b.shape[0], of_part])
        for start in range(0, part.rows, most):
            count = min(most, part.rows - start)
            rows = slice(part.first + start, part.first + start + count)
            begin = part.place[1] + start
            at = (part.place[0], slice(begin, begin + count))
            c = None
            if inputs.c is not None and inputs.beta != 0:
                matrix = part.batch if "m" in problem.residual.axes else part.b
                c = inputs.c[matrix % len(inputs.c)]
                c = xp.asarray(problem.residual.rows_of(c, rows))
            a = xp.asarray(inputs.a[part.batch % inputs.a.shape[0], rows, of_part])
            yield at, _Operands(a, b, _scales(problem, inputs, part, rows, (n, depth), xp)), c


def _scales(
    problem: GemmProblem,
    inputs: GemmInputs,
    part: Part,
    rows: slice,
    extents: tuple[int, int],
    xp: Any,
) -> tuple[Any, ...]:
    """Return one scale for each row of A, or column of B, and block of k."""
    n, depth = extents
    found = []
    for scales, values in zip(problem.scales, inputs.scales, strict=True):
        blocks = -(-depth // scales.columns)
        of_a = scales.operand == "a"
        whole = xp.asarray(values[(part.batch if of_a else part.b) % values.shape[0]])
        each = of_each_line(scales, whole, inputs.a.shape[1] if of_a else n, xp)
        found.append(each[rows, :blocks] if of_a else each[:blocks])
    return tuple(found)


@dataclass(frozen=True)
class _Operands:
    """Rows of A and all of B in float32, with scales where they have some."""

    a: Any
    b: Any
    scales: tuple[Any, ...]

    def sums(self, problem: GemmProblem, xp: Any) -> tuple[Any, Any]:
        """Return the product in float64, and the error of a kernel's sums."""
        if not self.scales:
            return sum_products(problem.accumulation, self.a, self.b, xp)
        if problem.scales[0].in_tensor_cores:  # tensor cores multiply elements with their scales
            return sum_products(problem.accumulation, *self._scaled(problem, xp), xp)
        of_a, of_b = self.scales
        block = problem.scales[0].columns
        return sum_scaled(problem.accumulation, self.a, self.b, (of_a, of_b), block, xp)

    def product(self, problem: GemmProblem, xp: Any) -> Any:
        """Return the product in float32."""
        if not self.scales:
            return self.a @ self.b
        a, b = self._scaled(problem, xp)
        return a @ b

    def _scaled(self, problem: GemmProblem, xp: Any) -> tuple[Any, Any]:
        block = problem.scales[0].columns
        a = scaled(self.a, self.scales[0], -1, block, xp)
        return a, scaled(self.b, self.scales[1], -2, block, xp)
