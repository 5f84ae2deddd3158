"""The shared-memory map at depth 512. Sizes and offsets in bytes.

There is no room to align a base within it: it starts where dynamic shared memory starts, which
is a multiple of 1024 because the kernel asks for that alignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.barriers import TILE_SLOTS, pair_barriers
from fa4gen.designs.attention_sm90_depth512.values import (
    BUFFERS,
    CHUNK_KEYS,
    CONSUMER_WARPGROUPS,
    OWN_COLUMNS,
    OWN_KEYS,
    PANEL_COLUMNS,
    RING_SLOTS,
    TILE_ROWS,
    WARPGROUP_ROWS,
)
from fa4gen.designs.shared.model import SharedRegion
from fa4gen.designs.shared.shared_memory import align_up, lay_out_regions

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values

SWIZZLE_ALIGNMENT = 1024
TILE_BYTES = 16


def pair_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from the start of dynamic shared memory."""
    dtype = values.config.dtype
    crossing = BUFFERS * CONSUMER_WARPGROUPS
    return lay_out_regions(
        (
            _slots(
                "query",
                values.num_panels,
                values.query_panel_bytes,
                SWIZZLE_ALIGNMENT,
                f"Queries of the tile, one slot a panel of {TILE_ROWS} x {PANEL_COLUMNS} {dtype}, "
                "128-byte swizzle",
            ),
            _slots(
                "probability",
                crossing,
                values.probability_bytes,
                SWIZZLE_ALIGNMENT,
                "Probabilities of the peer's keys, written by the peer, for each of two blocks and "
                f"warpgroup: {WARPGROUP_ROWS} x {OWN_KEYS} {dtype}, 128-byte swizzle",
            ),
            _slots(
                "ring",
                RING_SLOTS,
                values.slot_bytes,
                SWIZZLE_ALIGNMENT,
                f"Ring of keys and values, 128-byte swizzle: a panel of {OWN_KEYS} keys x "
                f"{PANEL_COLUMNS} columns, or {CHUNK_KEYS} keys x {OWN_COLUMNS} columns of values",
            ),
            _slots(
                "maximum",
                crossing,
                values.row_message_bytes,
                16,
                "Row maxima of the peer's scores, for each of two blocks and warpgroup",
            ),
            _slots(
                "sum",
                crossing,
                values.row_message_bytes,
                16,
                "Row sums of the peer's probabilities, for each of two tiles and warpgroup",
            ),
            _slots(
                "tile",
                TILE_SLOTS,
                TILE_BYTES,
                16,
                "Tiles on their way from the loader to the consumers: first row, head, batch",
            ),
            _slots(
                "barriers",
                sum(row.slots for row in pair_barriers(values)),
                8,
                8,
                "mbarriers: see the barrier table",
            ),
        )
    )


def dynamic_shared_bytes(regions: tuple[SharedRegion, ...]) -> int:
    """Return what a launch asks for: the regions and nothing else."""
    return align_up(regions[-1].end, 16)


def _slots(name: str, slots: int, slot_bytes: int, alignment: int, holds: str) -> SharedRegion:
    return SharedRegion(name, 0, slots * slot_bytes, alignment, slots, holds)
