"""The plan of attention forward on Blackwell: every value, table and size put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.barriers import attention_barriers
from fa4gen.designs.attention_sm100.limits import exceeded_limits, registers_at_entry
from fa4gen.designs.attention_sm100.memory import (
    attention_regions,
    dynamic_shared_bytes,
    most_stages,
)
from fa4gen.designs.attention_sm100.rules import broken_rules
from fa4gen.designs.attention_sm100.tables import (
    attention_parameters,
    attention_roles,
    attention_tensor_maps,
    has_descales,
    summarise,
)
from fa4gen.designs.attention_sm100.tensor_memory import (
    allocated_columns,
    columns_needed,
    has_columns_for_probabilities,
    tensor_memory_regions,
)
from fa4gen.designs.attention_sm100.values import OUT_BYTES, TILE_ROWS, Room, decide
from fa4gen.designs.shared.attention_model import FA4Config
from fa4gen.designs.shared.barriers import lay_out_barriers
from fa4gen.designs.shared.float32 import as_float32_constant
from fa4gen.designs.shared.model import LaunchGeometry
from fa4gen.designs.shared.refusal import refuse_faults

if TYPE_CHECKING:
    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.designs.attention_sm100.values import Values
    from fa4gen.designs.shared.refusal import Fault

ROOM = Room(most_stages, columns_needed, has_columns_for_probabilities)
EPILOGUE_BARRIER = 1
"""Id of the named barrier at which the correction meets; 0 is __syncthreads."""


def plan_attention_sm100(config: BlackwellAttentionConfig) -> FA4Config:
    """Plan attention forward for sm_100a or sm_103a.

    Raises ConfigError with the arithmetic and ways out for what cannot work.
    """
    refuse_faults(config, find_faults)
    values, choices = decide(config, ROOM)
    regions = attention_regions(values)
    first_barrier = next(region.offset for region in regions if region.name == "barriers")
    return FA4Config(
        kernel=config.kernel,
        name=config.name,
        entry_point=f"fa4gen_{config.name}",
        arch=config.arch,
        feature_macro=values.arch.feature_macro,
        dtype=config.dtype,
        element_bytes=values.element_bytes,
        out_dtype=config.resolved_out_dtype,
        out_element_bytes=OUT_BYTES,
        depth=values.depth,
        value_depth=values.value_depth,
        mask=config.resolved_mask,
        lse=config.lse,
        softcap=config.softcap,
        has_descales=has_descales(config),
        cta_group=config.cta_group,
        BM=values.num_qo * TILE_ROWS,
        BN=values.BN,
        num_kv_stages=values.num_kv_stages,
        epilogue="tma_store",
        scheduler=values.scheduler,
        rescale_threshold=as_float32_constant(values.rescale_threshold),
        mixed_tile_heights=False,
        panel_columns=values.panel_columns,
        num_panels=values.num_panels,
        named_barriers=(("epilogue_barrier", EPILOGUE_BARRIER),),
        summary=summarise(values),
        roles=attention_roles(values),
        shared=regions,
        barriers=lay_out_barriers(attention_barriers(values), first_barrier),
        tensor_maps=attention_tensor_maps(values),
        parameters=attention_parameters(config, values.scheduler),
        launch=_launch(values, dynamic_shared_bytes(regions)),
        choices=choices,
        num_qo=values.num_qo,
        BK0=values.depth // values.num_qk_stages,
        BK1=values.BN,
        padded_depth=values.depth,
        num_qk_stages=values.num_qk_stages,
        num_pv_stages=values.num_pv_stages,
        pv_parts=values.pv_parts,
        kv_ring=values.kv_ring,
        output_staging=values.output_staging,
        mma_k=values.mma_k,
        value_panel_columns=values.value_panel_columns,
        out_panel_columns=values.out_panel_columns,
        probability_shift=values.probability_shift,
        exp2_fma_share=values.exp2_fma_share,
        registers_at_entry=registers_at_entry(values),
        softmax_registers=values.registers.softmax,
        correction_registers=values.registers.correction,
        other_registers=values.registers.other,
        tensor_memory=tensor_memory_regions(values),
        tensor_memory_columns=allocated_columns(values),
    )


def find_faults(config: BlackwellAttentionConfig) -> list[Fault]:
    """Return everything in ``config`` that cannot work."""
    values, _ = decide(config, ROOM)
    return [*broken_rules(values), *exceeded_limits(values)]


def _launch(values: Values, dynamic_shared: int) -> LaunchGeometry:
    return LaunchGeometry(
        threads=values.num_threads,
        cluster=values.config.cta_group,
        dynamic_shared_bytes=dynamic_shared,
        grid="two CTAs a pair of tiles, at most as many as multiprocessors"
        if values.is_pair
        else "as many CTAs as multiprocessors, or tiles where there are fewer",
    )
