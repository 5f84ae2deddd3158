"""The plan of attention forward on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.barriers import attention_barriers
from fa4gen.designs.attention_sm100.limits import exceeded_limits, registers_at_entry
from fa4gen.designs.attention_sm100.memory import attention_regions, most_stages
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.attention_sm100.rules import broken_rules
from fa4gen.designs.attention_sm100.tables import attention_roles, attention_tensor_maps, summarise
from fa4gen.designs.attention_sm100.tensor_memory import (
    columns_needed,
    has_columns_for_probabilities,
    tensor_memory_regions,
)
from fa4gen.designs.attention_sm100.values import TILE_ROWS, Room, decide
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
    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.attention_sm100.values import Values
    from fa4gen.designs.common.refusal import Refusal

ROOM = Room(most_stages, columns_needed, has_columns_for_probabilities)
EPILOGUE_BARRIER = 1
"""Id of the named barrier at which the correction meets; 0 is __syncthreads."""


def plan_attention_sm100(config: BlackwellAttentionConfig) -> FA4Config:
    """Plan attention forward for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and suggested fixes for what cannot work.
    """
    refuse_faults(config)
    values, choices = decide(config, ROOM)
    tensor_memory = tensor_memory_regions(values)
    return FA4Config(
        **kernel_fields(values, choices, _tables(values), cta_group=config.cta_group),
        **attention_fields(config),
        named_barriers=(("epilogue_barrier", EPILOGUE_BARRIER),),
        BM=values.num_qo * TILE_ROWS,
        BK0=values.depth // values.num_qk_stages,
        BK1=values.BN,
        padded_depth=values.depth,
        **blackwell_fields(values, tile_rows=values.num_qo * TILE_ROWS * values.config.cta_group),
        registers_at_entry=registers_at_entry(values),
        tensor_memory=tensor_memory,
        tensor_memory_columns=allocated_columns(tensor_memory),
        BN=values.BN,
        panel_columns=values.panel_columns,
        num_panels=values.num_panels,
        num_qk_stages=values.num_qk_stages,
        num_pv_stages=values.num_pv_stages,
        out_panel_columns=values.out_panel_columns,
        num_qo=values.num_qo,
        pv_parts=values.pv_parts,
        kv_ring=values.kv_ring,
        output_staging=values.output_staging,
        mma_k=values.mma_k,
        value_panel_columns=values.value_panel_columns,
    )


def _tables(values: Values) -> Tables:
    return Tables(
        summary=summarise(values),
        roles=attention_roles(values),
        regions=attention_regions(values),
        threads=values.num_threads,
        grid=persistent_grid(pairs=values.is_pair),
        barriers=attention_barriers(values),
        parameters=kernel_parameters(values),
        tensor_maps=attention_tensor_maps(values),
    )


def find_faults(config: BlackwellAttentionConfig) -> list[Refusal]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, ROOM)
    return [*broken_rules(values), *exceeded_limits(values)]
