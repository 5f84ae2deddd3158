"""Tensor memory: columns of 128 lanes x 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.model import TensorMemoryRegion

SMALLEST_ALLOCATION = 32


def allocated_columns(regions: Sequence[TensorMemoryRegion]) -> int:
    """Return the columns to allocate: the power of two that holds every region."""
    end = max(region.end for region in regions)
    columns = SMALLEST_ALLOCATION
    while columns < end:
        columns *= 2
    return columns
