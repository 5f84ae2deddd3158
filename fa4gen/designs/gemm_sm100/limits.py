"""The hardware's limits on a Blackwell matrix product, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.refusal import Changes
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
    from fa4gen.designs.gemm_sm100.memory import BlackwellGemmMemory

DECIDED_TOGETHER = (
    "num_stages",
    "BK",
    "BN",
    "num_out_stages",
    "num_epi_stages",
    "num_accum_stages",
    "stage_stride_cols",
    "cta_group",
)
"""Keys that share out shared memory and tensor memory; each may be left to the plan."""


def exceeded_limits(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    """Yield each limit that the plan exceeds."""
    yield from _tensor_memory(plan)
    yield from _shared_memory(plan)


def _tensor_memory(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    needed, available = plan.columns_needed, plan.hardware.tensor_memory_columns
    stages, stride = plan.num_accum_stages, plan.stage_stride_cols
    shared = f", {plan.overlap_columns} columns wider" * bool(plan.overlap_columns)
    slots, wide = plan.num_scale_stages, plan.block_scales.tensor_columns
    scales = f" and {slots} * {wide} columns of scales" if slots else ""
    fault = Refusal(
        kind="tensor memory",
        message=f"tensor memory: {stages} accumulators, {stride} columns apart{shared}{scales}, "
        f"take {needed} columns, {available} available",
        keys=("num_accum_stages", "stage_stride_cols", "BN"),
        remedies=(
            ({"num_accum_stages": n} for n in range(stages - 1, 0, -1)),
            narrower(plan),
            [{"stage_stride_cols": "auto"}] if plan.config.stage_stride_cols != "auto" else [],
        ),
        last_resort=back_to_auto(plan.config),
    )
    yield from limits.exceeded(fault, needed, available)


def _shared_memory(plan: BlackwellGemmMemory) -> Iterator[Refusal]:
    yield from limits.shared_memory(
        plan,
        (plan.ring.key, "BK", "BN", "num_out_stages", "num_epi_stages"),
        (
            plan.ring.fewer(plan.config),
            ({"BK": n} for n in (128, 64) if n < plan.BK),
            narrower(plan),
        ),
        back_to_auto(plan.config),
    )


def narrower(plan: BlackwellGemmMemory) -> Iterator[Changes]:
    """Yield narrower tiles."""
    return ({"BN": n} for n in (192, 128, 64) if n < plan.BN)


def back_to_auto(config: BlackwellGemmConfig) -> Iterator[Changes]:
    """Yield changes that leave keys to the plan, fewest first; all of them always suffice."""
    return limits.back_to_auto(config, DECIDED_TOGETHER)
