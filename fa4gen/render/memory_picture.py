"""Draws a plan's shared-memory map as text, to scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.model import SharedRegion

_MAX_LINES = 32
_WIDTH = 58


def bytes_per_line(limit: int) -> int:
    """Return the power of two, in bytes, at which ``limit`` bytes take at most 32 lines."""
    scale = 1
    while scale * _MAX_LINES < limit:
        scale *= 2
    return scale


def kibibytes(count: int) -> str:
    """Return a number of bytes for people: 144 B, 16 KiB, 22.5 KiB."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f}".removesuffix(".0") + " KiB"


def shared_memory_picture(regions: Sequence[SharedRegion], limit: int) -> list[str]:
    """Return the lines of the drawing: regions by offset, the gaps, and what is free of ``limit``.

    A line represents ``bytes_per_line(limit)`` bytes; anything smaller takes one line.
    """
    scale = bytes_per_line(limit)
    lines: list[str] = []
    end = 0
    for region in sorted(regions, key=lambda r: r.offset):
        if region.offset > end:
            lines += _block(end, region.offset - end, "(gap)", 1, scale)
        slots = f"{region.slots} x " if region.slots > 1 else ""
        label = f"{region.name}: {slots}{kibibytes(region.slot_bytes)}"
        lines += _block(region.offset, region.bytes, label, region.slots, scale)
        end = region.end
    if end < limit:
        lines += _block(end, limit - end, f"free: {kibibytes(limit - end)}", 1, scale)
    lines[0] = lines[0].replace("├", "┌").replace("┤", "┐")
    return [*lines, f"{max(end, limit):>9} └{'─' * _WIDTH}┘"]


def _block(offset: int, size: int, label: str, slots: int, scale: int) -> list[str]:
    """Return the lines of one region, the first of which is its upper border with its label."""
    height = max(1, round(size / scale))
    lines = [f"{offset:>9} ├{_ruled(label, '─')}┤", *[f"{'':>9} │{'':{_WIDTH}}│"] * (height - 1)]
    if slots < height:
        for slot in range(1, slots):
            start = slot * size // slots
            line = max(1, min(height - 1, round(start / scale)))
            lines[line] = f"{offset + start:>9} ├{_ruled(f'[{slot}]', '╌')}┤"
    return lines


def _ruled(label: str, rule: str) -> str:
    return f"{rule} {label[: _WIDTH - 4]} ".ljust(_WIDTH, rule)
