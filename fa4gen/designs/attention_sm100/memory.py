"""The shared-memory map of the Blackwell attention kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.barriers import TILE_SLOTS, attention_barriers
from fa4gen.designs.attention_sm100.values import OUT_BYTES, TILE_ROWS
from fa4gen.designs.shared.model import SharedRegion
from fa4gen.designs.shared.shared_memory import align_up, lay_out_regions

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.values import Values

SWIZZLE_ALIGNMENT = 1024
BASE_ALIGNMENT = 16
"""What dynamic shared memory is aligned to without the kernel's doing."""
MAX_STAGES = 32
"""The schema's limit."""


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    swizzle = f"{values.panel_columns * values.element_bytes}-byte swizzle"
    tile = f"{TILE_ROWS} x {values.depth} {config.dtype}, {swizzle}"
    staged = "; then its output" if values.output_staging == "query" else ""
    regions = [_slots("query", values.num_qo, values.query_bytes, f"Query tiles: {tile}{staged}")]
    if values.output_staging == "own":
        out_swizzle = f"{values.out_panel_columns * OUT_BYTES}-byte swizzle"
        holds = f"{TILE_ROWS} x {values.value_depth} {config.resolved_out_dtype}, {out_swizzle}"
        regions.append(
            _slots("output", values.num_qo, values.out_bytes, f"Outputs on their way out: {holds}")
        )
    return lay_out_regions((*regions, *_rings(values), *_small_regions(values)))


def _rings(values: Values) -> list[SharedRegion]:
    share = " (this CTA's half)" if values.is_pair else ""
    key = f"{values.BN} x {values.depth} {values.config.dtype}{share}, K-major"
    value = f"{values.BN} x {values.value_depth} {values.config.dtype}{share}, MN-major"
    stages = values.num_kv_stages
    if values.kv_ring == "fused":
        holds = f"Ring of blocks, keys and values in turn: {key}; {value}"
        return [_slots("kv", stages, values.slot_bytes[0], holds)]
    return [
        _slots("key", stages, values.key_bytes, f"Ring of key blocks: {key}"),
        _slots("value", stages, values.value_bytes, f"Ring of value blocks: {value}"),
    ]


def _small_regions(values: Values) -> list[SharedRegion]:
    rows = sum(row.slots for row in attention_barriers(values))
    scales = "What the softmax tells the correction: a factor for each row, then 1 / sum"
    tiles = "Tiles on their way from the loader to the other roles: first row, head, batch"
    return [
        SharedRegion("barriers", 0, 8 * rows, 8, rows, "mbarriers: see the barrier table"),
        SharedRegion("scale", 0, values.num_qo * TILE_ROWS * 4, 16, values.num_qo, scales),
        SharedRegion("tile", 0, TILE_SLOTS * 16, 16, TILE_SLOTS, tiles),
        SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory"),
    ]


def dynamic_shared_bytes(regions: tuple[SharedRegion, ...]) -> int:
    """Return what a launch asks for: the regions, and the room to align their base."""
    return align_up(regions[-1].end, BASE_ALIGNMENT) + SWIZZLE_ALIGNMENT


def most_stages(values: Values) -> int:
    """Return how many stages fit shared memory: 0 to 32; a fused ring needs two at least."""

    def fits(stages: int) -> bool:
        regions = attention_regions(replace(values, num_kv_stages=stages))
        return dynamic_shared_bytes(regions) <= values.arch.shared_bytes

    return len(list(takewhile(fits, range(1, MAX_STAGES + 1))))


def _slots(name: str, slots: int, slot_bytes: int, holds: str) -> SharedRegion:
    return SharedRegion(name, 0, slots * slot_bytes, SWIZZLE_ALIGNMENT, slots, holds)
