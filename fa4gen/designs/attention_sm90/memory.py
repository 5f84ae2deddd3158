"""The shared-memory map of the Hopper attention kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.barriers import TILE_SLOTS, attention_barriers
from fa4gen.designs.attention_sm90.values import ELEMENT_BYTES, WARPGROUP_ROWS
from fa4gen.designs.shared.model import SharedRegion
from fa4gen.designs.shared.shared_memory import align_up, lay_out_regions

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values

SWIZZLE_ALIGNMENT = 1024
BASE_ALIGNMENT = 16
"""What dynamic shared memory is aligned to without the kernel's doing."""
TILE_BYTES = 16
MAX_STAGES = 16
"""The schema's limit."""


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    swizzle = f"{values.panel_columns * ELEMENT_BYTES}-byte swizzle"
    queries = f"{WARPGROUP_ROWS} x {config.depth} {config.dtype}, {swizzle}"
    block = f"{values.BN} x {config.depth} {config.dtype}, {swizzle}"
    staging = "; then the output on its way to global memory"
    warpgroups = values.num_consumer_warpgroups
    return lay_out_regions(
        (
            _slots(
                "query",
                warpgroups,
                values.query_bytes,
                SWIZZLE_ALIGNMENT,
                f"Queries, one slot a consumer warpgroup: {queries}"
                + (staging if values.epilogue == "tma_store" else ""),
            ),
            _slots(
                "key",
                values.num_kv_stages,
                values.block_bytes,
                SWIZZLE_ALIGNMENT,
                f"Ring of key blocks: {block}",
            ),
            _slots(
                "value",
                values.num_kv_stages,
                values.block_bytes,
                SWIZZLE_ALIGNMENT,
                f"Ring of value blocks: {block}",
            ),
            _slots(
                "barriers",
                sum(row.slots for row in attention_barriers(values)),
                8,
                8,
                "mbarriers: see the barrier table",
            ),
            _slots(
                "tile",
                TILE_SLOTS,
                TILE_BYTES,
                16,
                "Tiles on their way from the loader to the consumers: "
                "first row, head, batch, active warpgroups",
            ),
        )
    )


def dynamic_shared_bytes(regions: tuple[SharedRegion, ...]) -> int:
    """Return what a launch asks for: the regions, and the room to align their base."""
    return align_up(regions[-1].end, BASE_ALIGNMENT) + SWIZZLE_ALIGNMENT


def most_stages(values: Values) -> int:
    """Return how many slots of each ring fit shared memory: 0 to 16."""

    def fits(stages: int) -> bool:
        regions = attention_regions(replace(values, num_kv_stages=stages))
        return dynamic_shared_bytes(regions) <= values.arch.shared_bytes

    return len(list(takewhile(fits, range(1, MAX_STAGES + 1))))


def _slots(name: str, slots: int, slot_bytes: int, alignment: int, holds: str) -> SharedRegion:
    return SharedRegion(name, 0, slots * slot_bytes, alignment, slots, holds)
