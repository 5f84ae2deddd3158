"""The limits of a GPU and of a launch's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import ARCHITECTURES, capability_words, target_remedy
from fa4gen.runtime.refusal import refusal
from fa4gen.runtime.schedule import INT32_MAX

if TYPE_CHECKING:
    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.runtime.device import DeviceInfo


def check_device(plan: KernelPlan, device: DeviceInfo, argument: str = "query") -> None:
    """Refuse a GPU that does not run the kernel's architecture; ``argument`` is an array on it."""
    if not device.runs(plan.arch):
        raise refusal(
            argument,
            f"a tensor on {device}",
            f"a tensor on a GPU that runs {plan.arch}: of compute capability "
            f"{capability_words(ARCHITECTURES[plan.arch].runs_on)}",
            remedy="move the tensors to such a GPU, or for this one: "
            + target_remedy(device.compute_capability),
        )


def check_count(largest_count: int, multiprocessors: int) -> None:
    """Refuse a problem in which the kernel counts beyond 32 bits: see Schedule."""
    limit = INT32_MAX - multiprocessors  # a CTA that finds no tile left has incremented the counter
    if largest_count > limit:
        raise refusal(
            "query",
            f"a problem in which the kernel counts to {largest_count} (tiles, rows or keys)",
            f"at most {limit}",
            remedy="split the batch",
        )
