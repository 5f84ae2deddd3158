"""How far a kernel may be from the exact result: no further than its precision makes unavoidable.

The yardstick is ``rounded_attention``: the same inputs, the same roundings, done in NumPy. Its
errors against the float64 result are measured for each case, and a kernel may exceed them by a
factor for chance, plus a floor for cases so small or so special (one key, constant inputs) that
NumPy happens to make no error at all. Four errors are looked at, because each sees mistakes that
the others average away:

* ``frobenius``: all of the output, ||out - exact|| / ||exact||. Rounding errors average out here,
  so the factor is close to 1: two correct computations differ by a few percent (on an H200, the
  errors of the kernels are 0.97 to 1.03 times those of NumPy). A softmax scale that is wrong by
  1 % shows as 1.4 % against a bound of 0.3 % (bf16).
* ``row``: the worst of all rows, ||row - exact row|| / ||exact row||. One wrong row among
  thousands, such as the last of a tile, is invisible in the Frobenius norm.
* ``element``: the largest error of an element.
* ``lse``: the largest error of a log-sum-exp. It is never rounded to 16 bits, so that it shows one
  key too many among thousands.

u is the unit roundoff of the element type: 2^-8 for bf16, 2^-11 for fp16. The floors:

* An output element is rounded once (error up to u), and if a single key dominates, the rounding of
  its probability (up to u) moves the whole row. Two such errors that happen to add up are under
  1.5 u in the root mean square of a row. Rows are independent, so over n rows the floor of the
  Frobenius norm is 1.5 u / sqrt(n).
* A score is a float32 sum of ``depth`` products. Tensor cores add 16 of them at a time and cut off
  instead of rounding, so it may be off by depth / 16 + 2 units of 2^-23 of its largest partial
  sum, which |query row| |key row| softmax_scale bounds. exp2 and log2 of the hardware, and the
  product with log2(e), add 2^-21 and 2^-22 of the result; a softcap adds softcap * 2^-20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.rounding import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.verify.reference import AttentionProblem, AttentionResult

FROBENIUS_FACTOR = 1.25
ROW_FACTOR = 1.5
ELEMENT_FACTOR = 2.5
LSE_FACTOR = 4.0
ROW_FLOOR = 1.5
"""Units of u."""
MMA_DEPTH = 16
"""Products that a tensor core adds at a time, for 16-bit types."""


@dataclass(frozen=True)
class Errors:
    """The four errors of a result, or the bounds on them; see the module. 0 for empty outputs."""

    frobenius: float
    row: float
    element: float
    lse: float

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the errors."""
        return tuple(field.name for field in fields(cls))

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


def measure(got: AttentionResult, exact: AttentionResult, xp: Any = np) -> Errors:
    """Return the errors of ``got``. Anything that is not finite where it should be counts as inf.

    ``got.lse`` may be None for a kernel that does not write it.
    """
    distance = xp.abs(got.out.astype(xp.float64) - exact.out)
    distance = xp.where(xp.isnan(distance), xp.inf, distance)
    # By the largest element, so that squares stay inside float64.
    unit = float(xp.abs(exact.out).max()) if exact.out.size else 0.0
    unit = unit or 1.0
    error_squares = ((distance / unit) ** 2).sum(axis=3)
    squares = ((exact.out / unit) ** 2).sum(axis=3)
    return Errors(
        frobenius=_ratio(float(error_squares.sum()), float(squares.sum())),
        row=_worst_ratio(error_squares, squares, xp),
        element=float(distance.max()) if distance.size else 0.0,
        lse=_lse_error(got.lse, exact.lse, xp),
    )


def bounds(
    own: Errors,
    exact: AttentionResult,
    problem: AttentionProblem,
    query: Any,
    key: Any,
    dtype: str,
    xp: Any = np,
) -> Errors:
    """Return what a kernel's errors may be, given those of the same computation in NumPy."""
    u = UNIT_ROUNDOFF[dtype]
    rows = max(1, math.prod(exact.out.shape[:3]))
    largest = float(xp.abs(exact.out).max()) if exact.out.size else 0.0
    return Errors(
        frobenius=FROBENIUS_FACTOR * own.frobenius + ROW_FLOOR * u / math.sqrt(rows),
        row=ROW_FACTOR * own.row + ROW_FLOOR * u,
        element=ELEMENT_FACTOR * own.element + u * largest,
        lse=LSE_FACTOR * own.lse + _lse_floor(exact, problem, query, key, xp),
    )


def _lse_floor(
    exact: AttentionResult, problem: AttentionProblem, query: Any, key: Any, xp: Any
) -> float:
    finite = exact.lse[xp.isfinite(exact.lse)]
    if not finite.size:
        return 0.0
    depth = int(query.shape[3])
    partial_sum = problem.softmax_scale * _longest_row(query, xp) * _longest_row(key, xp)
    score: float = partial_sum * (depth / MMA_DEPTH + 2) * 2.0**-23
    if problem.softcap is not None:  # the cap's slope is at most 1, so it enlarges no error
        score += problem.softcap * 2.0**-20
    return score + float(xp.abs(finite).max()) * 2.0**-22 + 2.0**-21


def _longest_row(array: Any, xp: Any) -> float:
    return math.sqrt(float((array.astype(xp.float64) ** 2).sum(axis=3).max()))


def _ratio(error_square: float, square: float) -> float:
    if square:
        return math.sqrt(error_square / square)
    return math.inf if error_square else 0.0


def _worst_ratio(error_squares: Any, squares: Any, xp: Any) -> float:
    """Return the largest relative error of a row; a row of zeros has to be met exactly."""
    if not squares.size:
        return 0.0
    zero = squares == 0
    ratios = xp.where(
        zero, xp.where(error_squares > 0, xp.inf, 0.0), error_squares / xp.where(zero, 1.0, squares)
    )
    return math.sqrt(float(ratios.max()))


def _lse_error(got: Any, exact: Any, xp: Any) -> float:
    if got is None or not exact.size:
        return 0.0
    got = got.astype(xp.float64)
    unseeing = xp.isneginf(exact)
    distance = xp.abs(got - xp.where(unseeing, 0.0, exact))
    distance = xp.where(unseeing, xp.where(xp.isneginf(got), 0.0, xp.inf), distance)
    return float(xp.where(xp.isnan(distance), xp.inf, distance).max())
