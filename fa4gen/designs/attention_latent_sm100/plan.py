"""The plan of latent attention on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent_sm100.barriers import latent_barriers
from fa4gen.designs.attention_latent_sm100.memory import latent_regions, tensor_memory_regions
from fa4gen.designs.attention_latent_sm100.model import LatentPairPlan
from fa4gen.designs.attention_latent_sm100.rules import broken_rules
from fa4gen.designs.attention_latent_sm100.tables import latent_roles, summarise
from fa4gen.designs.attention_latent_sm100.values import PAIR, decide
from fa4gen.designs.common.latent import latent_parameters, latent_tensor_maps
from fa4gen.designs.common.latent_values import latent_fields
from fa4gen.designs.common.plan_fields import Tables, attention_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.common.tensor_memory import allocated_columns

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent_sm100.config import LatentPairConfig
    from fa4gen.designs.common.refusal import Refusal

NAMED_BARRIERS = (("consumer_barrier", 1), ("exchange_barrier", 2), ("line_barrier", 3))
"""Ids of the hardware's barriers; 0 is __syncthreads. The last one where there are lengths."""


def plan_attention_latent_sm100(config: LatentPairConfig) -> LatentPairPlan:
    """Plan latent attention for sm_100a or sm_103a.

    Raises ConfigError with the reason and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config)
    tensor_memory = tensor_memory_regions(values)
    tables = Tables(
        regions=latent_regions(values),
        tensor_maps=latent_tensor_maps(config, values.key_rows),
        parameters=latent_parameters(config, has_splits=values.split_blocks > 0),
        threads=values.threads,
        grid="two CTAs a pair: as many pairs as multiprocessors have room for, or blocks of keys "
        "where there are fewer",
        barriers=latent_barriers(values),
        roles=latent_roles(values),
        summary=summarise(values),
        cooperative=not values.split_blocks,
    )
    return LatentPairPlan(
        **kernel_fields(values, choices, tables, cta_group=PAIR),
        **attention_fields(config),
        named_barriers=NAMED_BARRIERS[: 3 if config.has_tile_lengths else 2],
        **latent_fields(values),
        tensor_memory=tensor_memory,
        tensor_memory_columns=allocated_columns(tensor_memory),
        tile_rows=values.tile_rows,
        num_qk_stages=values.num_qk_stages,
    )


def find_faults(config: LatentPairConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    return list(broken_rules(config))
