"""Refusals of configs, chips and problems that cannot be tuned, before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem
from fa4gen.tune.family import family_of
from fa4gen.tune.model.chips import known_chip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.plans import Plan


def refuse_impossible(plan: Plan, problems: Sequence[Any], chip: str) -> None:
    """Raise ConfigError for a kernel or chip that no model knows, or with all wrong problems.

    Two problems are wrong that calls do not tell apart, such as two draws of as many rows.
    """
    family = family_of(plan)
    family.refuse(plan)
    known_chip(plan.arch, chip)
    found: list[Problem] = []
    by_extents: dict[tuple[int, ...], Any] = {}
    for problem in problems:
        try:
            family.refuse_problem(plan, problem)
        except ConfigError as error:
            found += error.problems
        extents = tuple(family.call_extents(plan, problem).values())
        other = by_extents.setdefault(extents, problem)
        if other != problem:
            found.append(_same_calls(family.word(other), family.word(problem)))
    if found:
        raise ConfigError(*found)


def _same_calls(one: str, other: str) -> Problem:
    return Problem(
        f"{one} and {other}: calls of both have arrays of the same shapes, and a table picks "
        "kernels by these",
        "Tune for one of them, or for each into a table of its own (--out).",
    )
