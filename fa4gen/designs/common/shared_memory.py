"""The shared-memory map: regions one after the other, each aligned as it needs. Bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.common.model import BARRIER_BYTES, SharedRegion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.model import Barrier


SWIZZLE_ALIGNMENT = 1024
BASE_ALIGNMENT = 16
"""The alignment of dynamic shared memory if the kernel does not ask for more."""


def align_up(value: int, alignment: int) -> int:
    """Return the smallest multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment


def slots_of(
    name: str, slots: int, slot_bytes: int, holds: str, *, alignment: int = SWIZZLE_ALIGNMENT
) -> SharedRegion:
    """Return a region of equal slots that is not yet placed; swizzled ones if not said."""
    return SharedRegion(name, 0, slots * slot_bytes, alignment, slots, holds)


def barrier_region(rows: Sequence[Barrier]) -> SharedRegion:
    """Return the region of all slots of the barrier table."""
    slots = sum(row.slots for row in rows)
    holds = "mbarriers: see the barrier table"
    return slots_of("barriers", slots, BARRIER_BYTES, holds, alignment=BARRIER_BYTES)


def lay_out(regions: Sequence[SharedRegion]) -> tuple[SharedRegion, ...]:
    """Give each region its offset in bytes; the base is aligned to the first one's alignment."""
    laid_out = []
    offset = 0
    for region in regions:
        offset = align_up(offset, region.alignment)
        r = region
        laid_out.append(SharedRegion(r.name, offset, r.bytes, r.alignment, r.slots, r.holds))
        offset += region.bytes
    return tuple(laid_out)


def lay_out_barriers(rows: Sequence[Barrier], first_offset: int) -> tuple[Barrier, ...]:
    """Give each row its offset in bytes, one row after the other from ``first_offset`` on."""
    laid_out = []
    offset = first_offset
    for row in rows:
        laid_out.append(replace(row, offset=offset))
        offset += row.bytes
    return tuple(laid_out)


def dynamic_shared_bytes(regions: Sequence[SharedRegion], *, aligns_base: bool = True) -> int:
    """Return the bytes that a launch requests: the regions, and the room to align their base."""
    room = SWIZZLE_ALIGNMENT if aligns_base else 0
    return align_up(regions[-1].end, BASE_ALIGNMENT) + room
