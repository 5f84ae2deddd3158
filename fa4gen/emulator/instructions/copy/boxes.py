"""Boxes of a tensor: their elements in global memory, and their lines in shared memory.

A box travels as a flat array of 16-byte chunks (complex128, which NumPy moves whole), line after
line, dimension 0 fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.swizzle import CHUNK, LINE, box_order
from fa4gen.emulator.state.decoded_map import DecodedMap
from fa4gen.emulator.state.memory import GLOBAL_BASE, GlobalMemory, SharedMemory

Chunks: TypeAlias = NDArray[np.complex128]
Combine: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

# the bytes of NaN fill, repeated over the element (seen for the 16-bit types)
_NAN: Final = 0x7FF7_7FF7_7FF7_7FF7
# addresses are modulo 2^64: with a stride of 2^34 - s, coordinate 2^30 steps back by 2^30 s bytes
# (seen on an H200), by which kernels clip a box at any row of a tensor
_ADDRESSES: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Box:
    """The part of a box that is in the tensor.

    ``first`` and ``last`` (exclusive) count copied elements per dimension, dimension 0 first;
    ``address`` is that of the first element inside, ``end`` one past the last byte inside.
    ``whole``: nothing is outside. ``empty``: everything is.
    """

    map: DecodedMap
    first: tuple[int, ...]
    last: tuple[int, ...]
    address: int
    end: int
    whole: bool
    empty: bool

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from element to copied element in global memory, outermost dimension first."""
        m = self.map
        return tuple(s * t for s, t in zip(reversed(m.strides), reversed(m.steps), strict=True))

    def rows(self) -> tuple[NDArray[np.int64], int]:
        """The lines inside: their addresses in global memory and the bytes of each."""
        m = self.map
        counts = [b - a for a, b in zip(self.first, self.last, strict=True)]
        strides = self.strides[::-1]
        starts = np.array([self.address], np.int64)
        first = 0 if m.steps[0] != 1 else 1
        width = m.element.size * (counts[0] if first else 1)
        for count, stride in zip(counts[first:], strides[first:], strict=True):
            if len(starts) == 1 and stride == width:
                width *= count
            else:
                starts = (starts[:, None] + stride * np.arange(count)).reshape(-1)
        return starts, width

    def elements(self, memory: GlobalMemory, dtype: Any) -> NDArray[Any]:
        """A view of the elements inside, outermost dimension first."""
        shape = tuple(b - a for a, b in zip(reversed(self.first), reversed(self.last), strict=True))
        return np.ndarray(shape, dtype, memory.data.data, self.address - GLOBAL_BASE, self.strides)

    def inside(self, staging: NDArray[Any]) -> NDArray[Any]:
        """The part of a full box (outermost dimension first) that is inside."""
        return staging[
            tuple(
                slice(a, b) for a, b in zip(reversed(self.first), reversed(self.last), strict=True)
            )
        ]

    def _lines(self, memory: GlobalMemory) -> Chunks:
        m = self.map
        shape = (*reversed(m.counts[1:]), m.moved_bytes // CHUNK)
        strides = (*self.strides[:-1], CHUNK)
        at = self.address - GLOBAL_BASE
        return np.ndarray(shape, np.complex128, memory.data.data, at, strides)

    def load(self, memory: GlobalMemory) -> Chunks:
        """Read the box; elements outside the tensor are filled."""
        m = self.map
        if self.whole:
            chunks = self._lines(memory).reshape(-1)
            return as_tf32(chunks) if m.element.name == "tf32" else chunks
        dtype = np.dtype(f"u{m.element.size}")
        shape = tuple(reversed(m.counts))
        staging = np.full(shape, fill_of(m), dtype)
        if not self.empty:
            self.inside(staging)[...] = self.elements(memory, dtype)
        chunks = staging.reshape(-1).view(np.complex128)
        return as_tf32(chunks) if m.element.name == "tf32" else chunks

    def store(self, memory: GlobalMemory, chunks: Chunks, combine: Combine | None = None) -> None:
        """Write the box; elements outside the tensor are dropped, in dimension 0 by chunks.

        ``combine(old, new)`` gives the elements to write; None writes the new ones.
        """
        m = self.map
        if self.empty:
            return
        if self.whole and combine is None:
            view = self._lines(memory)
            view[...] = chunks.reshape(view.shape)
            return
        dtype = m.element.dtype if combine else np.dtype(f"u{m.element.size}")
        staging = chunks.view(dtype).reshape(tuple(reversed(m.counts)))
        target = self.elements(memory, dtype)
        new = self.inside(staging)
        target[...] = combine(target, new) if combine else new


def fill_of(m: DecodedMap) -> int:
    """The bits of elements outside the tensor."""
    return _NAN & ((1 << 8 * m.element.size) - 1) if m.nan_fill else 0


def as_tf32(chunks: Chunks) -> Chunks:
    """Float32 after a load as TF32: rounded to nearest, ties to even; NaN stays NaN."""
    bits = chunks.view(np.uint32).astype(np.uint64)
    near = bits + 0xFFF + (bits >> 13 & 1)
    nan = (bits & 0x7FFF_FFFF) > 0x7F80_0000
    result: Chunks = np.where(nan, bits, near & 0xFFFF_E000).astype(np.uint32).view(np.complex128)
    return result


def place_box(m: DecodedMap, coordinates: Sequence[int], *, chunked: bool = False) -> Box:
    """The box at ``coordinates`` (dimension 0 first).

    ``chunked``: dimension 0 is clipped to whole 16-byte chunks only, as stores do.
    """
    first, last = [], []
    address = end = m.address
    whole, empty = True, False
    for axis, (at, count, step, size, stride) in enumerate(
        zip(coordinates, m.counts, m.steps, m.dims, m.strides, strict=True)
    ):
        low = max(0, -(at // step)) if at < 0 else 0
        exact = high = min(count, -((at - size) // step))
        if chunked and axis == 0 and 0 < high < count:
            each = CHUNK // m.element.size
            high = min(count, -(-high // each) * each)
        if high <= low:
            empty = True
        whole = whole and low == 0 and high == count
        first.append(low)
        last.append(high)
        address += (at + low * step) * stride
        end += (at + (exact - 1) * step) * stride
    address %= _ADDRESSES
    end = end % _ADDRESSES + m.element.size
    return Box(m, tuple(first), tuple(last), address, end, whole, empty)


def write_shared(shared: SharedMemory, offset: int, m: DecodedMap, chunks: Chunks) -> None:
    """Lay down a box at ``offset``, a multiple of 128."""
    wide = shared.data.view(np.complex128)
    at = offset // CHUNK
    if not m.span:
        wide[at : at + len(chunks)] = chunks
        return
    each = m.inner_bytes // CHUNK
    order = box_order(len(chunks) // each, each, offset // LINE % 8, m.span, m.atom)
    if m.inner_bytes == m.span:
        # the order is its own inverse, and reading along it is the faster way
        np.take(chunks, order, out=wide[at : at + len(chunks)], mode="clip")
    else:
        wide[order + at] = chunks


def read_shared(shared: SharedMemory, offset: int, m: DecodedMap, chunks: int) -> Chunks:
    """Read the ``chunks`` chunks of a box that is at ``offset``, a multiple of 128."""
    wide = shared.data.view(np.complex128)
    at = offset // CHUNK
    if not m.span:
        return wide[at : at + chunks].copy()
    each = m.inner_bytes // CHUNK
    order = box_order(chunks // each, each, offset // LINE % 8, m.span, m.atom)
    result: Chunks = wide[at:].take(order, mode="clip")
    return result


def pieces(m: DecodedMap, offset: int, lines: int) -> tuple[tuple[int, int], ...]:
    """The byte ranges, as starts and ends, of ``lines`` lines of a box from ``offset`` on.

    They are one piece, unless the box is narrower than its swizzle: lines are a swizzle span apart,
    and the bytes between them are neither read nor written.
    """
    if m.pitch == m.inner_bytes:
        return ((offset, offset + lines * m.pitch),)
    return _narrow_pieces(m.inner_bytes // CHUNK, m.span, m.atom, offset, lines)


@lru_cache(maxsize=1024)
def _narrow_pieces(
    chunks: int, span: int, atom: int, offset: int, lines: int
) -> tuple[tuple[int, int], ...]:
    order = np.sort(box_order(lines, chunks, offset // LINE % 8, span, atom))
    breaks = np.flatnonzero(np.diff(order) != 1)
    starts = order[np.concatenate(([0], breaks + 1))] * CHUNK + offset
    ends = order[np.concatenate((breaks, [len(order) - 1]))] * CHUNK + CHUNK + offset
    return tuple(zip(starts.tolist(), ends.tolist(), strict=True))
