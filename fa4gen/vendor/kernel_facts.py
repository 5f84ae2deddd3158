"""The facts of one kernel for the C templates, by its family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.vendor.family import family_of
from fa4gen.vendor.launcher import shared_facts

if TYPE_CHECKING:
    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendor.launcher import LauncherFacts
    from fa4gen.vendor.selftest_facts import SelftestFacts


def launcher_facts(plan: Plan) -> LauncherFacts:
    """Return the launcher's facts of ``plan``."""
    return family_of(plan).launcher_facts(plan, shared_facts(plan))


def selftest_facts(plan: Plan) -> SelftestFacts:
    """Return the facts of ``plan``'s kernel."""
    return family_of(plan).selftest_facts(plan)
