"""Operands of tcgen05.mma in shared memory: their layout there, and their numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma.descriptors import Descriptor
from fa4gen.emulator.instructions.mma.operand_tiles import (
    CHUNK,
    ELEMENT_BYTES,
    NARROW,
    tile_ranges,
    values_of,
)
from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import InstructionDescriptor


def stored(kind: InstructionDescriptor, of_a: bool) -> tuple[str, int]:
    """The layout of A or B in memory: the type and number of elements along K.

    Packed 4-bit elements are looked at as bytes; a sparse A has half of the elements.
    """
    element, k = (kind.a, kind.k // (1 + kind.sparse)) if of_a else (kind.b, kind.k)
    return ("u8", k // 2) if kind.packed else (element, k)


def numbers(tile: NDArray[Any], kind: InstructionDescriptor) -> NDArray[np.float32]:
    """A tile in float32; bytes of packed 4-bit elements are taken apart, low half first."""
    if kind.packed:
        raw = tile.astype(np.uint8)
        both = np.stack([raw & np.uint8(15), raw >> np.uint8(4)], axis=-1)
        tile = values_of(both.reshape(len(raw), -1), "e2m1")
    return tile.astype(np.float32, copy=False)


@lru_cache(maxsize=4096)
def extent(descriptor: Descriptor, k_major: bool, mn: int, k: int, kind: str) -> tuple[int, int]:
    """The first byte of a tile in shared memory and one past its last."""
    ranges = tile_ranges(descriptor, k_major, mn, k, ELEMENT_BYTES[kind])
    return ranges[0][0], ranges[-1][1]


@lru_cache(maxsize=4096)
def ranges(
    descriptor: Descriptor, k_major: bool, mn: int, k: int, kind: str
) -> tuple[tuple[int, int], ...]:
    """The bytes of a tile, gaps within swizzled lines closed: they are other steps of K.

    The padding of narrow elements is left out: it may be unwritten.
    """
    if kind in NARROW:
        return tuple(
            (chunk, chunk + 2 * NARROW[kind])
            for start, stop in tile_ranges(descriptor, k_major, mn, k, ELEMENT_BYTES[kind])
            for chunk in range(start, stop, CHUNK)
        )
    merged: list[tuple[int, int]] = []
    widest = 2 * descriptor.span
    for start, stop in tile_ranges(descriptor, k_major, mn, k, ELEMENT_BYTES[kind]):
        if merged and start - merged[-1][1] < widest:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return tuple(merged)
