"""A score function that a config writes as an expression, such as ``score - 0.5 * (query - key)``.

``score`` is the logit, softmax scale * q.k, in float32. Where an expression only adds to it, a
kernel leaves the product q.k as it is and adds the rest times the inverse scale: the scale itself
is part of the exponent, as without a score function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.expressions.arrays import RealArrays
from fa4gen.expressions.intervals import Interval
from fa4gen.expressions.language import Language
from fa4gen.expressions.parse import parse
from fa4gen.expressions.places import INDICES, KEY, MOST_PLACES, QUERY, SCORE
from fa4gen.expressions.real_intervals import Range
from fa4gen.expressions.reals import of_reals
from fa4gen.expressions.rounding_errors import Rounded, RoundingErrors
from fa4gen.expressions.tree import (
    TO_REAL,
    Element,
    Kind,
    Operation,
    Real,
    Variable,
    evaluate,
    parts,
    rebuilt,
    variables_in,
)
from fa4gen.expressions.words import ExpressionError
from fa4gen.overriding import override
from fa4gen.scores.score import EXPRESSION, Score
from fa4gen.scores.softcap import LARGEST, SMALLEST, Softcap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.expressions.places import Places
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.expressions.tree import Node

LARGEST_SCORE = 2.0**32
"""For scores up to this, results are numbers: no score of use is near."""
FACTOR_VARIABLE = Variable("factor", Kind.REAL)
"""The factor of the scale in a kernel's tree."""


def language(tensors: Iterable[Tensor] = ()) -> Language:
    """Return the language of score functions."""
    row_of_key = {QUERY: Interval(-MOST_PLACES, MOST_PLACES)}
    indices = {name: Interval(0, MOST_PLACES) for name in INDICES if name != QUERY}
    return Language(
        "a score",
        "score - 0.5 * (query - key)",
        {SCORE: Range(-LARGEST_SCORE, LARGEST_SCORE), **row_of_key, **indices},
        Kind.REAL,
        {tensor.name: tensor for tensor in tensors},
    )


STRAIGHT = ("add", "subtract", "multiply", "negative", TO_REAL)
"""Operations of a score that is linear in the key where its parts are."""


@dataclass(frozen=True)
class ExpressionScore(Score):
    """The function that an expression says."""

    name: str = field(default=EXPRESSION, init=False)
    score: str = ""
    """Its text."""
    tensors: tuple[Tensor, ...] = ()
    """Those that it may read."""

    FUNCTION: ClassVar[str] = "apply_score"
    IS_EXPRESSION: ClassVar[bool] = True

    @cached_property
    def tree(self) -> Node:
        """The function of ``score``."""
        return parse(self.score, language(self.tensors))[1]

    @cached_property
    def added(self) -> Node | None:
        """The addend where the function only adds to the score; else None."""
        return _added(self.tree)

    @property
    @override
    def only_adds(self) -> bool:
        return self.added is not None

    @cached_property
    def kernel_tree(self) -> Node:
        """The kernel's function of the product q.k, here called ``score``, by FACTOR."""
        product = Variable(SCORE, Kind.REAL)
        if self.added is not None:
            return of_reals("add", (product, scaled(self.added, FACTOR_VARIABLE)))
        return _with_factor(self.tree, FACTOR_VARIABLE)

    @property
    def reach(self) -> int:
        """The part of 32 bits above MOST_PLACES."""
        return 2**31 - 1 - MOST_PLACES

    @property
    @override
    def FACTOR(self) -> str:  # type: ignore[override]  # noqa: N802
        return "score_scale" if self.added is None else "inverse_scale"

    @property
    @override
    def FACTOR_NOTE(self) -> str:  # type: ignore[override]  # noqa: N802
        return "softmax scale" if self.added is None else "1 / softmax scale"

    @property
    @override
    def FACTOR_VALUE(self) -> str:  # type: ignore[override]  # noqa: N802
        return "{scale}" if self.added is None else "__fdividef(1.f, {scale})"

    @property
    @override
    def UNIT(self) -> str:  # type: ignore[override]  # noqa: N802
        return "1.f" if self.added is None else "{scale}"

    @classmethod
    def number_notes(cls) -> Mapping[str, str]:
        """Return no notes: an expression has no numbers."""
        return {}

    @override
    def exact(self, logits: Any, xp: Any, places: Places | None = None) -> Any:
        return self._computed(logits, xp, places, "float64")

    @override
    def rounded(
        self, products: Any, scale: float, xp: Any, places: Places | None = None
    ) -> tuple[Any, float]:
        logits = products * xp.float32(scale)
        return self._computed(logits, xp, places, "float32"), 1.0

    @override
    def errors(self, logits: Any, error: Any, xp: Any, places: Places) -> Any:
        names = RoundingErrors(xp, places.tensors)
        values = {**places.indices, SCORE: Rounded(logits, error)}
        found: Rounded = evaluate(self.tree, values, names)
        return found.error + 0 * logits

    def _computed(self, logits: Any, xp: Any, places: Places | None, dtype: str) -> Any:
        indices = {} if places is None else places.indices
        tensors = {} if places is None else places.tensors
        names = RealArrays(xp, tensors, dtype=dtype)
        return evaluate(self.tree, {**indices, SCORE: logits}, names)

    @property
    @override
    def tensors_read(self) -> frozenset[str]:
        return frozenset(one.name for one in parts(self.tree) if isinstance(one, Element))

    @property
    @override
    def words(self) -> str:
        return f"score: {self.score}"


