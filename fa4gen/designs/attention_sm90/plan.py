"""The plan of attention forward on Hopper: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.barriers import attention_barriers
from fa4gen.designs.attention_sm90.limits import exceeded_limits
from fa4gen.designs.attention_sm90.memory import (
    attention_regions,
    dynamic_shared_bytes,
    most_stages,
)
from fa4gen.designs.attention_sm90.rules import broken_rules
from fa4gen.designs.attention_sm90.tables import (
    attention_named_barriers,
    attention_parameters,
    attention_roles,
    attention_tensor_maps,
    summarise,
)
from fa4gen.designs.attention_sm90.values import ELEMENT_BYTES, decide
from fa4gen.designs.shared.attention_model import HopperAttentionPlan
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.float32 import as_float32_constant
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults
from fa4gen.designs.shared.roles import WARPGROUP

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.shared.refusal import Fault


def plan_attention_sm90(config: AttentionConfig) -> HopperAttentionPlan:
    """Plan attention forward for sm_90a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config, most_stages)
    regions = attention_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    return HopperAttentionPlan(
        kernel=config.kernel,
        name=config.name,
        entry_point=f"fa4gen_{config.name}",
        arch=config.arch,
        feature_macro=values.arch.feature_macro,
        dtype=config.dtype,
        element_bytes=ELEMENT_BYTES,
        out_dtype=config.dtype,
        out_element_bytes=ELEMENT_BYTES,
        depth=config.depth,
        value_depth=config.depth,
        mask=config.resolved_mask,
        lse=config.lse,
        softcap=config.softcap,
        has_descales=False,
        cta_group=config.cta_group,
        BM=values.tile_rows,
        BN=values.BN,
        num_consumer_warpgroups=values.num_consumer_warpgroups,
        num_kv_stages=values.num_kv_stages,
        overlap=config.overlap,
        num_pv_chunks_in_flight=values.num_pv_chunks_in_flight,
        ping_pong=values.ping_pong,
        overlap_epilogue=values.overlap_epilogue,
        epilogue=values.epilogue,
        scheduler=values.scheduler,
        rescale_threshold=as_float32_constant(config.rescale_threshold),
        mixed_tile_heights=values.num_consumer_warpgroups == 3 and not values.is_pair,
        panel_columns=values.panel_columns,
        num_panels=values.num_panels,
        producer_registers=values.registers.producer,
        consumer_registers=values.registers.consumer,
        named_barriers=attention_named_barriers(values),
        summary=summarise(values),
        roles=attention_roles(values),
        shared=regions,
        barriers=lay_out_barriers(attention_barriers(values), first_barrier),
        tensor_maps=attention_tensor_maps(values),
        parameters=attention_parameters(values),
        launch=_launch(values, dynamic_shared_bytes(regions)),
        choices=choices,
    )


def find_faults(config: AttentionConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(values), *exceeded_limits(values)]


def _launch(values: Values, dynamic_shared: int) -> LaunchGeometry:
    return LaunchGeometry(
        threads=WARPGROUP * (1 + values.num_consumer_warpgroups),
        cluster=values.config.cta_group,
        dynamic_shared_bytes=dynamic_shared,
        grid="two CTAs a pair of tiles, at most as many as multiprocessors"
        if values.is_pair
        else "as many CTAs as multiprocessors, or tiles where there are fewer",
    )
