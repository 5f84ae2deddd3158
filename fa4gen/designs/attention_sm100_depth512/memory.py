"""Shared and tensor memory at depth 512. Sizes and offsets in bytes, or in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.barriers import attention_barriers
from fa4gen.designs.attention_sm100_depth512.values import BLOCK_KEYS, CTA_ROWS, DEPTH, PART
from fa4gen.designs.common.blackwell_attention import SCALES_HOLD, tile_and_tensor_memory
from fa4gen.designs.common.model import SharedRegion, TensorMemoryRegion
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, most_that_fit, slots_of
from fa4gen.designs.common.values import MAX_KV_STAGES

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.values import Values


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    dtype = values.config.dtype
    queries = f"Queries: {CTA_ROWS} x {DEPTH} {dtype}; then the output on its way out"
    slots = f"Ring of parts of keys and values: {PART} x {PART} {dtype}, 128-byte swizzle"
    return lay_out(
        (
            slots_of("query", 1, values.query_bytes, queries),
            slots_of(
                "probabilities",
                1,
                values.probability_bytes,
                f"Probabilities of a block: {CTA_ROWS} x {BLOCK_KEYS} {dtype}, 128-byte swizzle",
            ),
            slots_of("kv", values.num_kv_stages, values.slot_bytes, slots),
            barrier_region(attention_barriers(values)),
            SharedRegion("scale", 0, 4 * 128, 16, 1, SCALES_HOLD),
            SharedRegion(
                "exchange", 0, 2 * 4 * 128, 16, 2, "Numbers that the two threads of a row exchange"
            ),
            *tile_and_tensor_memory(values.config),
        )
    )


def most_stages(values: Values) -> int:
    """Return how many slots fit shared memory: 0 to 32."""
    return most_that_fit(values, attention_regions, "num_kv_stages", MAX_KV_STAGES)


def tensor_memory_regions() -> tuple[TensorMemoryRegion, ...]:
    """Return the halves of the output, then the two buffers of scores.

    A product of 128 rows and N columns over a pair takes N / 2 columns: lanes 0 to 63 hold its
    first half, lanes 64 to 127 its second.
    """
    output, scores = DEPTH // 4, BLOCK_KEYS // 2
    half = f"{CTA_ROWS} x {DEPTH // 2} float32, as two halves of {output} columns"
    return (
        TensorMemoryRegion("o_lo", 0, output, f"output, first half: {half}"),
        TensorMemoryRegion("o_hi", output, output, f"output, second half: {half}"),
        *(
            TensorMemoryRegion(
                f"s_{name}",
                2 * output + i * scores,
                scores,
                f"scores of {name} blocks: {CTA_ROWS} x {BLOCK_KEYS} float32, as two halves of "
                f"{scores} columns",
            )
            for i, name in enumerate(("even", "odd"))
        ),
    )
