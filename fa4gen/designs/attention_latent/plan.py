"""The plan of latent attention: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.barriers import latent_barriers
from fa4gen.designs.attention_latent.memory import latent_regions
from fa4gen.designs.attention_latent.model import LatentAttentionPlan
from fa4gen.designs.attention_latent.rules import broken_rules
from fa4gen.designs.attention_latent.tables import (
    latent_roles,
    summarise,
)
from fa4gen.designs.attention_latent.values import decide
from fa4gen.designs.common.latent import latent_parameters, latent_tensor_maps
from fa4gen.designs.common.latent_values import latent_fields
from fa4gen.designs.common.plan_fields import Tables, attention_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent.config import LatentConfig
    from fa4gen.designs.attention_latent.values import LatentValues
    from fa4gen.designs.common.refusal import Refusal


def plan_attention_latent(config: LatentConfig) -> LatentAttentionPlan:
    """Plan latent attention for sm_90a.

    Raises ConfigError with the reason and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config)
    registers = values.registers
    of_line = config.has_tile_lengths or not values.split_blocks
    second = "line_barrier" if of_line else "ready_barrier"
    return LatentAttentionPlan(
        **kernel_fields(values, choices, _tables(values), cta_group=1),
        **attention_fields(config),
        named_barriers=(("consumer_barrier", 1), (second, 2), ("scores_barrier", 3)),
        **latent_fields(values),
        producer_registers=registers.producer,
        consumer_registers=registers.consumer,
        half_panels=values.half_panels,
        half_parts=values.half_parts,
    )


def _tables(values: LatentValues) -> Tables:
    config = values.config
    return Tables(
        regions=latent_regions(values),
        tensor_maps=latent_tensor_maps(config, values.unit_keys),
        parameters=latent_parameters(config, has_splits=values.split_blocks > 0),
        threads=values.threads,
        grid="as many CTAs as multiprocessors, or blocks of keys where there are fewer",
        barriers=latent_barriers(values),
        roles=latent_roles(values),
        summary=summarise(values),
        cluster=values.cluster,
        cooperative=not values.split_blocks,
    )


def find_faults(config: LatentConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    return list(broken_rules(config))
