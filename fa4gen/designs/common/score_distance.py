"""Scores to which a multiple of the distance from query to key is added, as by ALiBi.

Where a row sees all keys of a block and none of these is past its query, the distances are those of
the last key, which are the same for a row, plus the columns up to that one, which are constants:
each score costs one multiply-add. Both are at least 0: nothing cancels, and the result is as exact
as with the distance in one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fa4gen.expressions.c_text import C
from fa4gen.expressions.cuda_text import CudaText
from fa4gen.expressions.places import KEY, OF_TILE, QUERY, SCORE
from fa4gen.expressions.reals import of_reals
from fa4gen.expressions.tree import TO_REAL, Kind, Operation, Variable, evaluate, variables_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.tree import Node

DISTANCE = Variable("distance", Kind.REAL)
_QUERY, _KEY, _SCORE = Variable(QUERY), Variable(KEY), Variable(SCORE, Kind.REAL)


class DistanceText(NamedTuple):
    """C++ of a score function, by ``distance``, how far the key is before the query."""

    of_score: str
    """Replaces ``scores[i]``."""
    of_row: str
    """Is added to all of a row's scores."""


def distance_text(tree: Node, terms: Mapping[str, str]) -> DistanceText | None:
    """Return the C++; None for a function that is not of this kind.

    ``tree``: what a kernel computes by its terms; ``terms``: their C++ by name.
    """
    match tree:
        case Operation("real_add" | "real_subtract" as name, (left, right)) if left == _SCORE:
            added = _by_distance(right)
        case _:
            return None
    if added is None:
        return None
    variables = {
        SCORE: C("scores[i]"),
        DISTANCE.name: C(DISTANCE.name),
        **{term: C(text) for term, text in terms.items()},
        **{one: C(f"terms.{one}") for one in OF_TILE},
    }
    of_score: C = evaluate(Operation(name, (_SCORE, added)), variables, CudaText())
    of_row_tree = added if name == "real_add" else of_reals("negative", (added,))
    of_row: C = evaluate(of_row_tree, variables, CudaText())
    return DistanceText(of_score.text, of_row.text)


def _by_distance(node: Node) -> Node | None:
    """Return a multiple of the distance with DISTANCE in it; None for what is none."""
    match node:
        case Operation(name, (Operation("subtract", (left, right)),)) if name == TO_REAL:
            if (left, right) == (_QUERY, _KEY):
                return DISTANCE
            if (left, right) == (_KEY, _QUERY):
                return of_reals("negative", (DISTANCE,))
        case Operation("real_negative", (inner,)):
            found = _by_distance(inner)
            return None if found is None else of_reals("negative", (found,))
        case Operation("real_multiply", (left, right)):
            if not _is_of_tile(left):
                left, right = right, left
            found = _by_distance(right)
            if found is not None and _is_of_tile(left):
                return of_reals("multiply", (left, found))
    return None


def _is_of_tile(node: Node) -> bool:
    """Whether it is the same for all scores of a tile: made of numbers and terms."""
    return not variables_in(node) & {SCORE, QUERY, KEY, "row"}
