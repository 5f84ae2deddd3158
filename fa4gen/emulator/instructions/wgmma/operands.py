"""The operands of wgmma in shared memory, and the part that each of the four warps reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from fa4gen.emulator.instructions.mma.descriptors import Descriptor
from fa4gen.emulator.instructions.mma.operand_tiles import tile_offsets, tile_ranges

TileKey: TypeAlias = tuple[Descriptor, bool, int, int, int]
"""A tile for ``tile_ranges``: descriptor, whether K-major, extent, depth, element bytes."""
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Byte ranges of shared memory: (start, stop)."""

_WARP_ROWS: Final = 16


@dataclass(frozen=True, slots=True)
class Operands:
    """The tiles of A (``left``) and of B (``right``) that products read from shared memory."""

    left: tuple[TileKey, ...]
    right: tuple[TileKey, ...]

    def ranges(self) -> Ranges:
        """All that the warpgroup reads."""
        return _tiles(self.left + self.right)

    def of_warp(self, warp: int) -> Ranges:
        """The reads of one warp: its 16 rows of A, and B."""
        return _of_warp(self, warp)


def joined(parts: Sequence[Operands]) -> Operands:
    """The operands of several products together."""
    if len(parts) == 1:
        return parts[0]
    return Operands(
        tuple(tile for part in parts for tile in part.left),
        tuple(tile for part in parts for tile in part.right),
    )


@lru_cache(maxsize=4096)
def _tiles(tiles: tuple[TileKey, ...]) -> Ranges:
    """The byte ranges of several tiles, joined: the K steps of a tile interleave."""
    return _join(part for tile in set(tiles) for part in tile_ranges(*tile))


@lru_cache(maxsize=1024)
def _of_warp(operands: Operands, warp: int) -> Ranges:
    rows = slice(warp * _WARP_ROWS, (warp + 1) * _WARP_ROWS)
    own = (
        (start, start + tile[-1])
        for tile in set(operands.left)
        for start in tile_offsets(*tile)[rows].ravel().tolist()
    )
    return _join((*own, *_tiles(operands.right)))


def _join(ranges: Iterable[tuple[int, int]]) -> Ranges:
    result: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(stop, result[-1][1]))
        else:
            result.append((start, stop))
    return tuple(result)
