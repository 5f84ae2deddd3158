"""A mask that a config writes as a condition on query and key, such as ``key <= query``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.expressions import c_text, exact
from fa4gen.expressions.arrays import Arrays
from fa4gen.expressions.c_text import C, Rank
from fa4gen.expressions.intervals import Interval, Intervals
from fa4gen.expressions.language import Language
from fa4gen.expressions.parse import parse_condition
from fa4gen.expressions.places import MOST_PLACES, OF_TILE
from fa4gen.expressions.ready import most_rows_of
from fa4gen.expressions.tree import (
    Element,
    Number,
    Operation,
    Variable,
    below,
    evaluate,
    parts,
    variables_in,
)
from fa4gen.expressions.words import FLOOR_DIVIDE, FLOOR_REMAINDER
from fa4gen.masks.hull import KEY, QUERY, Hull, hull_of, left_to_test, width_of
from fa4gen.masks.mask import Mask
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fa4gen.expressions.places import Places
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.expressions.tree import Node

LANGUAGE = Language(
    "a mask",
    "key <= query and query - key < 128",
    {
        name: Interval(-MOST_PLACES if name == QUERY else 0, MOST_PLACES)
        for name in (QUERY, KEY, "row", *OF_TILE)
    },
)
"""A query's index is that of the key on its diagonal, as in all masks; see ``mask``."""
FURTHEST = 2**30
"""Keys from the first that a bound may be: kernels add indices to it, and subtract them."""
PAIRS_AT_ONCE = 1 << 22
DIVISIONS = ("floor_divide", "remainder")
LARGEST_EDGE = 4096
"""Keys: verify's problems reach past numbers of a condition up to this."""


