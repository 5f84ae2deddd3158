"""The terms of a score function or mask that names more than query and key, in kernels.

What is the same for all scores of a tile is computed once a tile: the *terms*. The rest is C++ of
one score, where whole numbers become floats so that each key costs an addition, not a conversion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.score_distance import distance_text
from fa4gen.designs.common.score_text import ScoreText, Term
from fa4gen.expressions.c_text import C, Rank
from fa4gen.expressions.cuda_text import CudaText
from fa4gen.expressions.places import KEY, OF_TILE, SCORE
from fa4gen.expressions.reals import as_real, of_reals
from fa4gen.expressions.tree import (
    TO_REAL,
    Element,
    Kind,
    Number,
    Operation,
    Variable,
    add,
    evaluate,
    parts,
    rebuilt,
    times,
    variables_in,
)
from fa4gen.scores.expression import FACTOR_VARIABLE, ExpressionScore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.score_distance import DistanceText
    from fa4gen.designs.common.score_text import Names
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.expressions.tree import Node
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score

C_TYPES = {Kind.WHOLE: "int32", Kind.REAL: "float"}
_OF_TILE = frozenset({*OF_TILE, FACTOR_VARIABLE.name})
_FIRST_KEY, _COLUMN = Variable("first_key"), Variable("column")


def terms_of(mask: Mask, score: Score, places: Names) -> tuple[Term, ...]:
    """Return the terms that a kernel computes once a tile; ``places``: its names for them."""
    names = set(mask.tile_names)
    divided = Rank.PRODUCT if "/" in places.key_head else Rank.ATOM
    found: list[Term] = []
    if isinstance(score, ExpressionScore):
        tree, hoisted = _hoist(score.kernel_tree)
        names |= variables_in(tree) & set(OF_TILE)
        given = {
            "head": C(places.head),
            "batch": C(places.batch),
            "key_head": C(places.key_head, divided),
            FACTOR_VARIABLE.name: C(score.FACTOR),
        }
        for node, variable in hoisted.items():
            value: C = evaluate(node, given, CudaText())
            found.append(Term(C_TYPES[node.kind], variable.name, value.text))
    values = {"head": places.head, "batch": places.batch, "key_head": places.key_head}
    return (*found, *(Term("int32", name, values[name]) for name in OF_TILE if name in names))


def score_text(score: ExpressionScore) -> ScoreText:
    """Return the C++ of a score function, by its terms."""
    tree, hoisted = _hoist(score.kernel_tree)
    tree = _split_keys(tree)
    variables = {
        SCORE: C("scores[i]"),
        **{variable.name: C(f"terms.{variable.name}") for variable in hoisted.values()},
        **{name: C(f"terms.{name}") for name in OF_TILE},
        **{name: C(name) for name in ("query", "row")},
        **{name: C(name, least=0) for name in (KEY, _FIRST_KEY.name, _COLUMN.name)},
    }
    found: C = evaluate(tree, variables, CudaText())
    names = variables_in(tree)
    needed = set(names)
    if "query" in names:
        needed.add("row")
    if KEY in names:
        needed |= {_COLUMN.name, _FIRST_KEY.name}
    return ScoreText(found.text, frozenset(needed))


def distance_text_of(score: ExpressionScore) -> DistanceText | None:
    """Return the C++ of a score function that adds a multiple of the distance to the key."""
    tree, hoisted = _hoist(score.kernel_tree)
    return distance_text(
        tree, {variable.name: f"terms.{variable.name}" for variable in hoisted.values()}
    )


def reads_keys(score: Score, tensors: Iterable[Tensor]) -> bool:
    """Whether terms read tensors that are empty where there are no keys."""
    by_name: Mapping[str, Tensor] = {tensor.name: tensor for tensor in tensors}
    if not isinstance(score, ExpressionScore):
        return False
    _, hoisted = _hoist(score.kernel_tree)
    read = {one.name for node in hoisted for one in parts(node) if isinstance(one, Element)}
    return any("keys" in by_name[name].shape for name in read)


def _hoist(tree: Node) -> tuple[Node, dict[Node, Variable]]:
    """Return the tree with variables for what is the same for all scores of a tile, and those."""
    found: dict[Node, Variable] = {}

    def walk(node: Node) -> Node:
        if not _is_of_tile(node):
            return rebuilt(node, walk)
        if isinstance(node, Variable) and node.kind is Kind.WHOLE:
            return node
        if node.kind is Kind.TRUTH:
            return rebuilt(node, walk)
        return found.setdefault(node, Variable(f"term{len(found)}", node.kind))

    return walk(tree), found


def _is_of_tile(node: Node) -> bool:
    names = variables_in(node)
    reads = bool(names) or any(isinstance(one, Element) for one in parts(node))
    return reads and names <= _OF_TILE


def _split_keys(node: Node) -> Node:
    """Return the tree with floats of whole numbers taken apart by the key's place in its block."""
    match node:
        case Operation(name, (inner,)) if name == TO_REAL:
            factor, rest = _by_key(inner) or (0, inner)
            if factor > 0:
                first = add(rest, times(factor, _FIRST_KEY))
                return of_reals("add", (as_real(first), as_real(times(factor, _COLUMN))))
            if factor < 0:
                first = Operation("subtract", (rest, times(-factor, _FIRST_KEY)))
                return of_reals("subtract", (as_real(first), as_real(times(-factor, _COLUMN))))
    return rebuilt(node, _split_keys)


def _by_key(node: Node) -> tuple[int, Node] | None:
    """Return f and r of a number that is f * key + r; None for any other."""
    if KEY not in variables_in(node):
        return 0, node
    match node:
        case Variable():
            return 1, Number(0)
        case Operation("negative", (inner,)):
            found = _by_key(inner)
            return found and (-found[0], Operation("negative", (found[1],)))
        case Operation("add" | "subtract" as name, (left, right)):
            one, other = _by_key(left), _by_key(right)
            if one is None or other is None:
                return None
            factor = one[0] + other[0] if name == "add" else one[0] - other[0]
            return factor, _sum(name, one[1], other[1])
        case Operation("multiply", (left, right)):
            if not isinstance(left, Number):
                left, right = right, left
            found = _by_key(right)
            if found is None or not isinstance(left, Number):
                return None
            return left.value * found[0], times(left.value, found[1])
    return None


def _sum(name: str, left: Node, right: Node) -> Node:
    if name == "add":
        return add(left, right)
    return left if right == Number(0) else Operation(name, (left, right))
