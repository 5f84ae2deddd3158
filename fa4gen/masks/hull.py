"""From a condition on query and key to the interval of keys that each query sees.

Most masks bound a row's keys from one side or both: ``key <= query`` from above, ``query - key <
128`` from below. Those bounds, as trees over the query alone that never fall, are the hull. Blocks
outside of it are not loaded. Where the hull is the whole condition it is exact, and nothing else
has to be tested; else scores within it are tested one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.expressions.tree import Kind, Number, Operation, Variable, add, times, variables_in

if TYPE_CHECKING:
    from fa4gen.expressions.tree import Node

QUERY, KEY = "query", "key"
_SWAPPED = {"less": "greater", "less_equal": "greater_equal", "equal": "equal"}
_SWAPPED |= {right: left for left, right in _SWAPPED.items()}
_INVERTED = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}


@dataclass(frozen=True)
class Hull:
    """Bounds of the keys that a query sees; None for a missing bound."""

    first: Node | None = None
    last: Node | None = None
    exact: bool = False
    """Every key between the bounds is seen."""


@dataclass(frozen=True)
class _Linear:
    """query * ``query`` + key * ``key`` + ``number``."""

    query: int = 0
    key: int = 0
    number: int = 0

    def plus(self, other: _Linear, factor: int = 1) -> _Linear:
        return _Linear(
            self.query + factor * other.query,
            self.key + factor * other.key,
            self.number + factor * other.number,
        )

    def of_query(self, factor: int) -> Node:
        """Return the tree of its terms without the key, times ``factor``."""
        return add(times(factor * self.query, Variable(QUERY)), Number(factor * self.number))


def left_to_test(condition: Node) -> Node | None:
    """Return the part of a condition that its hull leaves out; None where the hull is exact."""
    match condition:
        case Operation("logical_and", (left, right)):
            sides = [one for one in map(left_to_test, (left, right)) if one is not None]
            return (
                Operation("logical_and", (sides[0], sides[1]))
                if sides[1:]
                else next(iter(sides), None)
            )
    return None if hull_of(condition).exact else condition


def hull_of(condition: Node) -> Hull:
    """Return the hull of a condition."""
    match condition:
        case Operation("logical_and", (left, right)):
            return _both(hull_of(left), hull_of(right))
        case Operation("logical_or", (left, right)):
            return _either(hull_of(left), hull_of(right))
        case Operation("logical_not", (inner,)):
            return _negated(inner)
        case Operation(name, (left, right)):
            return _compared(name, left, right)
    return Hull()


def _both(left: Hull, right: Hull) -> Hull:
    first = _joined("maximum", left.first, right.first)
    last = _joined("minimum", left.last, right.last)
    return Hull(first, last, left.exact and right.exact)


def _either(left: Hull, right: Hull) -> Hull:
    """Two bounds of the same side leave one; two intervals may leave a gap between them."""
    firsts, lasts = (left.first, right.first), (left.last, right.last)
    first = None if None in firsts else _joined("minimum", *firsts)
    last = None if None in lasts else _joined("maximum", *lasts)
    one_sided = firsts == (None, None) or lasts == (None, None)
    return Hull(first, last, left.exact and right.exact and one_sided)


def _joined(name: str, left: Node | None, right: Node | None) -> Node | None:
    if left is None or right is None:
        return left or right
    return _one_of(name, left, right) or Operation(name, (left, right))


def _one_of(name: str, left: Node, right: Node) -> Node | None:
    """Return the minimum or maximum of bounds that are as far from each other for every query."""
    one, other = _linear(left), _linear(right)
    if one is not None and other is not None:
        if one.query != other.query:
            return None
        larger = one.number > other.number
        return left if larger == (name == "maximum") else right
    match left:
        case Operation(again, (first, second)) if again == name:
            joined = _one_of(name, second, right)
            if joined is not None:
                return _joined(name, first, joined)
            joined = _one_of(name, first, right)
            return None if joined is None else _joined(name, joined, second)
    return left if left == right else None


def _negated(inner: Node) -> Hull:
    match inner:
        case Operation("logical_not", (one,)):
            return hull_of(one)
        case Operation("logical_and" | "logical_or" as name, (left, right)):
            other = "logical_or" if name == "logical_and" else "logical_and"
            sides = tuple(Operation("logical_not", (one,)) for one in (left, right))
            return hull_of(Operation(other, sides))
        case Operation(name, (left, right)) if name in _INVERTED:
            return hull_of(Operation(_INVERTED[name], (left, right)))
    return Hull()


def _compared(name: str, left: Node, right: Node) -> Hull:
    if name == "not_equal":
        return Hull()
    distance = left if isinstance(left, Operation) and left.name == "absolute" else None
    if distance is not None and name in ("less", "less_equal"):
        # |x| < y is x < y and -x < y
        [inner] = distance.arguments
        return _both(
            _compared(name, inner, right), _compared(name, Operation("negative", (inner,)), right)
        )
    if isinstance(right, Operation) and right.name == "absolute" and name in _SWAPPED:
        return _compared(_SWAPPED[name], right, left) if name.startswith("greater") else Hull()
    one, other = _linear(left), _linear(right)
    if one is not None and other is not None:
        return _of_linear(name, one.plus(other, -1))
    if KEY in variables_in(right):
        left, right, name = right, left, _SWAPPED[name]
    return _of_quotient(name, left, right)


def _of_linear(name: str, terms: _Linear) -> Hull:
    """Return the keys for which ``terms`` compared with 0 hold."""
    if terms.key not in (1, -1):
        return Hull()
    if terms.key == -1:
        terms, name = _Linear().plus(terms, -1), _SWAPPED[name]
    if terms.query > 0:
        return Hull()  # the bound would fall from one row to the next
    bound = terms.of_query(-1)  # key compared with it
    return _bounded(name, bound, bound)


def _bounded(name: str, low: Node, high: Node) -> Hull:
    """Return the hull of a key compared with a value from ``low`` to ``high``."""
    match name:
        case "less":
            return Hull(last=_plus(low, -1), exact=True)
        case "less_equal":
            return Hull(last=high, exact=True)
        case "greater":
            return Hull(first=_plus(high, 1), exact=True)
        case "greater_equal":
            return Hull(first=low, exact=True)
    return Hull(low, high, exact=True)


def _plus(node: Node, number: int) -> Node:
    match node:
        case Number(value):
            return Number(value + number)
        case Operation("add", (inner, Number(value))):
            return add(inner, Number(value + number))
    return add(node, Number(number))


def _of_quotient(name: str, left: Node, right: Node) -> Hull:
    """Return the hull of (key + c) // n compared with a bound that never falls as queries grow."""
    match left:
        case Operation("floor_divide", (inner, Number(divisor))):
            terms = _linear(inner)
            if terms is None or (terms.query, terms.key) != (0, 1) or not _never_falls(right):
                return Hull()
            low = _plus(times(divisor, right), -terms.number)
            return _bounded(name, low, _plus(low, divisor - 1))
        case Variable(variable) if variable == KEY and _never_falls(right):
            return _bounded(name, right, right)
    return Hull()


