"""Traits of merging kernels: what selects one, and the cost of a problem."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.vendoring.binding import Problem


def traits(plan: MergePlan) -> tuple[object, ...]:
    """Return the properties that a caller can choose, except dtypes and architecture."""
    return plan.depth, plan.lse


def set_traits(problem: Problem, plan: MergePlan) -> None:
    """The fields that the launcher states of the kernel."""
    problem.family = 3
    problem.depth, problem.lse = plan.depth, plan.lse


def tiles(plan: MergePlan, problem: Problem, multiprocessors: int) -> tuple[int, Fraction]:
    """Nothing: a problem does not say how many parts and heads there are."""
    del plan, problem, multiprocessors
    return 0, Fraction(0)


def extents(data: Any) -> dict[str, int]:
    """Return the extents of a random problem."""
    return {"batch": data.draw(st.integers(1, 40))}
