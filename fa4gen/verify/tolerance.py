"""The tolerance of a kernel: the distance from the exact result that its precision requires.

The standard is ``rounded_attention``: the same inputs, the same roundings, done in NumPy. Its
errors against the float64 result are measured for each case, and a kernel may exceed them by a
factor for chance, plus a floor for cases so small or so special (one key, constant inputs) that
NumPy happens to make no error at all. Six errors are looked at, because each detects errors that
the others average out:

* ``frobenius``: all of the output, ||out - exact|| / ||exact||. Rounding errors average out here,
  so the factor is close to 1: two correct computations differ by a few percent (on an H200, the
  errors of the kernels are 0.97 to 1.03 times those of NumPy). A softmax scale that is wrong by
  1 % shows as 1.4 % against a bound of 0.3 % (bf16).
* ``row``: the worst of all rows, ||row - exact row|| / ||exact row||. One wrong row among
  thousands, such as the last of a tile, is invisible in the Frobenius norm.
* ``element``: the largest error of an element.
* ``lse``: the largest error of a log-sum-exp. It is never rounded to 16 bits, so that it shows one
  key too many among thousands.
* ``share``: of data that count, the distance of an element as a share of what rounding may do to
  it, the worst of all: at most 1. Values are not negative there, so that nothing cancels, and each
  element has an interval of its own; see ``weight_ends``. Where the score function leaves logits
  as they are, weights are powers of two, which no type rounds: an element must then be the
  exact one, rounded once. 0 for other data.
* ``max_logit``: the distance of a head's largest logit as a share of what rounding may do to any of
  its logits, the worst of all: at most 1. 0 for kernels that raise none.

u is the unit roundoff of a type: 2^-8 for bf16, 2^-11 for fp16, 2^-4 for fp8 e4m3; u_p is that of
the probabilities, which have the type of the values, and u_o that of the output. The floors:

* An output element is rounded once (error up to u_o, 0.5 u_o in the root mean square of a row), and
  if a single key dominates, the rounding of its probability (up to u_p) moves the whole row. Two
  such errors that happen to add up are under u_p + 0.5 u_o in the root mean square of a row, which
  is 1.5 u where both types are the same. Rows are independent, so over n rows the floor of the
  Frobenius norm is that / sqrt(n). Rows that come out the same, as with constant inputs, are
  rounded the same and count as one: their common error depends on the maximum that a kernel
  happens to scale by, and does not average out.
* A score is a float32 sum of ``depth`` products. Tensor cores add 16 of them at a time (32 of fp8)
  and cut off instead of rounding, so it may be off by depth / 16 + 2 units of 2^-23 of its largest
  partial sum, which |query row| |key row| softmax_scale bounds; the products with descales add one
  unit more. exp2 and log2 of the hardware, and the product with log2(e), add 2^-21 and 2^-22 of the
  result; a softcap adds softcap * 2^-20, and an expression what its own operations do (see
  ``expressions.rounding_errors``), which reaches the output, too. Probabilities that are scaled by
  2^shift have sums whose log2 is larger by shift, and off by 2^-21 of that.
* A kernel that takes part of its exponentials from a polynomial has probabilities with relative
  errors of up to e = 8.8e-5 before they are rounded. The relative error of a row's sum is at most
  e, and the error of its logarithm at most e. The output is divided by the same sum, so that a
  common error cancels; e is added to its floors as if nothing cancelled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.instructions.mma.cut_sums import SUM_BITS
from fa4gen.verify.cut_sums import SCORE_UNITS
from fa4gen.verify.errors import ErrorSet, element_shares
from fa4gen.verify.reference import MMA_BYTES
from fa4gen.verify.rounding import UNIT_ROUNDOFF, numpy_dtype

if TYPE_CHECKING:
    from fa4gen.verify.cut_sums import CutSums
    from fa4gen.verify.reference import AttentionProblem, AttentionResult, Descales
    from fa4gen.verify.rounding import Precision

FROBENIUS_FACTOR = 1.25
ROW_FACTOR = 1.5
ELEMENT_FACTOR = 2.5
LSE_FACTOR = 4.0
LARGE_LOGIT = 512.0
"""The logit from which on the rounding of a score alone, 2^-24 of it, counts next to that of an
output."""
LARGE_CUT_LOGIT = 32.0
"""A large logit where sums keep few bits."""
CUT_LOGIT_UNITS = 2.0
"""The units of a large logit by which such sums move it from key to key: the deviation of 128 cuts,
of which the first are those of smaller sums. What moves all keys of a row alike does not reach its
output."""
OUTPUT_ROUNDING = 0.5
"""Units of u_o: root mean square of the rounding of a row of outputs, at most."""


@dataclass(frozen=True)
class Errors(ErrorSet):
    """The six errors of a result, or the bounds on them; see the module. 0 for empty outputs."""

    INTERVALS = frozenset({"share", "max_logit"})

    frobenius: float
    row: float
    element: float
    lse: float
    share: float = 0.0
    max_logit: float = 0.0


def measure(got: AttentionResult, exact: AttentionResult, xp: Any = np) -> Errors:
    """Return the errors of ``got``. Anything that is not finite where it should be counts as inf.

    ``got.lse`` and ``got.max_logits`` may be None for a kernel that does not write them.
    """
    distance = xp.abs(got.out.astype(xp.float64) - exact.out)
    distance = xp.where(xp.isnan(distance), xp.inf, distance)
    lse = _lse_error(got.lse, exact.lse, xp)
    share, max_logit = _share(got.out, exact, xp), 0.0
    if got.max_logits is not None and got.max_logits.size:
        max_logit = float(element_shares(got.max_logits, exact.max_logits, xp).max())
    return Errors(*_of_distances(distance, exact, xp), lse, share, max_logit)


def _of_distances(distance: Any, exact: AttentionResult, xp: Any) -> tuple[float, float, float]:
    """Return the errors of an output, from the distances of its elements from the exact ones."""
    # By the largest element, so that squares stay inside float64.
    unit = float(xp.abs(exact.out).max()) if exact.out.size else 0.0
    unit = unit or 1.0
    error_squares = ((distance / unit) ** 2).sum(axis=3)
    squares = ((exact.out / unit) ** 2).sum(axis=3)
    return (
        _ratio(float(error_squares.sum()), float(squares.sum())),
        _worst_ratio(error_squares, squares, xp),
        float(distance.max()) if distance.size else 0.0,
    )


def bounds(
    own: Errors,
    exact: AttentionResult,
    problem: AttentionProblem,
    query: Any,
    key: Any,
    precision: Precision,
    xp: Any = np,
    *,
    descales: Descales | None = None,
    value: Any = None,
) -> Errors:
    """Return the bounds of a kernel's errors, from those of the same computation in NumPy.

    ``value``: None where errors of scores do not reach the output, as those of equal logits.
    Where elements have intervals, the ends of all are allowed: data that count have few different
    weights, whose roundings do not average out.
    """
    lse = LSE_FACTOR * own.lse
    lse += _lse_floor(exact, problem, query, key, precision, descales or {}, xp)
    least = (0.0, 0.0, 0.0)
    if exact.low is not None:
        distance = xp.maximum(exact.high - exact.out, exact.out - exact.low)
        least = _of_distances(distance, exact, xp)
    probability, output = UNIT_ROUNDOFF[precision.dtype], UNIT_ROUNDOFF[precision.out_dtype]
    floor = probability + OUTPUT_ROUNDING * output + precision.exp2_error
    element_floor = max(probability, output) + precision.exp2_error
    largest = float(xp.abs(exact.out).max()) if exact.out.size else 0.0
    rows = max(1, _different_rows(exact, largest, xp))
    of_all, of_row, of_element = _through_scores(exact, value, descales or {}, precision.sums, xp)
    frobenius = FROBENIUS_FACTOR * own.frobenius + floor / math.sqrt(rows) + of_all
    row = ROW_FACTOR * own.row + floor + of_row
    element = ELEMENT_FACTOR * own.element + element_floor * largest + of_element
    return Errors(
        frobenius=max(frobenius, least[0]),
        row=max(row, least[1]),
        element=max(element, least[2]),
        lse=lse,
        share=1.0,
        max_logit=1.0,
    )


def _different_rows(exact: AttentionResult, largest: float, xp: Any) -> int:
    """Return how many rows of the output differ, by their sums of squares to 40 bits."""
    squares = ((exact.out / (largest or 1.0)) ** 2).sum(axis=3)
    return int(xp.unique(squares.reshape(-1).view(xp.int64) >> 12).size)


def _lse_floor(
    exact: AttentionResult,
    problem: AttentionProblem,
    query: Any,
    key: Any,
    precision: Precision,
    descales: Descales,
    xp: Any,
) -> float:
    finite = exact.lse[xp.isfinite(exact.lse)]
    if not finite.size:
        return 0.0
    depth = int(query.shape[3])
    partial_sum = problem.softmax_scale * _longest_row(query, xp) * _longest_row(key, xp)
    scale = descales.get("query", np.ones(1)) * descales.get("key", np.ones(1))
    units = depth * numpy_dtype(precision.dtype).itemsize / MMA_BYTES + 2 + bool(descales)
    score: float = partial_sum * float(scale.max()) * units * 2.0**-23
    if precision.sums is not None:  # as seen in ``own``, but not by the same chance
        unit = 2.0**-SUM_BITS
        score += SCORE_UNITS * partial_sum * float(scale.max()) * unit
    score += problem.score.error
    if exact.shift is not None:
        score = float(exact.shift.max())
    total = 2.0**-21 * (1 + precision.probability_shift) + precision.exp2_error
    return score + float(xp.abs(finite).max()) * 2.0**-22 + total


def _through_scores(
    exact: AttentionResult, value: Any, descales: Descales, sums: CutSums | None, xp: Any
) -> tuple[float, float, float]:
    """Return the effect of scores' errors on the output: on all of it, a row, an element.

    Where each score is off by its own error, weights are off by that and by the shift of their
    sum: together by at most twice the shift, of values no longer than the longest. A score function
    may enlarge these errors. For logits alone they are in ``own``, but as one sample for each row:
    the two or three keys that matter to a row of logits in the thousands move all of its columns
    together, so that few rows do not average out. A unit of 2^-24 of the logit is a fair share of
    the several that a score may be off by.
    """
    if not exact.out.size or value is None:
        return 0.0, 0.0, 0.0
    shift = exact.shift
    if shift is None:
        size = xp.abs(xp.where(xp.isfinite(exact.lse), exact.lse, 0.0))
        large, unit = LARGE_LOGIT, 2.0**-25
        if sums is not None:
            large, unit = LARGE_CUT_LOGIT, CUT_LOGIT_UNITS * 2.0**-SUM_BITS
        shift = xp.where(size < large, 0.0, size * unit)
        if not float(shift.max()):
            return 0.0, 0.0, 0.0
    scale = float(descales.get("value", np.ones(1)).max())
    moved = 2 * shift.swapaxes(1, 2) * _longest_row(value, xp) * scale  # (batch, rows, heads)
    lengths = xp.sqrt((exact.out**2).sum(axis=3))
    whole = float(xp.sqrt((lengths**2).sum()))
    seeing = lengths > 0
    of_row = float(xp.where(seeing, moved / xp.where(seeing, lengths, 1.0), 0.0).max())
    largest = float(xp.abs(value).max()) * scale if value.size else 0.0
    of_all = float(xp.sqrt((moved**2).sum())) / whole if whole else 0.0
    return of_all, of_row, 2 * float(shift.max()) * largest


def _share(got: Any, exact: AttentionResult, xp: Any) -> float:
    """Return the largest share of its interval that an element takes; 0 without intervals."""
    if exact.low is None or not exact.out.size:
        return 0.0
    return float(element_shares(got, exact, xp).max())


def _longest_row(array: Any, xp: Any) -> float:
    if not array.size:
        return 0.0
    return math.sqrt(float((array.astype(xp.float64) ** 2).sum(axis=3).max()))


def _ratio(error_square: float, square: float) -> float:
    if square:
        return math.sqrt(error_square / square)
    return math.inf if error_square else 0.0


def _worst_ratio(error_squares: Any, squares: Any, xp: Any) -> float:
    """Return the largest relative error of a row; a row of zeros must be exact."""
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
