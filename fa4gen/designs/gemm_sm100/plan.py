"""The plan of a matrix product on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm100.barriers import gemm_barriers
from fa4gen.designs.gemm_sm100.limits import exceeded_limits
from fa4gen.designs.gemm_sm100.memory import dynamic_shared_bytes, gemm_regions, most_stages
from fa4gen.designs.gemm_sm100.rules import broken_rules
from fa4gen.designs.gemm_sm100.tables import gemm_roles, gemm_tensor_maps, summarise
from fa4gen.designs.gemm_sm100.tensor_memory import allocated_columns, tensor_memory_regions
from fa4gen.designs.gemm_sm100.values import PANEL_BYTES, decide
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.gemm_model import BlackwellGemmPlan
from fa4gen.designs.shared.gemm_parameters import gemm_parameters
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults

if TYPE_CHECKING:
    from fa4gen.config.gemm import BlackwellGemmConfig
    from fa4gen.designs.gemm_sm100.values import Values
    from fa4gen.designs.shared.refusal import Fault

EPILOGUE_BARRIER = 1
"""Id of the named barrier at which the epilogue meets; 0 is __syncthreads."""


def plan_gemm_sm100(config: BlackwellGemmConfig) -> BlackwellGemmPlan:
    """Plan the matrix product of ``config`` for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config, most_stages)
    regions = gemm_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    return BlackwellGemmPlan(
        kernel=config.kernel,
        name=config.name,
        entry_point=f"fa4gen_{config.name}",
        arch=config.arch,
        feature_macro=values.arch.feature_macro,
        dtype=config.dtype,
        element_bytes=values.element_bytes,
        out_dtype=config.resolved_out_dtype,
        out_element_bytes=values.out_element_bytes,
        cta_group=values.cta_group,
        scheduler=values.scheduler,
        named_barriers=(("epilogue_barrier", EPILOGUE_BARRIER),),
        summary=summarise(values),
        roles=gemm_roles(values),
        shared=regions,
        barriers=lay_out_barriers(gemm_barriers(values), first_barrier),
        tensor_maps=gemm_tensor_maps(values),
        parameters=gemm_parameters(config),
        launch=_launch(values, dynamic_shared_bytes(regions)),
        choices=choices,
        a_major=config.a_major,
        b_major=config.b_major,
        residual=config.residual,
        activation=config.activation,
        activation_cuda=_activation_cuda(config.activation),
        BM=values.BM,
        BN=values.BN,
        BK=values.BK,
        num_stages=values.num_stages,
        num_epi_stages=values.num_epi_stages,
        mma_k=values.mma_k,
        panel_columns=PANEL_BYTES // values.element_bytes,
        out_panel_columns=values.out_panel_columns,
        num_accum_stages=values.num_accum_stages,
        stage_stride_cols=values.stage_stride_cols,
        num_out_stages=values.num_out_stages,
        tensor_memory=tensor_memory_regions(values),
        tensor_memory_columns=allocated_columns(values),
    )


def find_faults(config: BlackwellGemmConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]


def _activation_cuda(activation: str | None) -> str | None:
    if activation is None:
        return None
    from fa4gen.config.expression import parse_expression

    return parse_expression(activation).cuda()


def _launch(values: Values, dynamic_shared: int) -> LaunchGeometry:
    each = "two CTAs" if values.is_pair else "one CTA"
    return LaunchGeometry(
        threads=32 * values.num_warps,
        cluster=values.cta_group,
        dynamic_shared_bytes=dynamic_shared,
        grid=f"{each} a tile; those that run take over the tiles of those that have not started"
        if values.scheduler == "dynamic"
        else f"{each} a tile, at most as many as multiprocessors",
    )
