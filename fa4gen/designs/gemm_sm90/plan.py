"""The plan of a matrix product on Hopper: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.expression import parse_expression
from fa4gen.designs.gemm_sm90.barriers import gemm_barriers
from fa4gen.designs.gemm_sm90.limits import exceeded_limits
from fa4gen.designs.gemm_sm90.memory import dynamic_shared_bytes, gemm_regions, most_stages
from fa4gen.designs.gemm_sm90.rules import broken_rules
from fa4gen.designs.gemm_sm90.tables import gemm_roles, gemm_tensor_maps, summarise
from fa4gen.designs.gemm_sm90.values import MMA_K_BYTES, decide
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.gemm_model import HopperGemmPlan
from fa4gen.designs.shared.gemm_parameters import gemm_parameters
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults
from fa4gen.designs.shared.roles import WARPGROUP

if TYPE_CHECKING:
    from fa4gen.config.gemm import HopperGemmConfig
    from fa4gen.designs.gemm_sm90.values import Values
    from fa4gen.designs.shared.refusal import Fault


def plan_gemm_sm90(config: HopperGemmConfig) -> HopperGemmPlan:
    """Plan a matrix product for sm_90a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config, most_stages)
    regions = gemm_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    activation = None if config.activation is None else parse_expression(config.activation).cuda()
    return HopperGemmPlan(
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
        scheduler="static",
        a_major=config.a_major,
        b_major=config.b_major,
        residual=config.residual,
        activation=config.activation,
        activation_cuda=activation,
        BM=values.BM,
        BN=values.BN,
        BK=values.BK,
        num_stages=values.num_stages,
        num_epi_stages=values.num_epi_stages,
        mma_k=MMA_K_BYTES // values.element_bytes,
        panel_columns=values.panel_columns,
        out_panel_columns=values.out_panel_columns,
        num_consumer_warpgroups=values.num_consumer_warpgroups,
        ping_pong=values.ping_pong,
        warpgroup_rows=values.warpgroup_rows,
        producer_registers=values.registers.producer,
        consumer_registers=values.registers.consumer,
        named_barriers=(("turn_barrier", 1),) if values.ping_pong else (),
        summary=summarise(values),
        roles=gemm_roles(values),
        shared=regions,
        barriers=lay_out_barriers(gemm_barriers(values), first_barrier),
        tensor_maps=gemm_tensor_maps(values),
        parameters=gemm_parameters(config),
        launch=_launch(values, dynamic_shared_bytes(regions)),
        choices=choices,
    )


def find_faults(config: HopperGemmConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]


def _launch(values: Values, dynamic_shared: int) -> LaunchGeometry:
    return LaunchGeometry(
        threads=WARPGROUP * (1 + values.num_consumer_warpgroups),
        cluster=values.cta_group,
        dynamic_shared_bytes=dynamic_shared,
        grid="two CTAs a pair, at most as many as multiprocessors, or two a tile of the pair"
        if values.is_pair
        else "as many CTAs as multiprocessors, or tiles where there are fewer",
    )
