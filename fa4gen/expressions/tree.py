"""The tree of a checked expression, and the one walk that computes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Kind(Enum):
    """The kind of a part of an expression."""

    TRUTH = "a condition"
    WHOLE = "a whole number"
    REAL = "a float"


@dataclass(frozen=True)
class Number:
    """A whole number as it is written."""

    value: int

    @property
    def kind(self) -> Kind:
        """The kind of the number."""
        return Kind.WHOLE


@dataclass(frozen=True)
class Real:
    """A number with a fraction."""

    value: float

    @property
    def kind(self) -> Kind:
        """The kind of the number."""
        return Kind.REAL


@dataclass(frozen=True)
class Variable:
    """An index, such as the query row's, or the score."""

    name: str
    kind: Kind = Kind.WHOLE


@dataclass(frozen=True)
class Element:
    """An element of a declared tensor; an index outside of it is that of the nearest element."""

    name: str
    indices: tuple[Node, ...]
    kind: Kind = Kind.WHOLE


@dataclass(frozen=True)
class Operation:
    """An operation; its name is that of NumPy's function, such as ``floor_divide``."""

    name: str
    arguments: tuple[Node, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the result."""
        if self.name in CONDITIONS:
            return Kind.TRUTH
        return Kind.REAL if self.name == TO_REAL else self.arguments[-1].kind


Node = Number | Real | Variable | Element | Operation

TO_REAL = "to_real"
"""Makes a float of a whole number."""
COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})

CONDITIONS = (
    COMPARISONS
    | {f"real_{name}" for name in COMPARISONS}
    | {"logical_and", "logical_or", "logical_not"}
)
"""Operations that result in a condition."""


def evaluate(node: Node, variables: Mapping[str, Any], names: Any) -> Any:
    """Compute a tree. ``names`` has a function for each operation's name, and ``number``."""
    match node:
        case Number(value):
            return names.number(value)
        case Real(value):
            return names.real(value)
        case Variable(name):
            return variables[name]
        case Element(name, indices):
            return names.element(name, *(evaluate(one, variables, names) for one in indices))
        case Operation(name, arguments):
            return getattr(names, name)(*(evaluate(one, variables, names) for one in arguments))


def parts(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    for one in below(node):
        yield from parts(one)


def below(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node."""
    match node:
        case Operation(_, arguments):
            return arguments
        case Element(_, indices):
            return indices
    return ()


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the node with ``change`` of each thing that it is made of."""
    match node:
        case Operation(name, arguments):
            return Operation(name, tuple(map(change, arguments)))
        case Element(name, indices, kind):
            return Element(name, tuple(map(change, indices)), kind)
    return node


def substituted(node: Node, name: str, by: Node) -> Node:
    """Return the node with ``by`` in place of a variable."""
    if isinstance(node, Variable) and node.name == name:
        return by
    return rebuilt(node, lambda one: substituted(one, name, by))


def variables_in(node: Node) -> frozenset[str]:
    """Return the names of the variables in a tree."""
    return frozenset(one.name for one in parts(node) if isinstance(one, Variable))


def written(node: Node) -> int:
    """Count the names and numbers of a tree."""
    return sum(map(written, below(node))) or 1


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
