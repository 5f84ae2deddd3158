"""The plan of attention at depth 512 on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.tables import attention_parameters, has_descales
from fa4gen.designs.attention_sm100.values import OUT_BYTES
from fa4gen.designs.attention_sm100_depth512.barriers import attention_barriers
from fa4gen.designs.attention_sm100_depth512.memory import (
    attention_regions,
    dynamic_shared_bytes,
    most_stages,
    tensor_memory_regions,
)
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
from fa4gen.designs.shared.attention_model import Depth512Config
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.float32 import as_float32_constant
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults

if TYPE_CHECKING:
    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.designs.shared.refusal import Fault

NAMED_BARRIERS = (("exchange_barrier", 1), ("epilogue_barrier", 2))
"""Ids of the hardware's barriers; 0 is __syncthreads."""
TENSOR_MEMORY_COLUMNS = 512


def plan_attention_sm100_depth512(config: BlackwellAttentionConfig) -> Depth512Config:
    """Plan attention forward at depth 512 for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config, most_stages)
    regions = attention_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    return Depth512Config(
        kernel=config.kernel,
        name=config.name,
        entry_point=f"fa4gen_{config.name}",
        arch=config.arch,
        feature_macro=values.arch.feature_macro,
        dtype=config.dtype,
        element_bytes=values.element_bytes,
        out_dtype=config.resolved_out_dtype,
        out_element_bytes=OUT_BYTES,
        depth=DEPTH,
        value_depth=DEPTH,
        mask=config.resolved_mask,
        lse=config.lse,
        softcap=config.softcap,
        has_descales=has_descales(config),
        cta_group=2,
        BM=CTA_ROWS,
        BN=BLOCK_KEYS,
        num_kv_stages=values.num_kv_stages,
        epilogue="tma_store",
        scheduler=values.scheduler,
        rescale_threshold=as_float32_constant(values.rescale_threshold),
        mixed_tile_heights=False,
        panel_columns=values.panel_columns,
        num_panels=DEPTH // values.panel_columns,
        named_barriers=NAMED_BARRIERS,
        summary=summarise(values),
        roles=attention_roles(values),
        shared=regions,
        barriers=lay_out_barriers(attention_barriers(values), first_barrier),
        tensor_maps=attention_tensor_maps(values),
        parameters=attention_parameters(config, values.scheduler),
        launch=LaunchGeometry(
            threads=NUM_THREADS,
            cluster=2,
            dynamic_shared_bytes=dynamic_shared_bytes(regions),
            grid="two CTAs a pair of tiles, at most as many as multiprocessors",
        ),
        choices=choices,
        BK0=PART,
        BK1=PART,
        num_qk_stages=DEPTH // PART,
        num_pv_stages=BLOCK_KEYS // PART,
        out_panel_columns=OUT_PANEL_COLUMNS,
        staging_step=values.staging_step,
        probability_shift=values.probability_shift,
        exp2_fma_share=values.exp2_fma_share,
        registers_at_entry=registers_at_entry(values),
        softmax_registers=values.registers.softmax,
        correction_registers=values.registers.correction,
        other_registers=values.registers.other,
        tensor_memory=tensor_memory_regions(),
        tensor_memory_columns=TENSOR_MEMORY_COLUMNS,
    )


def find_faults(config: BlackwellAttentionConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, most_stages)
    return list(faults(values))
