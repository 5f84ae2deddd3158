"""Refusals of configs, chips and problems that cannot be tuned, before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError
from fa4gen.tune.family import family_of
from fa4gen.tune.model.chips import known_chip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.plans import Plan
    from fa4gen.errors import Problem


def refuse_impossible(plan: Plan, problems: Sequence[Any], chip: str) -> None:
    """Raise ConfigError for a kernel or chip that no model knows, or with all wrong problems."""
    family = family_of(plan)
    family.refuse(plan)
    known_chip(plan.arch, chip)
    found: list[Problem] = []
    for problem in problems:
        try:
            family.refuse_problem(plan, problem)
        except ConfigError as error:
            found += error.problems
    if found:
        raise ConfigError(*found)
