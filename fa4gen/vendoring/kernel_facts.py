"""Facts of one kernel for the C templates, in the words of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.vendoring.family import family_of
from fa4gen.vendoring.launcher_facts import shared_facts

if TYPE_CHECKING:
    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendoring.launcher_facts import LauncherFacts
    from fa4gen.vendoring.model import PlannedKernel
    from fa4gen.vendoring.selftest_facts import SelftestFacts


@dataclass(frozen=True)
class KernelFacts:
    """A kernel as the templates of the launcher see it."""

    name: str
    symbol: str
    arch: str
    family: str
    """The config key ``kernel``: "attention", say."""
    summary: str
    """One line."""
    lines: tuple[str, ...]
    """The resolved parameters in words."""
    plan: Plan
    launcher: LauncherFacts
    selftest: SelftestFacts


def kernel_facts(kernel: PlannedKernel) -> KernelFacts:
    """Return the facts of ``kernel``."""
    plan = kernel.plan
    return KernelFacts(
        name=kernel.name,
        symbol=kernel.symbol,
        arch=plan.arch,
        family=plan.kernel,
        summary=plan.summary[0],
        lines=plan.summary,
        plan=plan,
        launcher=launcher_facts(plan),
        selftest=selftest_facts(plan),
    )


def launcher_facts(plan: Plan) -> LauncherFacts:
    """Return the launcher's facts of ``plan``."""
    return family_of(plan).launcher_facts(plan, shared_facts(plan))


def selftest_facts(plan: Plan) -> SelftestFacts:
    """Return the facts of ``plan``'s kernel."""
    return family_of(plan).selftest_facts(plan)
