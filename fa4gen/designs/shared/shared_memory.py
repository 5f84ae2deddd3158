"""The shared-memory map: regions one behind the other, each aligned as it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.shared.model import SharedRegion


def align_up(value: int, alignment: int) -> int:
    """Return the smallest multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment


def lay_out_regions(regions: Sequence[SharedRegion]) -> tuple[SharedRegion, ...]:
    """Give each region its offset in bytes; the base is aligned to the first one's alignment."""
    laid_out = []
    offset = 0
    for region in regions:
        offset = align_up(offset, region.alignment)
        laid_out.append(replace(region, offset=offset))
        offset += region.bytes
    return tuple(laid_out)
