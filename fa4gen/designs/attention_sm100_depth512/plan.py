"""The plan of attention at depth 512 on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.barriers import attention_barriers
from fa4gen.designs.attention_sm100_depth512.memory import (
    attention_regions,
    most_stages,
    tensor_memory_regions,
)
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.attention_sm100_depth512.rules import faults, registers_at_entry
from fa4gen.designs.attention_sm100_depth512.tables import (
    OUT_PANEL_COLUMNS,
    attention_roles,
    attention_tensor_maps,
    summarise,
)
from fa4gen.designs.attention_sm100_depth512.values import (
    BLOCK_KEYS,
    CTA_ROWS,
    DEPTH,
    NUM_THREADS,
    PART,
    decide,
)
from fa4gen.designs.common.blackwell_attention import kernel_parameters
from fa4gen.designs.common.blackwell_values import blackwell_fields
from fa4gen.designs.common.plan_fields import (
    Tables,
    attention_fields,
    kernel_fields,
    persistent_grid,
)
from fa4gen.designs.common.refusal import refuse_faults
from fa4gen.designs.common.tensor_memory import allocated_columns

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
    from fa4gen.designs.common.refusal import Refusal

NAMED_BARRIERS = (("exchange_barrier", 1), ("epilogue_barrier", 2))
"""Ids of the hardware's barriers; 0 is __syncthreads."""


def plan_attention_sm100_depth512(config: BlackwellPairAttentionConfig) -> Depth512Config:
    """Plan attention forward at depth 512 for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, most_stages)
    tensor_memory = tensor_memory_regions()
    tables = Tables(
        regions=attention_regions(values),
        barriers=attention_barriers(values),
        tensor_maps=attention_tensor_maps(values),
        roles=attention_roles(values),
        parameters=kernel_parameters(values),
        summary=summarise(values),
        threads=NUM_THREADS,
        grid=persistent_grid(pairs=True),
    )
    return Depth512Config(
        **kernel_fields(values, choices, tables, cta_group=2),
        **attention_fields(config),
        named_barriers=NAMED_BARRIERS,
        **blackwell_fields(values, tile_rows=2 * CTA_ROWS),
        BM=CTA_ROWS,
        BN=BLOCK_KEYS,
        num_panels=DEPTH // values.panel_columns,
        BK0=PART,
        BK1=PART,
        num_qk_stages=DEPTH // PART,
        num_pv_stages=BLOCK_KEYS // PART,
        out_panel_columns=OUT_PANEL_COLUMNS,
        registers_at_entry=registers_at_entry(values),
        tensor_memory=tensor_memory,
        tensor_memory_columns=allocated_columns(tensor_memory),
        panel_columns=values.panel_columns,
        staging_step=values.staging_step,
    )


def find_faults(config: BlackwellPairAttentionConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return list(faults(values))
