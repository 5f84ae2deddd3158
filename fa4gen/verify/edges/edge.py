"""Edges as data, and the cheapest cases that reach all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

RELATIONS: Final = {0: "on a boundary", 1: "one past a boundary", -1: "one before a boundary"}
"""The relations of an end to a boundary of a tile or block, by its distance."""
ODD_STRIDES: Final = "axes of one element with strides of odd sizes"
WHY_ODD_STRIDES: Final = "the launcher refuses strides that nothing steps by, or makes maps of them"
"""Both families have this edge."""

Item = TypeVar("Item")
AnyPlan = TypeVar("AnyPlan")


@dataclass(frozen=True)
class Edge:
    """A place of a problem where one kernel may be wrong and another right."""

    name: str
    why: str
    """The error that a kernel may make there."""
    impossible: str = ""
    """Why no problem reaches it, or none that the emulator can afford; "" where one does."""


@dataclass(frozen=True)
class Special(Generic[AnyPlan, Item]):
    """An edge that some plans have, which cases are at it, and a case that is."""

    name: str
    why: str
    concerns: Callable[[AnyPlan], bool]
    has: Callable[[AnyPlan, Item], bool]
    make: Callable[[AnyPlan], Item]
    impossible: Callable[[AnyPlan], str] = lambda _: ""

    def edge(self, plan: AnyPlan) -> Edge:
        """Return the edge of a plan that it concerns."""
        return Edge(self.name, self.why, self.impossible(plan))


@dataclass(frozen=True)
class Candidate(Generic[Item]):
    """A problem, the names of the edges that it reaches, and its cost in blocks."""

    item: Item
    reached: frozenset[str]
    cost: float


def cover(candidates: Sequence[Candidate[Item]], wanted: Set[str]) -> list[Candidate[Item]]:
    """Return candidates that reach all that is ``wanted`` and reached by any, cheap ones first.

    Greedy: each adds the most edges for its cost, and those that the others make needless go.
    """
    left = set(wanted) & {name for one in candidates for name in one.reached}
    chosen: list[Candidate[Item]] = []
    while left:
        best = max(candidates, key=lambda one: len(one.reached & left) / one.cost)
        chosen.append(best)
        left -= best.reached
    for one in sorted(chosen, key=lambda candidate: -candidate.cost):
        others = reached_by(other for other in chosen if other is not one)
        if (one.reached & wanted) <= others:
            chosen.remove(one)
    return sorted(chosen, key=lambda one: one.cost)


def reached_by(candidates: Iterable[Candidate[Item]]) -> set[str]:
    """Return the names of the edges that any of the candidates reaches."""
    return {name for one in candidates for name in one.reached}
