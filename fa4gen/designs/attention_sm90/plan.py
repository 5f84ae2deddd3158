"""The plan of attention forward on Hopper: every value, table and size put together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.barriers import attention_barriers
from fa4gen.designs.attention_sm90.limits import exceeded_limits
from fa4gen.designs.attention_sm90.memory import attention_regions, most_stages
from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
from fa4gen.designs.attention_sm90.rules import broken_rules
from fa4gen.designs.attention_sm90.tables import (
    attention_named_barriers,
    attention_roles,
    attention_tensor_maps,
    kernel_parameters,
    summarise,
)
from fa4gen.designs.attention_sm90.values import decide
from fa4gen.designs.common.plan_fields import (
    Tables,
    attention_fields,
    kernel_fields,
    persistent_grid,
)
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.values import hopper_attention_fields

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.common.refusal import Refusal


def plan_attention_sm90(config: HopperAttentionConfig) -> HopperAttentionPlan:
    """Plan attention forward for sm_90a.

    Raises ConfigError with the arithmetic and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, most_stages)
    plan = HopperAttentionPlan(
        **kernel_fields(values, choices, _tables(values), cta_group=config.cta_group),
        **attention_fields(config),
        named_barriers=attention_named_barriers(values),
        mixed_tile_heights=values.mixed_tile_heights,
        tile_heads=config.tile_heads,
        **hopper_attention_fields(values, values.registers, tile_rows=values.BM * config.cta_group),
        scheduler=values.scheduler,
        BM=values.BM,
        BN=values.BN,
        num_kv_stages=values.num_kv_stages,
        epilogue=values.epilogue,
        panel_columns=values.panel_columns,
        num_panels=values.num_panels,
        num_consumer_warpgroups=values.num_consumer_warpgroups,
        overlap=config.overlap,
        num_pv_chunks_in_flight=values.num_pv_chunks_in_flight,
        ping_pong=values.ping_pong,
        overlap_epilogue=values.overlap_epilogue,
    )
    if not plan.skips_far_blocks:
        return plan
    first_free = 1 + values.num_consumer_warpgroups * len(plan.named_barriers)
    return replace(plan, named_barriers=(*plan.named_barriers, ("far_barrier", first_free)))


def _tables(values: Values) -> Tables:
    return Tables(
        regions=attention_regions(values),
        tensor_maps=attention_tensor_maps(values),
        parameters=kernel_parameters(values),
        threads=WARPGROUP * (1 + values.num_consumer_warpgroups),
        grid=persistent_grid(pairs=values.is_pair),
        barriers=attention_barriers(values),
        roles=attention_roles(values),
        summary=summarise(values),
    )


def find_faults(config: HopperAttentionConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]
