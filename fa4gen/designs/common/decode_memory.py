"""Regions of shared memory that kernels with shares of the keys have alike. Sizes in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.shared_memory import slots_of

if TYPE_CHECKING:
    from fa4gen.designs.common.model import SharedRegion

FLOAT_BYTES = 4
SLICE_BYTES = 32
PARKED_BYTES = 32
CHUNK = 16
"""Bytes: what vector accesses are aligned to."""


def combining_region(split_blocks: int) -> SharedRegion:
    """Return the region for combining in a CTA; ``split_blocks``: of a split of a fixed number."""
    if split_blocks:
        holds = "Whether this CTA combines the splits of a tile"
        return slots_of("combines", 1, FLOAT_BYTES, holds, alignment=CHUNK)
    holds = "What this CTA combines of the tile that it begins in, and of the one that it ends in"
    return slots_of("slices", 1, 2 * SLICE_BYTES, holds, alignment=CHUNK)
