"""The one door from a config to its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.candidates import changed, left_to_plan, relaxations
from fa4gen.designs.common.model import Choice
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.registry import design_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.candidates import Changes
    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.plans import Plan

COMPILED = "the first candidate that compiled clean"


def build_plan(config: KernelConfig, chosen: Mapping[str, object] | None = None) -> Plan:
    """Return everything that follows from ``config``.

    ``chosen``: values for keys that it leaves to the plan, of a candidate that a compiler took;
    without, the plan is that of the first candidate. Raises ConfigError, with the arithmetic and
    the key to change, for what cannot work.
    """
    if not chosen:
        return _planned(config)
    plan = _planned(changed(config, chosen))
    choices = tuple(
        Choice(row.key, row.value, "auto", COMPILED) if row.key in chosen else row
        for row in plan.choices
    )
    return replace(plan, choices=choices)


def _planned(config: KernelConfig) -> Plan:
    design = design_for(config)
    plan: Plan = design.planner.load()(config)
    if design.find_faults(plan):
        refuse_faults(config)
    return plan


def candidates_of(config: KernelConfig) -> Iterator[Changes]:
    """Yield candidates where ``config`` leaves keys to the plan: first its own tables."""
    seen: list[Changes] = [{}]
    yield {}
    for tried in design_for(config).candidates(config):
        changes = left_to_plan(config, tried)
        if changes not in seen:
            seen.append(changes)
            yield changes


def relaxations_of(config: KernelConfig) -> tuple[list[Changes], ...]:
    """Return changes of ``config`` after which a compiler may take it: see ``relaxations``."""
    return relaxations(config, design_for(config).tuned_keys)