def parse_score(text: str, tensors: Iterable[Tensor] = ()) -> Score:
    """Return the score function of a text; one that means another function is that one.

    Raises ExpressionError.
    """
    tensors = tuple(tensors)
    text, tree = parse(text, language(tensors))
    if SCORE not in variables_in(tree):
        raise ExpressionError(f"{text!r} does not depend on score")
    if tree == Variable(SCORE, Kind.REAL):
        return Score()
    cap = _cap(tree)
    return ExpressionScore(text, tensors) if cap is None else Softcap(cap)


def _cap(tree: Node) -> float | None:
    """Return c of c * tanh(score / c)."""
    match tree:
        case Operation(
            "real_multiply",
            (Real(cap), Operation("tanh", (inner,))) | (Operation("tanh", (inner,)), Real(cap)),
        ) if SMALLEST <= cap <= LARGEST:
            quotient = of_reals("multiply", (Variable(SCORE, Kind.REAL), Real(1.0 / cap)))
            return cap if inner == quotient else None
    return None


def _added(node: Node) -> Node | None:
    """Return the addend of a sum with the score; None for any other expression."""
    match node:
        case Operation("real_add" | "real_subtract" as name, (left, right)):
            for one, other in ((left, right), (right, left)):
                if SCORE in variables_in(other):
                    continue
                if name == "real_subtract":
                    if one is right:
                        return None  # the score is subtracted
                    other = of_reals("negative", (other,))
                if one == Variable(SCORE, Kind.REAL):
                    return other
                rest = _added(one)
                return None if rest is None else of_reals("add", (rest, other))
    return None


def scaled(node: Node, factor: Node) -> Node:
    """Return a tree times a factor, which goes where it costs nothing for each score."""
    match node:
        case Real():
            return of_reals("multiply", (factor, node))
        case Operation("real_multiply", (left, right)):
            if _is_of_score(left) and not _is_of_score(right):
                left, right = right, left
            return of_reals("multiply", (scaled(left, factor), right))
        case Operation("real_negative", (inner,)):
            return of_reals("negative", (scaled(inner, factor),))
        case Operation("real_add" | "real_subtract" as name, (left, right)):
            if all(map(_takes_factor, (left, right))):
                sides = (scaled(left, factor), scaled(right, factor))
                return of_reals(name.removeprefix("real_"), sides)
        case Operation("real_where", (condition, first, second)):
            if all(map(_takes_factor, (first, second))):
                return Operation(
                    "real_where", (condition, scaled(first, factor), scaled(second, factor))
                )
    return of_reals("multiply", (factor, node))


def _takes_factor(node: Node) -> bool:
    """Whether a factor goes into a part of the tree that is not of each score."""
    if not _is_of_score(node):
        return True
    match node:
        case Operation("real_multiply", sides):
            return any(map(_takes_factor, sides))
        case Operation("real_negative", (inner,)):
            return _takes_factor(inner)
        case Operation("real_add" | "real_subtract", sides):
            return all(map(_takes_factor, sides))
        case Operation("real_where", (_, first, second)):
            return _takes_factor(first) and _takes_factor(second)
    return False


def _is_of_score(node: Node) -> bool:
    """Whether it has to be computed for each score."""
    return bool(variables_in(node) & {KEY, SCORE})


def _with_factor(node: Node, factor: Node) -> Node:
    """Return a tree with the score times the factor for each score."""
    if node == Variable(SCORE, Kind.REAL):
        return of_reals("multiply", (node, factor))
    match node:  # a number joins the factor
        case Operation("real_multiply", (Variable(name), Real() as number)) if name == SCORE:
            return of_reals("multiply", (node.arguments[0], of_reals("multiply", (factor, number))))
    return rebuilt(node, lambda one: _with_factor(one, factor))
