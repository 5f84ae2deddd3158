"""The plan of a matrix product on Hopper: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import gemm_parameters
from fa4gen.designs.common.plan_fields import Tables, gemm_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.gemm_sm90.barriers import gemm_barriers
from fa4gen.designs.gemm_sm90.limits import exceeded_limits
from fa4gen.designs.gemm_sm90.memory import gemm_regions, most_stages
from fa4gen.designs.gemm_sm90.model import HopperGemmPlan
from fa4gen.designs.gemm_sm90.rules import broken_rules
from fa4gen.designs.gemm_sm90.tables import gemm_roles, gemm_tensor_maps, summarise
from fa4gen.designs.gemm_sm90.values import decide

if TYPE_CHECKING:
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
    from fa4gen.designs.gemm_sm90.values import Values

COUNTS = {4: "four", 8: "eight"}
"""CTAs of a large cluster."""


def plan_gemm_sm90(config: HopperGemmConfig) -> HopperGemmPlan:
    """Plan a matrix product for sm_90a.

    Raises ConfigError with the arithmetic and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, most_stages)
    return HopperGemmPlan(
        **kernel_fields(values, choices, _tables(values), cta_group=values.cta_group),
        **gemm_fields(values),
        scheduler="static",
        producer_registers=values.registers.producer,
        consumer_registers=values.registers.consumer,
        out_panel_columns=values.out_panel_columns,
        swap_operands=config.swap_operands,
        split_k=config.split_k,
        cluster_rows=values.cluster_rows,
        cluster_columns=values.cluster_columns,
        shares_in_turns=values.shares_in_turns,
        evict_first=values.evict_first,
        short_ends=config.short_ends,
        output_in_ring=config.output_in_ring,
        num_consumer_warpgroups=values.num_consumer_warpgroups,
        ping_pong=values.ping_pong,
        warpgroup_rows=values.warpgroup_rows,
        last_panel_columns=values.last_panel_columns,
    )


def _named_barriers(values: Values) -> tuple[tuple[str, int], ...]:
    """Return the name and the first number of each; the rules refuse both at once."""
    if values.config.output_in_ring:
        return (("ring_barrier", 1),)
    return (("turn_barrier", 1),) if values.ping_pong else ()


def _tables(values: Values) -> Tables:
    return Tables(
        summary=summarise(values),
        named_barriers=_named_barriers(values),
        roles=gemm_roles(values),
        regions=gemm_regions(values),
        barriers=gemm_barriers(values),
        tensor_maps=gemm_tensor_maps(values),
        parameters=gemm_parameters(
            values.config,
            last_maps=values.has_last_maps,
            columns="kTileColumns" if values.cluster_columns > 1 else "kBN",
            of_blocks=values.operand_scales,
        ),
        cluster=2 if values.is_split else None,
        threads=WARPGROUP * (1 + values.num_consumer_warpgroups),
        grid="two CTAs a pair, at most as many as multiprocessors, or two a tile of the pair"
        if values.cta_group == 2
        else f"{COUNTS[values.cta_group]} CTAs a cluster, at most as many as run at once, or "
        f"{COUNTS[values.cta_group]} a tile of the cluster"
        if values.cta_group in COUNTS
        else "two CTAs a tile, at most as many as multiprocessors"
        if values.is_split
        else "as many CTAs as multiprocessors, or tiles where there are fewer",
    )


def find_faults(config: HopperGemmConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]
