"""The plan of a matrix product on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import gemm_parameters
from fa4gen.designs.common.plan_fields import Tables, gemm_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.gemm_sm100.barriers import gemm_barriers
from fa4gen.designs.gemm_sm100.limits import exceeded_limits
from fa4gen.designs.gemm_sm100.memory import gemm_regions, most_stages
from fa4gen.designs.gemm_sm100.model import BlackwellGemmPlan
from fa4gen.designs.gemm_sm100.rules import broken_rules
from fa4gen.designs.gemm_sm100.tables import gemm_roles, gemm_tensor_maps, summarise
from fa4gen.designs.gemm_sm100.tensor_memory import tensor_memory_regions
from fa4gen.designs.gemm_sm100.values import decide

if TYPE_CHECKING:
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.gemm_sm100.config import BlackwellGemmConfig
    from fa4gen.designs.gemm_sm100.values import Values

EPILOGUE_BARRIER = 1
"""Id of the named barrier at which the epilogue meets; 0 is __syncthreads."""


def plan_gemm_sm100(config: BlackwellGemmConfig) -> BlackwellGemmPlan:
    """Plan the matrix product of ``config`` for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, most_stages)
    return BlackwellGemmPlan(
        **kernel_fields(values, choices, _tables(values), cta_group=values.cta_group),
        **gemm_fields(values),
        scheduler=values.scheduler,
        num_accum_stages=values.num_accum_stages,
        stage_stride_cols=values.stage_stride_cols,
        num_out_stages=values.num_out_stages,
        overlap_columns=values.overlap_columns,
        num_scale_stages=values.num_scale_stages,
    )


def _tables(values: Values) -> Tables:
    each = "two CTAs" if values.is_pair else "one CTA"
    return Tables(
        regions=gemm_regions(values),
        roles=gemm_roles(values),
        barriers=gemm_barriers(values),
        parameters=gemm_parameters(values.config, of_blocks=values.operand_scales),
        tensor_maps=gemm_tensor_maps(values),
        threads=32 * values.num_warps,
        grid=f"{each} a tile; those that run take over the tiles of those that have not started"
        if values.scheduler == "dynamic"
        else f"{each} a tile, at most as many as multiprocessors",
        summary=summarise(values),
        named_barriers=(("epilogue_barrier", EPILOGUE_BARRIER),),
        tensor_memory=tensor_memory_regions(values),
    )


def find_faults(config: BlackwellGemmConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]
