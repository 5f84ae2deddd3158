"""The facts of a plan, wherever a value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fa4gen.designs.common.kernel_model import KernelPlan


def facts(plan: KernelPlan) -> dict[str, Any]:
    """Return what a manifest has of ``plan``, without the origin of each value."""
    return {name: value for name, value in plan.recorded if name != "choices"}
