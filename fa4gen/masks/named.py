"""Conditions that equal a mask with a name: they generate the kernel of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.expressions.tree import Number, Operation, Variable
from fa4gen.masks.causal import Causal
from fa4gen.masks.chunked import Chunked
from fa4gen.masks.hull import QUERY, distance_from_query
from fa4gen.masks.sliding_window import SlidingWindow

if TYPE_CHECKING:
    from fa4gen.masks.expression import ExpressionMask
    from fa4gen.masks.mask import Mask


def named_mask(mask: ExpressionMask) -> Mask:
    """Return the mask with a name that has the same bounds; else ``mask`` itself."""
    hull = mask.hull
    if not hull.exact or hull.last is None:
        return mask
    right = distance_from_query(hull.last)
    if hull.first is None:
        return Causal() if right == 0 else mask
    left = distance_from_query(hull.first)
    if left is not None and right is not None and left <= 0 <= right:
        return SlidingWindow(-left, right)
    match hull.first:
        case Operation(
            "multiply",
            (Number(length), Operation("floor_divide", (Variable(name), Number(divisor)))),
        ) if name == QUERY and length == divisor:
            chunk_end = Operation("add", (hull.first, Number(length - 1)))
            if hull.last in (
                Operation("minimum", (chunk_end, Variable(QUERY))),
                Operation("minimum", (Variable(QUERY), chunk_end)),
            ):
                return Chunked(length)
    return mask
