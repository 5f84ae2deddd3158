"""What a GPU can run, and what a launch can count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import refusal
from fa4gen.runtime.schedule import INT32_MAX

if TYPE_CHECKING:
    from fa4gen.designs.shared.kernel_model import KernelPlan
    from fa4gen.runtime.device import DeviceInfo


def check_device(plan: KernelPlan, device: DeviceInfo, argument: str = "query") -> None:
    """Refuse a GPU that does not run the kernel's architecture; ``argument`` is what is on it."""
    if not device.runs(plan.arch):
        raise refusal(
            argument,
            f"a tensor on {device}",
            f"a tensor on a GPU that runs {plan.arch}",
            remedy="move the tensors to such a GPU, or generate the kernel for this one",
        )


def check_tiles(num_tiles: int, multiprocessors: int) -> None:
    """Refuse more tiles than the kernel's 32-bit counter can number."""
    limit = INT32_MAX - multiprocessors  # a CTA that finds no tile left has incremented the counter
    if num_tiles > limit:
        raise refusal(
            "query",
            f"{num_tiles} tiles of query rows",
            f"at most {limit}",
            remedy="split the batch",
        )
