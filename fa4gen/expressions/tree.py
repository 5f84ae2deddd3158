"""The tree of a checked expression, and the one walk that computes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Kind(Enum):
    """What a part of an expression is."""

    TRUTH = "a condition"
    WHOLE = "a whole number"


@dataclass(frozen=True)
class Number:
    """A whole number as it is written."""

    value: int

    @property
    def kind(self) -> Kind:
        """See Kind."""
        return Kind.WHOLE


@dataclass(frozen=True)
class Variable:
    """An index, such as the query row's."""

    name: str

    @property
    def kind(self) -> Kind:
        """See Kind."""
        return Kind.WHOLE


@dataclass(frozen=True)
class Operation:
    """An operation; its name is that of NumPy's function, such as ``floor_divide``."""

    name: str
    arguments: tuple[Node, ...]

    @property
    def kind(self) -> Kind:
        """See Kind."""
        return Kind.TRUTH if self.name in CONDITIONS else self.arguments[-1].kind


Node = Number | Variable | Operation

CONDITIONS = frozenset(
    {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
    | {"logical_and", "logical_or", "logical_not"}
)
"""Operations whose result is a condition."""


def evaluate(node: Node, variables: Mapping[str, Any], names: Any) -> Any:
    """Compute a tree. ``names`` has a function for each operation's name, and ``number``."""
    match node:
        case Number(value):
            return names.number(value)
        case Variable(name):
            return variables[name]
        case Operation(name, arguments):
            return getattr(names, name)(*(evaluate(one, variables, names) for one in arguments))


def parts(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    if isinstance(node, Operation):
        for one in node.arguments:
            yield from parts(one)


def variables_in(node: Node) -> frozenset[str]:
    """Return the names of the variables in a tree."""
    return frozenset(one.name for one in parts(node) if isinstance(one, Variable))


def add(left: Node, right: Node) -> Node:
    """Return the sum, without a 0 in it."""
    if left == Number(0):
        return right
    return left if right == Number(0) else Operation("add", (left, right))


def times(factor: int, node: Node) -> Node:
    """Return the product with a number."""
    if factor == 1:
        return node
    return Number(0) if factor == 0 else Operation("multiply", (Number(factor), node))
