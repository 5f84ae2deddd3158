"""Merging in float64, with intervals: all that the kernel's float32 may make of each element.

With m the largest log-sum-exp of a row, its parts have weights w_p = exp(lse_p - m): the output is
the sum of w_p O_p over that of w_p, and the log-sum-exp m plus the logarithm of the latter. A
log-sum-exp that is NaN or infinite makes the row's results NaN.

u is 2^-24. A difference lse_p - m is rounded (u of it), multiplied by log2(e) (rounded, and off by
u itself: 2 u), and ex2.approx is off by 2^-22 of its result. A kernel that forms its maxima by
groups of parts multiplies by a further factor for each group, each off by as much. A sum of n terms
adds n u of the sum of their sizes. Dividing is off by 2^-21, lg2.approx by 2^-22 absolutely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fa4gen.verify.rounding import round_to

UNIT = 2.0**-24
EXP2_ERROR = 2.0**-21
"""Relative, of a weight: ex2.approx and the product with a factor."""
DIVISION_ERROR = 2.0**-21
LARGEST_DIFFERENCE = 200.0
"""Log-sum-exps further apart than this have weights below 2^-149, which vanish."""
SMALLEST = 2.0**-120
"""The largest part of a result that flushed weights may leave out."""


@dataclass(frozen=True)
class MergeResult:
    """Elements in float64, with the least and the most that each may be, rounded to its type."""

    exact: Any
    low: Any
    high: Any


def merged(parts: Any, lse: Any, out_dtype: str, xp: Any) -> tuple[MergeResult, MergeResult]:
    """Return output (batch, rows, heads, depth) and log-sum-exp (batch, heads, rows).

    ``parts``: float32 (parts, batch, rows, heads, depth), ``lse`` (parts, batch, heads, rows).
    """
    lse = lse.astype(xp.float64)
    shape = lse.shape[1:]
    largest = lse.max(axis=0) if len(lse) else xp.full(shape, -xp.inf)
    none = xp.isneginf(largest)
    reference = xp.where(none, 0.0, largest)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, as it is in the kernel
        weights = xp.exp(lse - reference)
        apart = xp.minimum(xp.where(xp.isneginf(lse), 0.0, reference - lse), LARGEST_DIFFERENCE)
    total = weights.sum(axis=0)
    count = len(lse)
    off = EXP2_ERROR * (1 + count) + 4 * UNIT * apart  # relative, of each weight
    sum_error = (weights * off).sum(axis=0) + count * UNIT * total

    by_row = (slice(None), slice(None), slice(None), slice(None), None)
    seen = weights.swapaxes(2, 3)[by_row]  # (parts, batch, rows, heads, 1)
    values = xp.where(seen > 0, parts.astype(xp.float64), 0.0)
    divisor = xp.where(none, 1.0, total).swapaxes(1, 2)[..., None]
    out = (seen * values).sum(axis=0) / divisor
    sizes = xp.abs(values)
    error = (seen * sizes * off.swapaxes(2, 3)[by_row]).sum(axis=0)
    error += count * UNIT * (seen * sizes).sum(axis=0)
    error += xp.abs(out) * (sum_error.swapaxes(1, 2)[..., None] + DIVISION_ERROR * divisor)
    error /= divisor
    error += SMALLEST * (sizes.max(axis=0) if count else 0.0)
    if count == 1:  # a weight of 1, a sum of 1: nothing is rounded but the output
        error = xp.zeros_like(error)
    low, high = (
        round_to((out + sign * error).astype(xp.float32), out_dtype, xp) for sign in (-1, 1)
    )
    exact_lse = xp.where(none, -xp.inf, reference + xp.log(xp.where(none, 1.0, total)))
    room = sum_error / xp.where(none, 1.0, total) + 2.0**-21 * (1 + xp.log2(1.0 + count))
    room = xp.where(none, 0.0, room + 2 * UNIT * xp.abs(exact_lse))
    return (
        MergeResult(out, low, high),
        MergeResult(exact_lse, exact_lse - room, exact_lse + room),
    )
