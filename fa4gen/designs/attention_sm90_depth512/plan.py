"""The plan of attention forward at depth 512 on Hopper: every value, table and size together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.barriers import pair_barriers
from fa4gen.designs.attention_sm90_depth512.limits import exceeded_limits
from fa4gen.designs.attention_sm90_depth512.memory import pair_regions
from fa4gen.designs.attention_sm90_depth512.model import HopperPairAttentionPlan
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
    OWN_COLUMNS,
    OWN_KEYS,
    PANEL_COLUMNS,
    RING_SLOTS,
    TILE_ROWS,
    decide,
)
from fa4gen.designs.common.plan_fields import Tables, attention_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.values import hopper_attention_fields

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.config import HopperPairAttentionConfig
    from fa4gen.designs.common.refusal import Refusal


def plan_attention_sm90_depth512(config: HopperPairAttentionConfig) -> HopperPairAttentionPlan:
    """Plan attention forward at depth 512 for sm_90a.

    Raises ConfigError with the reason and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config)
    tables = Tables(
        summary=summarise(values),
        roles=pair_roles(values),
        regions=pair_regions(values),
        barriers=pair_barriers(values),
        tensor_maps=pair_tensor_maps(values),
        parameters=pair_parameters(values),
        threads=WARPGROUP * (1 + CONSUMER_WARPGROUPS),
        grid="two CTAs a tile, at most as many as multiprocessors",
        aligns_base=False,
    )
    return HopperPairAttentionPlan(
        **kernel_fields(values, choices, tables, cta_group=CTA_GROUP),
        **attention_fields(config),
        named_barriers=(),
        BM=TILE_ROWS,
        BN=BLOCK_KEYS,
        num_kv_stages=RING_SLOTS,
        epilogue="direct",
        mixed_tile_heights=False,
        panel_columns=PANEL_COLUMNS,
        own_keys=OWN_KEYS,
        own_columns=OWN_COLUMNS,
        **hopper_attention_fields(values, values.registers, tile_rows=TILE_ROWS),
        scheduler=values.scheduler,
        num_panels=values.num_panels,
        num_consumer_warpgroups=values.num_consumer_warpgroups,
    )


def find_faults(config: HopperPairAttentionConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config)
    return list(exceeded_limits(values))
