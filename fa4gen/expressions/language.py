"""The names and functions that an expression may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.expressions.real_intervals import Range, real_intervals
from fa4gen.expressions.tree import Kind, evaluate
from fa4gen.expressions.words import FUNCTIONS, OF_FLOATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.intervals import Interval
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.expressions.tree import Node

LARGEST_ELEMENT = 2.0**20
"""The largest element of tensors of floats: a larger one is not refused, and may make scores
infinite."""


@dataclass(frozen=True)
class Language:
    """The name of a kind of expression, and the indices that it may name."""

    what: str
    """With its article, such as "a mask"."""
    example: str
    variables: Mapping[str, Interval | Range]
    """Each with the numbers from which to which it may be."""
    result: Kind = Kind.TRUTH
    tensors: Mapping[str, Tensor] | None = None
    """The declared ones; None: any name may be a tensor of int32."""
    of_floats: tuple[str, ...] = OF_FLOATS
    """Functions of one float, where there are floats."""
    macros: Mapping[str, Node] = field(default_factory=dict)
    """Functions of one float by what they mean: trees over the variable ``x``."""
    only_floats: bool = False
    """Every number is a float of any size: only constants are checked."""

    @property
    def has_floats(self) -> bool:
        """Whether there are numbers with fractions."""
        return self.result is Kind.REAL

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that may be called."""
        common = (name for name in FUNCTIONS if not (self.only_floats and name == "bit"))
        return (*common, *(self.of_floats if self.has_floats else ()), *self.macros)

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of the declared tensors."""
        return tuple(self.tensors or ())

    def reach(self, node: Node) -> Any:
        """Return the interval of a tree."""
        elements = {
            name: Range(-LARGEST_ELEMENT, LARGEST_ELEMENT)
            for name, tensor in (self.tensors or {}).items()
            if tensor.kind is Kind.REAL
        }
        return evaluate(node, self.variables, real_intervals(elements))
