"""The shared-memory map of the Blackwell attention kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.barriers import attention_barriers
from fa4gen.designs.attention_sm100.values import TILE_ROWS
from fa4gen.designs.common.blackwell_attention import SCALES_HOLD, tile_and_tensor_memory
from fa4gen.designs.common.blackwell_values import OUT_BYTES
from fa4gen.designs.common.model import SharedRegion
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, most_that_fit, slots_of
from fa4gen.designs.common.values import MAX_KV_STAGES

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.values import Values


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    swizzle = f"{values.panel_columns * values.element_bytes}-byte swizzle"
    tile = f"{TILE_ROWS} x {values.depth} {config.dtype}, {swizzle}"
    staged = "; then its output" if values.output_staging == "query" else ""
    regions = [slots_of("query", values.num_qo, values.query_bytes, f"Query tiles: {tile}{staged}")]
    if values.output_staging == "own":
        out_swizzle = f"{values.out_panel_columns * OUT_BYTES}-byte swizzle"
        holds = f"{TILE_ROWS} x {values.value_depth} {config.resolved_out_dtype}, {out_swizzle}"
        regions.append(
            slots_of(
                "output", values.num_qo, values.out_bytes, f"Outputs on their way out: {holds}"
            )
        )
    return lay_out((*regions, *_rings(values), *_small_regions(values)))


def _rings(values: Values) -> list[SharedRegion]:
    share = " (this CTA's half)" if values.is_pair else ""
    key = f"{values.BN} x {values.depth} {values.config.dtype}{share}, K-major"
    value = f"{values.BN} x {values.value_depth} {values.config.dtype}{share}, MN-major"
    stages = values.num_kv_stages
    if values.kv_ring == "fused":
        holds = f"Ring of blocks, keys and values in turn: {key}; {value}"
        return [slots_of("kv", stages, values.slot_bytes[0], holds)]
    return [
        slots_of("key", stages, values.key_bytes, f"Ring of key blocks: {key}"),
        slots_of("value", stages, values.value_bytes, f"Ring of value blocks: {value}"),
    ]


def _small_regions(values: Values) -> list[SharedRegion]:
    scales = SharedRegion("scale", 0, values.num_qo * TILE_ROWS * 4, 16, values.num_qo, SCALES_HOLD)
    return [
        barrier_region(attention_barriers(values)),
        scales,
        *tile_and_tensor_memory(values.config),
    ]


def most_stages(values: Values) -> int:
    """Return how many stages fit shared memory: 0 to 32; a fused ring needs two at least."""
    return most_that_fit(values, attention_regions, "num_kv_stages", MAX_KV_STAGES)
