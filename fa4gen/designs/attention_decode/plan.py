"""The plan of decode attention: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_decode.barriers import decode_barriers
from fa4gen.designs.attention_decode.limits import exceeded_limits
from fa4gen.designs.attention_decode.memory import decode_regions, most_stages
from fa4gen.designs.attention_decode.model import DecodeAttentionPlan
from fa4gen.designs.attention_decode.rules import broken_rules
from fa4gen.designs.attention_decode.tables import (
    decode_roles,
    decode_tensor_maps,
    summarise,
)
from fa4gen.designs.attention_decode.values import decide
from fa4gen.designs.common.decode_parameters import decode_parameters
from fa4gen.designs.common.packed_fields import packed_fields
from fa4gen.designs.common.plan_fields import Tables, attention_fields, kernel_fields
from fa4gen.designs.common.refusal import refuse_faults

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.config import DecodeConfig
    from fa4gen.designs.attention_decode.values import Values
    from fa4gen.designs.common.refusal import Refusal


def plan_attention_decode(config: DecodeConfig) -> DecodeAttentionPlan:
    """Plan decode attention for sm_90a, sm_100a or sm_103a.

    Raises ConfigError with the reason and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, most_stages)
    return DecodeAttentionPlan(
        **kernel_fields(values, choices, _tables(values), cta_group=1),
        **attention_fields(config),
        named_barriers=_named_barriers(config),
        **packed_fields(values, has_descales=values.has_descales),
        query_in_shared=values.query_in_shared,
    )


def _named_barriers(config: DecodeConfig) -> tuple[tuple[str, int], ...]:
    if config.has_tile_lengths:
        return (("consumer_barrier", 1),)
    return ("consumer_barrier", 1), ("ready_barrier", 2)


def _tables(values: Values) -> Tables:
    return Tables(
        regions=decode_regions(values),
        tensor_maps=decode_tensor_maps(values),
        parameters=decode_parameters(values.config, has_splits=values.split_blocks > 0),
        threads=values.threads,
        grid="as many CTAs as multiprocessors, or blocks of keys where there are fewer",
        barriers=decode_barriers(values),
        roles=decode_roles(values),
        summary=summarise(values),
        cooperative=not values.split_blocks,
    )


def find_faults(config: DecodeConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return [*broken_rules(config), *exceeded_limits(values)]
