"""Rounding of the weights of a softmax, and how far it may move a sum of values that they weigh.

Of values that are not negative nothing cancels: where each weight is off by some share of itself,
so are the sums. Data that count (see ``input_kinds``) have logits that are whole multiples of
ln 2, so that all weights of a row are powers of two by any of its maxima, and are not rounded at
all. Where some keys are raised above the others, that holds for both groups by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.verify.rounding import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from fa4gen.verify.rounding import Precision

LEAST = {"bf16": 2.0**-126, "fp16": 2.0**-24, "fp8_e4m3": 2.0**-9}
"""The least number above zero of the types of probabilities: a smaller one may become zero."""
OWN_ERROR = 2.0**-20
"""The error of a weight: of 2^x, of the factor that turns logits into x, and of x where it is
large."""
DIVISION_ERROR = 2.0**-20
"""The error of the division by the sum, and of its scale."""
SUM_ERROR = 2.0**-24
"""The error of each key: the bits cut off or rounded in the addition."""


@dataclass(frozen=True)
class WeightedSums:
    """Sums of some rows before their division, and their terms, in float64."""

    weights: Any
    """(rows, keys)."""
    scales: Any
    """The scales of values, key by key, or None; kernels round weights that are multiplied by
    them."""
    values: Any
    """(keys, columns)."""
    sums: Any
    """(rows, columns)."""
    total: Any
    """(rows, 1): the divisor; it has the sink's weight, too."""
    raised: Any = None
    """(keys): those that a kernel weighs by another maximum than the others; None without any."""


def weight_room(
    weights: Any, errors: Any, precision: Precision, xp: Any, raised: Any = None
) -> tuple[Any, Any]:
    """Return the largest errors of the weights (rows, keys) after rounding, and before.

    ``errors``: those of the scores. The error before rounding is a share of each weight.
    """
    own = xp.expm1(xp.asarray(errors)) + precision.exp2_error + OWN_ERROR
    unit = weights.max(axis=1, keepdims=True)
    if raised is not None:
        above, below = (
            xp.where(part, weights, 0.0).max(axis=1, keepdims=True) for part in (raised, ~raised)
        )
        unit = xp.where(raised, above, below)
    relative = weights / xp.where(unit > 0, unit, 1.0)
    roundoff = UNIT_ROUNDOFF[precision.dtype]
    mantissa, _ = xp.frexp(relative)  # 0, or from 1/2 to 1
    power = (mantissa - 0.5 <= own / 2) | (1 - mantissa <= own / 2)
    exact = (power & (own < roundoff / 4)).all(axis=1, keepdims=True)
    least = LEAST[precision.dtype] * 2.0 ** (precision.maximum_above - precision.probability_shift)
    room = xp.where(exact, 0.0, own * relative + xp.maximum(roundoff * relative, least / 2))
    # Below the least number it is either that one or zero.
    room = xp.where(relative < least, relative, room)
    return xp.where(relative > 0, room, 0.0) * unit, own


def output_ends(block: WeightedSums, errors: Any, precision: Precision, xp: Any) -> tuple[Any, Any]:
    """Return the least and the most of each element of ``block`` before it is rounded."""
    weights, total = block.weights, xp.where(block.total > 0, block.total, 1.0)
    scaled = weights if block.scales is None else weights * block.scales
    room, own = weight_room(scaled, errors, precision, xp, block.raised)
    moved = room @ block.values if room.any() else 0.0
    if precision.sums is not None:
        moved = moved + precision.sums.room(scaled, block.values, block.sums, xp)
    rest = weights.shape[1] * SUM_ERROR + DIVISION_ERROR
    of_total = 1 + (weights * own).sum(axis=1, keepdims=True) / total + rest
    low = xp.maximum(block.sums - moved, 0.0) / total / of_total * (1 - rest)
    return low, (block.sums + moved) / total * of_total * (1 + rest)
