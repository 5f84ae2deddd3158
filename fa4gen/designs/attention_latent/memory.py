"""The shared-memory map of the latent kernel. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.barriers import latent_barriers
from fa4gen.designs.attention_latent.values import PARTS, STAGES
from fa4gen.designs.common.decode_memory import CHUNK, PARKED_BYTES, combining_region
from fa4gen.designs.common.decode_model import FLOAT_BYTES
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, slots_of

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent.values import LatentValues
    from fa4gen.designs.common.model import SharedRegion


def latent_regions(values: LatentValues) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config, rows = values.config, values.packed_rows
    regions = [
        slots_of(
            "kv",
            STAGES,
            values.block_bytes,
            f"Blocks of keys, whose first {config.resolved_value_depth} columns are the values: "
            f"{values.BN} x {config.depth} {config.dtype}, 128-byte swizzle",
        ),
        slots_of(
            "query",
            1,
            rows * config.depth * values.element_bytes,
            f"Query: {rows} x {config.depth} {config.dtype}, 128-byte swizzle"
            + "; before the first one the line of the sequences" * config.has_tile_lengths,
        ),
        slots_of(
            "exchange",
            1,
            rows * values.BN * values.element_bytes,
            f"Probabilities of a block: {rows} x {values.BN} {config.dtype}, 128-byte swizzle; "
            "after the last one, what threads combine together",
        ),
        slots_of(
            "maxima",
            PARTS,
            FLOAT_BYTES * rows,
            "Maximum of each row that the probabilities of a warpgroup's block belong to",
            alignment=CHUNK,
        ),
        slots_of(
            "statistics",
            PARTS,
            FLOAT_BYTES * rows,
            "Sum of each row, of each warpgroup's keys",
            alignment=CHUNK,
        ),
        combining_region(values.split_blocks),
        slots_of(
            "parked",
            values.num_consumer_warps + 1,
            PARKED_BYTES,
            "What each warp knows of the tile that it works on, the loader last",
            alignment=CHUNK,
        ),
        barrier_region(latent_barriers(values)),
    ]
    return lay_out(regions)
