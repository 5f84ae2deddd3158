"""Shared and tensor memory of the latent kernel on Blackwell. In bytes, or in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent_sm100.barriers import BUFFERS, latent_barriers
from fa4gen.designs.attention_latent_sm100.values import PAIR, STAGES, TILE_ROWS
from fa4gen.designs.common.decode_memory import CHUNK, PARKED_BYTES, combining_region
from fa4gen.designs.common.model import SharedRegion, TensorMemoryRegion
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, slots_of

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent_sm100.values import LatentPairValues

COMBINED_BYTES = 32
"""The bytes of a thread: four columns, a maximum, a sum."""


def latent_regions(values: LatentPairValues) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config, stages, dtype = values.config, STAGES, values.config.dtype
    columns = config.resolved_value_depth // PAIR
    line = "; before the first one the line of the sequences" * config.has_tile_lengths
    regions = [
        slots_of(
            "key", stages, values.key_bytes,
            f"Keys of a block that are this CTA's: {values.key_rows} x {config.depth} {dtype}, "
            "128-byte swizzle",
        ),
        slots_of(
            "value", stages, values.value_bytes,
            f"Columns of its values that are this CTA's: {values.BN} x {columns} {dtype}, "
            "128-byte swizzle",
        ),
        slots_of(
            "query", 1, TILE_ROWS * config.depth * values.element_bytes,
            f"Query: {TILE_ROWS} x {config.depth} {dtype}, 128-byte swizzle; between two of them "
            f"the output on its way out{line}",
        ),
        slots_of(
            "probabilities", 1, TILE_ROWS * values.BN * values.element_bytes,
            f"Probabilities of a block: {TILE_ROWS} x {values.BN} {dtype}, 128-byte swizzle",
        ),
        slots_of(
            "exchange", 2, WARPGROUP * COMBINED_BYTES,
            "Numbers that the two threads of a row exchange; after the last block, what threads "
            "combine together",
            alignment=CHUNK,
        ),
        combining_region(values.split_blocks),
        slots_of(
            "parked", values.num_consumer_warps, PARKED_BYTES,
            "What each consumer warp knows of the tile that it works on",
            alignment=CHUNK,
        ),
        SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory"),
        barrier_region(latent_barriers(values)),
    ]  # fmt: skip
    return lay_out(regions)


def tensor_memory_regions(values: LatentPairValues) -> tuple[TensorMemoryRegion, ...]:
    """Return the output, then the two buffers of scores.

    A product of 128 rows and N columns over a pair takes N / 2 columns: lanes 0 to 63 hold its
    first half, lanes 64 to 127 its second.
    """
    depth = values.config.resolved_value_depth
    output, scores = depth // 2, values.BN // 2
    return (
        TensorMemoryRegion(
            "o", 0, output, f"output: {TILE_ROWS} x {depth} float32, as two halves of {output}"
        ),
        *(
            TensorMemoryRegion(
                f"s_{name}", output + i * scores, scores,
                f"scores of {name} blocks: {TILE_ROWS} x {values.BN} float32, as two halves of "
                f"{scores}",
            )
            for i, name in enumerate(("even", "odd")[:BUFFERS])
        ),
    )  # fmt: skip
