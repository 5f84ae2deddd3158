"""The plan of attention forward at depth 512 on Hopper: every value, table and size together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.barriers import pair_barriers
from fa4gen.designs.attention_sm90_depth512.limits import exceeded_limits
from fa4gen.designs.attention_sm90_depth512.memory import dynamic_shared_bytes, pair_regions
from fa4gen.designs.attention_sm90_depth512.rules import broken_rules
from fa4gen.designs.attention_sm90_depth512.tables import (
    pair_parameters,
    pair_roles,
    pair_tensor_maps,
    summarise,
)
from fa4gen.designs.attention_sm90_depth512.values import (
    BLOCK_KEYS,
    CONSUMER_WARPGROUPS,
    CTA_GROUP,
    ELEMENT_BYTES,
    OWN_COLUMNS,
    OWN_KEYS,
    PANEL_COLUMNS,
    RING_SLOTS,
    TILE_ROWS,
    decide,
)
from fa4gen.designs.shared.attention_model import HopperPairAttentionPlan
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults
from fa4gen.designs.shared.roles import WARPGROUP

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig
    from fa4gen.designs.shared.refusal import Fault

SMALLEST_FLOAT32 = 2.0**-126
"""The smallest normal number."""


def plan_attention_sm90_depth512(config: AttentionConfig) -> HopperPairAttentionPlan:
    """Plan attention forward at depth 512 for sm_90a.

    Raises ConfigError with the reason and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config)
    regions = pair_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    threshold = config.rescale_threshold
    return HopperPairAttentionPlan(
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
        cta_group=CTA_GROUP,
        BM=TILE_ROWS,
        BN=BLOCK_KEYS,
        num_kv_stages=RING_SLOTS,
        epilogue="direct",
        scheduler=values.scheduler,
        rescale_threshold=threshold if threshold >= SMALLEST_FLOAT32 else 0.0,
        mixed_tile_heights=False,
        panel_columns=PANEL_COLUMNS,
        num_panels=values.num_panels,
        num_consumer_warpgroups=CONSUMER_WARPGROUPS,
        own_keys=OWN_KEYS,
        own_columns=OWN_COLUMNS,
        producer_registers=values.registers.producer,
        consumer_registers=values.registers.consumer,
        named_barriers=(),
        summary=summarise(values),
        roles=pair_roles(values),
        shared=regions,
        barriers=lay_out_barriers(pair_barriers(values), first_barrier),
        tensor_maps=pair_tensor_maps(),
        parameters=pair_parameters(values),
        launch=LaunchGeometry(
            threads=WARPGROUP * (1 + CONSUMER_WARPGROUPS),
            cluster=CTA_GROUP,
            dynamic_shared_bytes=dynamic_shared_bytes(regions),
            grid="two CTAs a tile, at most as many as multiprocessors",
        ),
        choices=choices,
    )


def find_faults(config: AttentionConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config)
    return [*broken_rules(config), *exceeded_limits(values)]
