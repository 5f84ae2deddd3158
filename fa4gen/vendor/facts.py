"""What the C templates read of each kernel: facts of the plan, in the words of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.vendor.kernel_facts import launcher_facts, selftest_facts

if TYPE_CHECKING:
    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendor.launcher import LauncherFacts
    from fa4gen.vendor.model import PlannedKernel
    from fa4gen.vendor.selftest_facts import SelftestFacts


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