@dataclass(frozen=True)
class ExpressionMask(Mask):
    """A row sees the keys for which the condition holds; ``name`` is its text."""

    name: str = field(default="")

    WORD: ClassVar[str] = "expression"
    MEANING: ClassVar[str] = ""
    IS_EXPRESSION: ClassVar[bool] = True

    @cached_property
    def tree(self) -> Node:
        """The condition."""
        return parse_condition(self.name, LANGUAGE)[1]

    @cached_property
    def hull(self) -> Hull:
        """The interval of keys that each query sees, where the condition has one."""
        return hull_of(self.tree)

    @cached_property
    def _ends(self) -> Hull:
        """The hull with bounds limited to FURTHEST."""
        first, last = self.hull.first, self.hull.last
        return Hull(first and _limited(first), last and _limited(last), self.hull.exact)

    @cached_property
    def tested(self) -> Node | None:
        """The part of the condition that the hull does not express."""
        return left_to_test(self.tree)

    @cached_property
    @override
    def FIRST(self) -> str | None:  # type: ignore[override]  # noqa: N802
        return _bound_in_c(self._ends.first)

    @cached_property
    @override
    def LAST(self) -> str | None:  # type: ignore[override]  # noqa: N802
        return _bound_in_c(self._ends.last)

    @property
    @override
    def IN_ORDER(self) -> bool:  # type: ignore[override]  # noqa: N802
        return self.hull.last is not None and self.hull.first is None

    @cached_property
    @override
    def TEST(self) -> str | None:  # type: ignore[override]  # noqa: N802
        if self.tested is None:
            return None
        values = {name: C(f"terms.{name}", least=0) for name in OF_TILE}
        row = C("{query} - diagonal", Rank.SUM, least=0)
        values |= {QUERY: C("{query}"), KEY: C("{key}", least=0), "row": row}
        found: C = evaluate(self.tested, values, c_text)
        return found.text

    @cached_property
    @override
    def CERTAIN(self) -> str | None:  # type: ignore[override]  # noqa: N802
        if self.tested is None:
            return None
        rectangle = {
            QUERY: Interval(C("{first_query}"), C("{last_query}")),
            KEY: Interval(C("{first_key}", least=0), C("{last_key}", least=0)),
            "row": Interval(
                C("{first_query} - diagonal", Rank.SUM, least=0),
                C("{last_query} - diagonal", Rank.SUM, least=0),
            ),
        }
        for name in OF_TILE:
            one = C(f"terms.{name}", least=0)
            rectangle[name] = Interval(one, one)
        found: C = evaluate(self.tested, rectangle, Intervals(c_text)).certain
        return found.text

    @property
    @override
    def explained(self) -> tuple[str, ...]:
        query = {"position": "query"}
        ends = [
            f"{word} {bound.format(**query)}"
            for word, bound in (("from", self.FIRST), ("to", self.LAST))
            if bound is not None
        ]
        rows = [f"a query sees keys {' '.join(ends)}: blocks of others are not loaded"]
        if not ends:
            rows = [
                "neither end of a query's keys follows from the condition: no block is left out"
            ]
        if self.TEST is not None and self.CERTAIN is not None:
            names = {one: one for one in ("query", "key", "first_query", "last_query",
                                          "first_key", "last_key")}  # fmt: skip
            rows += [
                f"each score is kept if {self.TEST.format(**names)}",
                f"not tested in blocks where {self.CERTAIN.format(**names)}",
            ]
        return tuple(rows)

    @property
    @override
    def floor_functions(self) -> tuple[str, ...]:
        text = " ".join(one or "" for one in (self.FIRST, self.LAST, self.TEST, self.CERTAIN))
        return tuple(name for name in (FLOOR_DIVIDE, FLOOR_REMAINDER) if f"{name}(" in text)

    @override
    def first(self, position: Any) -> Any:
        assert self.hull.first is not None
        return _bound(self.hull.first, position)

    @override
    def last(self, position: Any) -> Any:
        assert self.hull.last is not None
        return _bound(self.hull.last, position)

    @cached_property
    @override
    def tile_names(self) -> frozenset[str]:
        tested = frozenset() if self.tested is None else variables_in(self.tested)
        return tested & frozenset(OF_TILE)

    @cached_property
    @override
    def reads_places(self) -> bool:
        names = variables_in(self.tree) - {QUERY, KEY}
        return bool(names) or any(isinstance(one, Element) for one in parts(self.tree))

    @cached_property
    @override
    def tensors_read(self) -> frozenset[str]:
        return frozenset(one.name for one in parts(self.tree) if isinstance(one, Element))

    @property
    @override
    def reads_by_key(self) -> bool:
        read = (one for one in parts(self.tree) if isinstance(one, Element))
        return any(KEY in variables_in(one) for one in read)

    @property
    @override
    def most_rows(self) -> int | None:
        return most_rows_of(self.name)

    @override
    def is_by_blocks(self, rows: int, keys: int) -> bool:
        blocks = {"row": rows, KEY: keys}
        return QUERY not in variables_in(self.tree) and _counts_by(self.tree, blocks)

    @override
    def sees_at(self, places: Places, xp: Any) -> Any:
        return evaluate(self.tree, places.indices, Arrays(xp, places.tensors))

    @override
    def sees_within(self, position: Any, key: Any, xp: Any) -> Any:
        return evaluate(self.tree, {QUERY: position, KEY: key}, Arrays(xp))

    @override
    def sees_all(self, positions: range, keys: range) -> bool:
        rectangle = {
            **LANGUAGE.variables,
            QUERY: Interval(positions[0], positions[-1]),
            KEY: Interval(keys[0], keys[-1]),
        }
        if self.tested is None:
            return True
        return bool(evaluate(self.tested, rectangle, Intervals(exact)).certain)

    @property
    def reach(self) -> int:
        """The part of 32 bits above MOST_PLACES."""
        return 2**31 - 1 - MOST_PLACES

    @property
    @override
    def span(self) -> int | None:
        return width_of(self.hull)

    @override
    def pairs(self, rows: int) -> float:
        import numpy as np  # not with the module: rendering does without

        if self.reads_places:  # as if it hid nothing between the two ends
            return float(sum(len(self.seen(row, rows, rows)) for row in range(rows)))
        keys, step = np.arange(rows), max(1, PAIRS_AT_ONCE // max(rows, 1))
        return float(
            sum(
                int(np.count_nonzero(self.sees_within(keys[i : i + step, None], keys, np)))
                for i in range(0, rows, step)
            )
        )

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield more keys and fewer than rows, and rows around each number of the condition."""
        yield from self.small_sizes()
        yield 700, 1500
        yield 1300, 650
        for number in self._numbers():
            yield number + 130, number + 130
            yield 300, 2 * number + 77

    def small_sizes(self) -> Iterator[tuple[int, int]]:
        """Yield more keys than rows, rows before the first key, keys past each number."""
        yield 70, 400
        yield 300, 190
        for number in self._numbers():
            yield 70, number + 101

    def _numbers(self) -> tuple[int, ...]:
        """Return the numbers of the condition at which a problem of common size may differ."""
        found = {one.value for one in parts(self.tree) if isinstance(one, Number)}
        return tuple(sorted(one for one in found if 16 <= one <= LARGEST_EDGE))


def _limited(bound: Node) -> Node:
    """Return a bound that means the same keys and is FURTHEST away at most."""
    ends = evaluate(bound, {QUERY: LANGUAGE.variables[QUERY]}, Intervals(exact))
    if isinstance(bound, Number):
        return Number(max(-FURTHEST, min(bound.value, FURTHEST)))
    if ends.high > FURTHEST:
        bound = Operation("minimum", (bound, Number(FURTHEST)))
    if ends.low < -FURTHEST:
        bound = Operation("maximum", (bound, Number(-FURTHEST)))
    return bound


def check_tensors(text: str, tensors: Iterable[Tensor]) -> frozenset[str]:
    """Return the names of the tensors that a condition reads; ExpressionError for wrong ones."""
    declared = {one.name: one for one in tensors}
    _, tree = parse_condition(text, replace(LANGUAGE, tensors=declared))
    return frozenset(one.name for one in parts(tree) if isinstance(one, Element))


def parse_mask(text: str) -> ExpressionMask:
    """Return the mask of a condition; ValueError describes an error in it."""
    return ExpressionMask(parse_condition(text, LANGUAGE)[0])


def _counts_by(node: Node, blocks: Mapping[str, int]) -> bool:
    """Return whether each of some variables is there only as the number of its block."""
    match node:
        case Variable(name):
            return name not in blocks
        case Operation("floor_divide", (Variable(name), Number(divisor))) if name in blocks:
            return int(divisor) % blocks[name] == 0
    return all(_counts_by(one, blocks) for one in below(node))


def _is_power_of_two(divisor: Node) -> bool:
    return isinstance(divisor, Number) and int(divisor.value).bit_count() == 1


def _bound_in_c(bound: Node | None) -> str | None:
    if bound is None:
        return None
    found: C = evaluate(bound, {QUERY: C("{position}", Rank.SUM)}, c_text)
    return found.text


def _bound(bound: Node, position: Any) -> Any:
    if isinstance(position, int):
        return evaluate(bound, {QUERY: position}, exact)
    import numpy as np

    return evaluate(bound, {QUERY: position}, Arrays(np)) + 0 * position
