"""The tolerance of a matrix product: the errors that its own precision cannot avoid.

Every element has an interval of its own, and a kernel has to stay inside it. It is made of

* the sum of the products: a matrix instruction adds ``mma_k`` products and the sum so far in one
  step. The tensor cores align the addends to the largest of them, 2^E, and cut off bits below 2^(E
  - alignment bits); then the sum is cut to float32. On an H200, for 16-bit elements the bits
  are 25, for 8-bit elements only 13, and the sum so far is cut, too. Blackwell's have not been
  measured; they are taken for Hopper's 25 bits of 16-bit elements, which is finer than what the
  emulator's float32 sums need. With M the largest of the sum so far and the step's sum |a| |b|
  (no addend is larger), q = M * 2^-bits bounds the error of one addend. Over all steps:

  - the sum so far is cut once a step, always towards zero: by q, and by 2^-23 of the result;
  - products are cut towards zero by something between 0 and q. On average that is q / 2 times the
    number of positive products minus that of negative ones; what is left are independent errors,
    which exceed 4 sqrt(sum of q^2) once in 10^13 elements (Hoeffding's inequality: 2 exp(-2 * 16)).

  Whole numbers that are so small that no bit of theirs is cut make no error at all.
* alpha, beta and their sum: half a unit of float32 each, where they are not exact (``reference``);
* the activation, evaluated at both ends (``activation``);
* the rounding of both ends to the output's type. It is monotone, so the interval is exact: where
  nothing before could go wrong, as in C passed through, only the right bits are left.

Three errors are measured, each where the others would average it out:

* ``frobenius``: all of the output, ||out - exact|| / ||exact||. The bound is that of the same
  computation in float32 NumPy times a factor for chance, plus the intervals before rounding.
* ``row``: the same of each row by itself, divided by its bound; the worst of all, at most 1.
* ``element``: the distance of an element as a share of its interval's, the worst of all: at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.instructions.mma.cut_sums import SUM_BITS
from fa4gen.verify.cut_sums import DEVIATIONS
from fa4gen.verify.errors import ErrorSet, element_shares, shares_of
from fa4gen.verify.rounding import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

FROBENIUS_FACTOR = 1.25
ROW_FACTOR = 1.5
ROUNDOFF = {**UNIT_ROUNDOFF, "fp32": 2.0**-24}
FLOAT32_CUT = 2.0**-23
ALIGNMENT_BITS = 25
MANTISSA_BITS = 24
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Accumulation:
    """The rounding of additions in the tensor cores."""

    products_per_step: int
    alignment_bits: int

    @classmethod
    def of(cls, plan: GemmPlan) -> Accumulation:
        """Return the accumulation of the kernel of ``plan``."""
        coarse = plan.element_bytes == 1 and not plan.has_tensor_memory
        return cls(plan.mma_k, SUM_BITS if coarse else ALIGNMENT_BITS)


def sum_products(how: Accumulation, a: Any, b: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return a . b in float64, and how far the tensor cores' sum may be from it; see the module."""
    shape = (a.shape[0], b.shape[1])
    if _adds_exactly(how, a, b, xp):
        return a.astype(xp.float64) @ b.astype(xp.float64), xp.zeros(shape, xp.float64)
    total, cut, drift, squares = (xp.zeros(shape, xp.float64) for _ in range(4))
    exact_a, exact_b = a.astype(xp.float64), b.astype(xp.float64)
    signs_a, signs_b = xp.sign(a), xp.sign(b)
    for start in range(0, a.shape[1], how.products_per_step):
        step = slice(start, start + how.products_per_step)
        products = exact_a[:, step] @ exact_b[step]
        sizes = xp.abs(exact_a[:, step]) @ xp.abs(exact_b[step])
        before = xp.abs(total)
        unit = xp.maximum(before, sizes) * 2.0**-how.alignment_bits
        cut += unit + FLOAT32_CUT * (before + sizes)
        drift += unit * (signs_a[:, step] @ signs_b[step])
        squares += how.products_per_step * unit**2
        total += products
    return total, cut + xp.abs(drift) / 2 + DEVIATIONS * xp.sqrt(squares)


