"""Data that groups of instructions, checks and timeline keep with a warpgroup, CTA or cluster.

The classes of the machine need not know of it: a key with a type is defined next to the code that
uses it, and each object has one value for it, made at the first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

State: TypeAlias = "dict[Attached[Any, Any], Any]"


class Keeps(Protocol):
    """Something to which values are attached."""

    state: State


OwnerT = TypeVar("OwnerT", bound=Keeps)
ValueT = TypeVar("ValueT")


class Attached(Generic[OwnerT, ValueT]):
    """A value that every owner has; ``make`` returns its first one."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[OwnerT], ValueT]) -> None:
        self._make = make

    def of(self, owner: OwnerT) -> ValueT:
        """The owner's value, made now if it has none."""
        try:
            value: ValueT = owner.state[self]
        except KeyError:
            value = owner.state[self] = self._make(owner)
        return value

    def known(self, owner: OwnerT) -> ValueT | None:
        """The owner's value, None before its first use."""
        return owner.state.get(self)

    def set(self, owner: OwnerT, value: ValueT) -> None:
        """Replace the owner's value."""
        owner.state[self] = value