def _never_falls(node: Node) -> bool:
    """Whether a tree has no key in it and does not fall as the query grows."""
    if KEY in variables_in(node) or node.kind is Kind.TRUTH:
        return False
    match node:
        case Number():
            return True
        case Variable(name):
            return name == QUERY
        case Operation("add" | "minimum" | "maximum", (left, right)):
            return _never_falls(left) and _never_falls(right)
        case Operation("floor_divide", (inner, Number())):
            return _never_falls(inner)
        case Operation("subtract", (left, Number())):
            return _never_falls(left)
        case Operation("multiply", (Number(value), inner) | (inner, Number(value))):
            return value >= 0 and _never_falls(inner)
    terms = _linear(node)
    return terms is not None and terms.query >= 0


def _linear(node: Node) -> _Linear | None:
    """Return a tree as a linear one, where it is one of query and key alone."""
    match node:
        case Number(value):
            return _Linear(number=value)
        case Variable(name):
            return {QUERY: _Linear(query=1), KEY: _Linear(key=1)}.get(name)
        case Operation("floor_divide", (inner, Number(1))):
            return _linear(inner)
        case Operation("negative", (inner,)):
            found = _linear(inner)
            return None if found is None else _Linear().plus(found, -1)
        case Operation("add" | "subtract" as name, (left, right)):
            one, other = _linear(left), _linear(right)
            if one is None or other is None:
                return None
            return one.plus(other, 1 if name == "add" else -1)
        case Operation("multiply", (left, right)):
            one, other = _linear(left), _linear(right)
            if one is None or other is None:
                return None
            if one.query or one.key:
                one, other = other, one
            if one.query or one.key:
                return None
            return _Linear().plus(other, one.number)
    return None


def width_of(hull: Hull) -> int | None:
    """Return how many keys lie between the bounds, where that is the same for every query."""
    if hull.first is None or hull.last is None:
        return None
    first, last = _linear(hull.first), _linear(hull.last)
    if first is None or last is None or first.query != last.query:
        return None
    return max(0, last.number - first.number + 1)


def distance_from_query(bound: Node) -> int | None:
    """Return how far a bound is from the query, where that is the same for every query."""
    terms = _linear(bound)
    return terms.number if terms is not None and (terms.query, terms.key) == (1, 0) else None