def _adds_exactly(how: Accumulation, a: Any, b: Any, xp: Any) -> bool:
    """Whether all sums are whole numbers of which no step cuts a bit."""
    if not all(bool((array == xp.rint(array)).all()) for array in (a[:1], b[:1], a, b)):
        return False
    sizes = xp.abs(a) @ xp.abs(b)
    largest = float(sizes.max()) if sizes.size else 0.0
    return largest < 2.0 ** (min(how.alignment_bits, MANTISSA_BITS) - 1)


@dataclass(frozen=True)
class GemmResult:
    """The result of a product, and the interval around it: all (batch, m, n)."""

    exact: Any
    """float64."""
    low: Any
    """The least that the kernel may give, rounded to the output's type: float32."""
    high: Any
    """The most."""
    slack: Any
    """The allowed error of the result before it is rounded."""
    own: Any
    """The result of float32 NumPy, rounded to the output's type."""


@dataclass(frozen=True)
class GemmErrors(ErrorSet):
    """The three errors of a result, or the bounds on them; see the module. 0 for empty outputs."""

    INTERVALS = frozenset({"element"})

    frobenius: float
    row: float
    element: float


@np.errstate(over="ignore", invalid="ignore")
def measure(got: Any, result: GemmResult, out_dtype: str, xp: Any = np) -> GemmErrors:
    """Return the errors of ``got``, float32 (batch, m, n)."""
    if not result.exact.size:
        return GemmErrors(0.0, 0.0, 0.0)
    exact = _finite(result.exact, xp)
    distance = _distance(got, result, xp)
    unit = float(xp.abs(exact).max()) or 1.0  # so that squares stay inside float64
    rows = _norms(distance / unit, xp)
    return GemmErrors(
        frobenius=_ratio(_norm(distance / unit), _norm(exact / unit)),
        row=float(shares_of(rows, _row_bounds(result, exact, out_dtype, unit, xp), xp).max()),
        element=float(element_shares(got, result, xp).max()),
    )


@np.errstate(over="ignore", invalid="ignore")
def bounds(result: GemmResult, out_dtype: str, xp: Any = np) -> GemmErrors:
    """Return the bounds of a kernel's errors."""
    if not result.exact.size:
        return GemmErrors(0.0, 1.0, 1.0)
    exact = _finite(result.exact, xp)
    unit = float(xp.abs(exact).max()) or 1.0
    own = _norm(_distance(result.own, result, xp) / unit)
    slack = _norm(_finite(result.slack, xp) / unit)
    # One element that is rounded as badly as can be, where NumPy happens to make no error.
    floor = ROUNDOFF[out_dtype] if slack or own else 0.0
    bound = FROBENIUS_FACTOR * own + slack + floor
    return GemmErrors(_ratio(bound, _norm(exact / unit)), 1.0, 1.0)


def _distance(got: Any, result: GemmResult, xp: Any) -> Any:
    """Return |got - exact|; 0 where both are beyond float32, or both NaN."""
    found = got.astype(xp.float64)
    allowed = (found >= result.low) & (found <= result.high) & ~xp.isfinite(found)
    same = allowed | (xp.isnan(found) & xp.isnan(result.exact))
    distance = xp.abs(found - _finite(result.exact, xp))
    distance = xp.where(xp.isnan(distance), xp.inf, distance)
    return xp.where(same, 0.0, distance)


def _row_bounds(result: GemmResult, exact: Any, out_dtype: str, unit: float, xp: Any) -> Any:
    own = _norms(_distance(result.own, result, xp) / unit, xp)
    slack = _norms(_finite(result.slack, xp) / unit, xp)
    floor = ROUNDOFF[out_dtype] * xp.abs(exact).max(axis=2) / unit
    floor = xp.where((own == 0) & (slack == 0), 0.0, floor)
    return ROW_FACTOR * own + slack + floor


def _finite(array: Any, xp: Any) -> Any:
    return xp.clip(xp.nan_to_num(array, nan=0.0), -LARGEST_FLOAT32, LARGEST_FLOAT32)


def _norm(array: Any) -> float:
    return math.sqrt(float((array**2).sum()))


def _norms(array: Any, xp: Any) -> Any:
    return xp.sqrt((array**2).sum(axis=2))


def _ratio(error: float, size: float) -> float:
    if size:
        return error / size
    return math.inf if error else 0.0
