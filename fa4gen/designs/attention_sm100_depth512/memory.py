"""Shared and tensor memory at depth 512. Sizes and offsets in bytes, or in columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import SWIZZLE_ALIGNMENT, dynamic_shared_bytes
from fa4gen.designs.attention_sm100_depth512.barriers import TILE_SLOTS, attention_barriers
from fa4gen.designs.attention_sm100_depth512.values import BLOCK_KEYS, CTA_ROWS, DEPTH, PART
from fa4gen.designs.shared.model import SharedRegion, TensorMemoryRegion
from fa4gen.designs.shared.shared_memory import lay_out_regions

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.values import Values

__all__ = ["attention_regions", "dynamic_shared_bytes", "most_stages", "tensor_memory_regions"]
MAX_STAGES = 32
"""The schema's limit."""


def attention_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    dtype = values.config.dtype
    rows = sum(row.slots for row in attention_barriers(values))
    queries = f"Queries: {CTA_ROWS} x {DEPTH} {dtype}; then the output on its way out"
    slots = f"Ring of parts of keys and values: {PART} x {PART} {dtype}, 128-byte swizzle"
    scales = "What the softmax tells the correction: a factor for each row, then 1 / sum"
    tiles = "Tiles on their way from the loader to the other roles: first row, head, batch"
    return lay_out_regions(
        (
            _swizzled("query", 1, values.query_bytes, queries),
            _swizzled(
                "probabilities",
                1,
                values.probability_bytes,
                f"Probabilities of a block: {CTA_ROWS} x {BLOCK_KEYS} {dtype}, 128-byte swizzle",
            ),
            _swizzled("kv", values.num_kv_stages, values.slot_bytes, slots),
            SharedRegion("barriers", 0, 8 * rows, 8, rows, "mbarriers: see the barrier table"),
            SharedRegion("scale", 0, 4 * 128, 16, 1, scales),
            SharedRegion(
                "exchange", 0, 2 * 4 * 128, 16, 2, "Numbers that the two threads of a row exchange"
            ),
            SharedRegion("tile", 0, TILE_SLOTS * 16, 16, TILE_SLOTS, tiles),
            SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory"),
        )
    )


def most_stages(values: Values) -> int:
    """Return how many slots fit shared memory: 0 to 32."""

    def fits(stages: int) -> bool:
        regions = attention_regions(replace(values, num_kv_stages=stages))
        return dynamic_shared_bytes(regions) <= values.arch.shared_bytes

    return len(list(takewhile(fits, range(1, MAX_STAGES + 1))))


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


def _swizzled(name: str, slots: int, slot_bytes: int, holds: str) -> SharedRegion:
    return SharedRegion(name, 0, slots * slot_bytes, SWIZZLE_ALIGNMENT, slots, holds)
