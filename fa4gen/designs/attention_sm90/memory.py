"""The shared-memory map of the Hopper attention kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.barriers import attention_barriers
from fa4gen.designs.attention_sm90.values import ELEMENT_BYTES, WARPGROUP_ROWS
from fa4gen.designs.common.barriers import TILE_SLOTS
from fa4gen.designs.common.shared_memory import (
    barrier_region,
    lay_out,
    most_that_fit,
    slots_of,
    tile_bytes,
    tile_lengths,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.common.model import SharedRegion

MAX_STAGES = 16
"""The schema's limit."""


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    swizzle = f"{values.panel_columns * ELEMENT_BYTES}-byte swizzle"
    queries = f"{WARPGROUP_ROWS} x {config.depth} {config.dtype}, {swizzle}"
    keys = f"{values.BN} x {config.depth} {config.dtype}, {swizzle}"
    block = f"{values.BN} x {values.value_depth} {config.dtype}, {swizzle}"
    staging = "; then the output on its way to global memory"
    warpgroups, stages = values.num_consumer_warpgroups, values.num_kv_stages
    return lay_out(
        (
            slots_of(
                "query",
                warpgroups,
                values.query_bytes,
                f"Queries, one slot a consumer warpgroup: {queries}"
                + (staging if values.epilogue == "tma_store" else ""),
            ),
            slots_of("key", stages, values.key_bytes, f"Ring of key blocks: {keys}"),
            slots_of("value", stages, values.value_bytes, f"Ring of value blocks: {block}"),
            barrier_region(attention_barriers(values)),
            slots_of(
                "tile",
                TILE_SLOTS,
                tile_bytes(config),
                "Tiles on their way from the loader to the consumers: "
                "first row, head, batch, active warpgroups" + tile_lengths(config),
                alignment=16,
            ),
        )
    )


def most_stages(values: Values) -> int:
    """Return how many slots of each ring fit shared memory: 0 to 16."""
    return most_that_fit(values, attention_regions, "num_kv_stages", MAX_STAGES)
