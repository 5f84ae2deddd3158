"""The hardware's limits on a Blackwell matrix product, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes
from fa4gen.designs.gemm_sm100.memory import gemm_regions
from fa4gen.designs.gemm_sm100.tensor_memory import columns_needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.refusal import Changes
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
    from fa4gen.designs.gemm_sm100.values import Values

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


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    yield from _tensor_memory(values)
    yield from _shared_memory(values)


def _tensor_memory(values: Values) -> Iterator[Refusal]:
    needed, available = columns_needed(values), values.arch.tensor_memory_columns
    stages, stride = values.num_accum_stages, values.stage_stride_cols
    shared = f", {values.overlap_columns} columns wider" * bool(values.overlap_columns)
    slots, wide = values.num_scale_stages, values.scales.tensor_columns
    scales = f" and {slots} * {wide} columns of scales" if slots else ""
    fault = Refusal(
        kind="tensor memory",
        message=f"tensor memory: {stages} accumulators, {stride} columns apart{shared}{scales}, "
        f"take {needed} columns, {available} available",
        keys=("num_accum_stages", "stage_stride_cols", "BN"),
        remedies=(
            ({"num_accum_stages": n} for n in range(stages - 1, 0, -1)),
            narrower(values),
            [{"stage_stride_cols": "auto"}] if values.config.stage_stride_cols != "auto" else [],
        ),
        last_resort=back_to_auto(values.config),
    )
    yield from limits.exceeded(fault, needed, available)


def _shared_memory(values: Values) -> Iterator[Refusal]:
    needed = dynamic_shared_bytes(gemm_regions(values))
    stages, out, residual = values.num_stages, values.num_out_stages, values.num_epi_stages
    ring = stages * values.stage_bytes
    of_scales = values.scales.a_bytes + values.scales.b_bytes
    scales = f" + {of_scales}" * bool(of_scales)
    slots = out * values.out_bytes + residual * values.residual_bytes
    parts = [
        f"{stages} * ({values.a_bytes} + {values.b_bytes}{scales}) for stages of A and B"
        + " with scales" * bool(of_scales),
        f"{out} * {values.out_bytes} for the output",
    ]
    if residual:
        parts.append(f"{residual} * {values.residual_bytes} for the residual")
    parts.append(f"{needed - ring - slots} for barriers and alignment")
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        parts,
        ("num_stages", "BK", "BN", "num_out_stages", "num_epi_stages"),
        (
            ({"num_stages": n} for n in range(stages - 1, 0, -1)),
            ({"BK": n} for n in (128, 64) if n < values.BK),
            narrower(values),
        ),
        back_to_auto(values.config),
    )


def narrower(values: Values) -> Iterator[Changes]:
    """Yield narrower tiles."""
    return ({"BN": n} for n in (192, 128, 64) if n < values.BN)


def back_to_auto(config: BlackwellGemmConfig) -> Iterator[Changes]:
    """Yield changes that leave keys to the plan, fewest first; all of them always suffice."""
    return limits.back_to_auto(config, DECIDED_TOGETHER)
