"""The one door from a config to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.registry import design_for

if TYPE_CHECKING:
    from fa4gen.config.schema import Config
    from fa4gen.designs.shared.plans import Plan


def build_plan(config: Config) -> Plan:
    """Return everything that follows from ``config``.

    Raises ConfigError, with the arithmetic and the key to change, for what cannot work.
    """
    plan: Plan = design_for(config).planner.load()(config)
    return plan
