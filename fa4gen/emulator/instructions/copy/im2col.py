"""Pixels of an im2col map (PTX ISA, "im2col mode"): the rows of a convolution's matrix.

A copy begins at one position of the filter and continues with the next ones: along W, then H, then
D, within the bounding box, and on to the next image. The pixel of a position is ``offsets``
further: the place in the filter. Pixels outside the tensor are filled, or not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.boxes import Chunks, Combine, as_tf32, fill_of
from fa4gen.emulator.instructions.copy.swizzle import CHUNK
from fa4gen.emulator.state.decoded_map import Corners, DecodedMap
from fa4gen.emulator.state.map_bits import MapError
from fa4gen.emulator.state.memory import GLOBAL_BASE, GlobalMemory


@dataclass(frozen=True, slots=True)
class Pixels:
    """The pixels of a copy that are in the tensor.

    ``numbers`` are theirs among all pixels of the copy, ``starts`` the addresses of their first
    channel inside; channels from ``first`` to ``last`` (exclusive) of each pixel are inside.
    """

    map: DecodedMap
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    first: int
    last: int

    @property
    def empty(self) -> bool:
        return not len(self.numbers) or self.last <= self.first

    @property
    def whole(self) -> bool:
        return (len(self.numbers), self.last - self.first) == self.map.counts[::-1]

    @property
    def address(self) -> int:
        return int(self.starts.min())

    @property
    def end(self) -> int:
        return int(self.starts.max()) + self._width

    @property
    def _width(self) -> int:
        return (self.last - self.first) * self.map.element.size

    def rows(self) -> tuple[NDArray[np.int64], int]:
        """The addresses of the pixels inside, and the bytes of each."""
        return self.starts, self._width

    def _bytes(self) -> NDArray[np.int64]:
        """Indices into global memory: (pixels inside, bytes of each)."""
        index: NDArray[np.int64] = self.starts[:, None] - GLOBAL_BASE + np.arange(self._width)
        return index

    def load(self, memory: GlobalMemory) -> Chunks:
        """Read the pixels; those outside the tensor are filled."""
        m = self.map
        dtype = np.dtype(f"u{m.element.size}")
        staging = np.full(m.counts[::-1], fill_of(m), dtype)
        if not self.empty:
            inside = memory.data[self._bytes()].view(dtype)
            staging[self.numbers, self.first : self.last] = inside
        chunks = staging.reshape(-1).view(np.complex128)
        return as_tf32(chunks) if m.element.name == "tf32" else chunks

    def store(self, memory: GlobalMemory, chunks: Chunks, combine: Combine | None = None) -> None:
        """Write the pixels; ``combine(old, new)`` gives the elements, None writes the new ones."""
        if self.empty:
            return
        m = self.map
        dtype = m.element.dtype if combine else np.dtype(f"u{m.element.size}")
        staging = chunks.view(dtype).reshape(m.counts[::-1])
        new = np.ascontiguousarray(staging[self.numbers, self.first : self.last])
        index = self._bytes()
        if combine:
            new = combine(memory.data[index].view(dtype), new)
        memory.data[index] = np.ascontiguousarray(new).view(np.uint8)


def place_pixels(
    m: DecodedMap, coordinates: Sequence[int], offsets: Sequence[int], *, chunked: bool
) -> Pixels:
    """The pixels from ``coordinates`` (channel, W, H, D, image) on.

    Raises MapError where these are outside of the bounding box, or a store (``chunked``) could
    leave the image.
    """
    corners = m.corners
    assert corners is not None
    if chunked and (min(corners.lower) < 0 or max(corners.upper) > 0):
        raise MapError("a store by an im2col map with a bounding box beyond the image")
    channel, *position = coordinates
    places = np.array(_positions(m, corners, position), np.int64)
    places[:, : len(offsets)] += np.array(offsets, np.int64)
    inside = ((places >= 0) & (places < np.array(m.dims[1:]))).all(axis=1)
    numbers = np.flatnonzero(inside)
    count, size = m.counts[0], m.element.size
    first = max(0, -channel)
    last = min(count, m.dims[0] - channel)
    if chunked and 0 < last < count:
        each = CHUNK // size
        last = min(count, -(-last // each) * each)
    starts = m.address + (channel + first) * size + (places[numbers] * m.strides[1:]).sum(axis=1)
    return Pixels(m, numbers, starts, first, last)


def _positions(m: DecodedMap, corners: Corners, begin: list[int]) -> list[list[int]]:
    """The filter's positions of all pixels, W first and the image last."""
    lows = corners.lower
    highs = [size - 1 + up for size, up in zip(m.dims[1:-1], corners.upper, strict=True)]
    for axis, (first, low, high) in enumerate(zip(begin, lows, highs, strict=False), 1):
        if not low <= first <= high:
            raise MapError(
                f"an im2col copy from {first} in dimension {axis}; the bounding box has {low} to "
                f"{high}"
            )
    places = []
    at = list(begin)
    for _ in range(m.counts[1]):
        places.append(list(at))
        for axis, (low, high) in enumerate(zip(lows, highs, strict=True)):
            at[axis] += m.steps[axis + 1]
            if at[axis] <= high:
                break
            at[axis] = low
        else:
            at[-1] += 1
    return places
