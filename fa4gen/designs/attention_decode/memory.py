"""The shared-memory map of the decode kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_decode.barriers import decode_barriers
from fa4gen.designs.attention_decode.values import (
    MAX_STAGES,
)
from fa4gen.designs.common.decode_memory import CHUNK, combining_region, line_bytes
from fa4gen.designs.common.decode_model import FLOAT_BYTES, WARP
from fa4gen.designs.common.shared_memory import (
    barrier_region,
    lay_out,
    most_that_fit,
    slots_of,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.values import Values
    from fa4gen.designs.common.model import SharedRegion


def decode_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    swizzle = f"{values.panel_columns * values.kv_element_bytes}-byte swizzle"
    rows = values.packed_rows
    regions = [
        slots_of(
            "kv",
            values.num_kv_stages,
            values.block_bytes,
            "Ring of blocks, keys and values in turn: "
            f"{values.BN} x {config.depth} {config.resolved_kv_dtype}, {swizzle}",
        ),
        *_query_region(values, swizzle),
        slots_of(
            "exchange",
            values.num_parts,
            values.exchange_bytes,
            f"Output of each {values.part_words}'s keys, "
            f"{rows} x {values.exchange_columns} float32 at a time",
            alignment=CHUNK,
        ),
        *_statistics_region(values),
        combining_region(values.split_blocks),
        barrier_region(decode_barriers(values)),
    ]
    if config.has_tile_lengths:
        line, sums = line_bytes()
        regions += [
            slots_of(
                "line",
                1,
                line,
                "Blocks of a tile of each sequence before this one, and of all",
                alignment=CHUNK,
            ),
            slots_of(
                "line_sums",
                1,
                sums,
                f"Blocks of {WARP} sequences, added up by a warp",
                alignment=CHUNK,
            ),
        ]
    return lay_out(regions)


def _query_region(values: Values, swizzle: str) -> tuple[SharedRegion, ...]:
    """Return the region of the query for products, unless warps hold it in registers."""
    if not values.query_in_shared:
        return ()
    config = values.config
    holds = f"Query: {values.packed_rows} x {config.depth} {config.dtype}, {swizzle}"
    return (slots_of("query", 1, values.query_bytes, holds),)


def _statistics_region(values: Values) -> tuple[SharedRegion, ...]:
    """Return the region of parts' maxima and sums; a row that one warpgroup has needs none."""
    if values.is_wide and values.num_parts == 1:
        return ()
    size = 2 * FLOAT_BYTES * values.packed_rows
    holds = f"Maximum and sum of each row, of each {values.part_words}'s keys"
    return (slots_of("statistics", values.num_parts, size, holds, alignment=CHUNK),)


def most_stages(values: Values) -> int:
    """Return how many slots of the ring fit shared memory: 0 to 16."""
    return most_that_fit(values, decode_regions, "num_kv_stages", MAX_STAGES)
