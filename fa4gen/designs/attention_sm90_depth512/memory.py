"""The shared-memory map at depth 512. Sizes and offsets in bytes.

There is no room to align a base within it: it starts where dynamic shared memory starts, which
is a multiple of 1024 because the kernel asks for that alignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.barriers import pair_barriers
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
from fa4gen.designs.common.barriers import TILE_SLOTS
from fa4gen.designs.common.shared_memory import (
    barrier_region,
    lay_out,
    slots_of,
    tile_bytes,
    tile_lengths,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values
    from fa4gen.designs.common.model import SharedRegion


def pair_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from the start of dynamic shared memory."""
    dtype = values.config.dtype
    crossing = BUFFERS * CONSUMER_WARPGROUPS
    return lay_out(
        (
            slots_of(
                "query",
                values.num_panels,
                values.query_panel_bytes,
                f"Queries of the tile, one slot a panel of {TILE_ROWS} x {PANEL_COLUMNS} {dtype}, "
                "128-byte swizzle",
            ),
            slots_of(
                "probability",
                crossing,
                values.probability_bytes,
                "Probabilities of the peer's keys, written by the peer, for each of two blocks and "
                f"warpgroup: {WARPGROUP_ROWS} x {OWN_KEYS} {dtype}, 128-byte swizzle",
            ),
            slots_of(
                "ring",
                RING_SLOTS,
                values.slot_bytes,
                f"Ring of keys and values, 128-byte swizzle: a panel of {OWN_KEYS} keys x "
                f"{PANEL_COLUMNS} columns, or {CHUNK_KEYS} keys x {OWN_COLUMNS} columns of values",
            ),
            slots_of(
                "maximum",
                crossing,
                values.row_message_bytes,
                "Row maxima of the peer's scores, for each of two blocks and warpgroup",
                alignment=16,
            ),
            slots_of(
                "sum",
                crossing,
                values.row_message_bytes,
                "Row sums of the peer's probabilities, for each of two tiles and warpgroup",
                alignment=16,
            ),
            slots_of(
                "tile",
                TILE_SLOTS,
                tile_bytes(values.config),
                "Tiles on their way from the loader to the consumers: first row, head, batch"
                + tile_lengths(values.config),
                alignment=16,
            ),
            barrier_region(pair_barriers(values)),
        )
    )
