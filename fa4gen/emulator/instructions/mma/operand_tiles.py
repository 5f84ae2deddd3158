"""Operand tiles of matrix products in shared memory: where elements lie, and their values.

The layouts are those of PTX ISA, "canonical layouts"; every 16-bit one and the 8-bit K-major ones
were checked against an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma.descriptors import Descriptor
from fa4gen.emulator.state.memory import RESERVED_SHARED, SharedMemory

CHUNK: Final = 16
# The swizzle looks at address bits below this many bytes.
_PATTERN: Final = 1024

ELEMENT_BYTES: Final = {
    "bf16": 2, "f16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "e2m3": 1, "e3m2": 1, "e2m1": 1,
    "s8": 1, "u8": 1,
}  # fmt: skip
_FLOAT8: Final[dict[str, Any]] = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}

# Bits of the narrow types. In shared memory sixteen of them follow each other without gaps from the
# beginning of a 16-byte chunk on; the rest of the chunk is padding.
NARROW: Final = {"e2m3": 6, "e3m2": 6, "e2m1": 4}

TileKey: TypeAlias = tuple[int, int, int, int, int, int, bool, int, int, int]
"""The key of the places of elements relative to a multiple of the pattern: the arguments below."""


def tile_offsets(
    descriptor: Descriptor, k_major: bool, mn: int, k: int, element_bytes: int
) -> NDArray[np.int64]:
    """Byte offsets of the elements in the CTA's shared memory, shape (mn, k)."""
    phase = descriptor.address % _PATTERN
    return (descriptor.address - phase) + _relative(
        phase, descriptor.leading, descriptor.stride, descriptor.base_offset, descriptor.span,
        descriptor.atom, k_major, mn, k, element_bytes,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _relative(
    phase: int, leading: int, stride: int, base_offset: int, span: int, atom: int, k_major: bool,
    mn: int, k: int, size: int,
) -> NDArray[np.int64]:  # fmt: skip
    row, column = np.arange(mn)[:, None], np.arange(k)[None, :]
    chunk = CHUNK // size
    if k_major and span:
        at = row % 8 * span + row // 8 * stride + column * size
    elif k_major:
        at = row % 8 * 16 + row // 8 * stride + column % chunk * size + column // chunk * leading
    elif span:
        per, group = span // size, 4 if atom == 32 else 8
        at = (row % per * size + row // per * leading
              + column % group * span + column // group * stride)  # fmt: skip
    else:
        at = (row % chunk * size + row // chunk * stride
              + column % 8 * 16 + column // 8 * leading)  # fmt: skip
    at = at + phase
    if span:
        line = (at >> 7) - base_offset & 7
        at = at ^ ((line & 3) << 5 if atom == 32 else (line & span // 16 - 1) << 4)
    at.flags.writeable = False
    return at


@lru_cache(maxsize=1024)
def _chunks(
    phase: int, leading: int, stride: int, base_offset: int, span: int, atom: int, k_major: bool,
    mn: int, k: int, size: int,
) -> NDArray[np.int64]:  # fmt: skip
    """Offsets of the 16-byte chunks, in chunks relative to the pattern's start."""
    at = _relative(phase, leading, stride, base_offset, span, atom, k_major, mn, k, size)
    step = CHUNK // size
    picked = at[:, ::step] if k_major else at[::step, :]
    result: NDArray[np.int64] = np.ascontiguousarray(picked >> 4)
    return result


@lru_cache(maxsize=1024)
def _relative_ranges(
    phase: int, leading: int, stride: int, base_offset: int, span: int, atom: int, k_major: bool,
    mn: int, k: int, size: int,
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    at = np.unique(_chunks(
        phase, leading, stride, base_offset, span, atom, k_major, mn, k, size
    ))  # fmt: skip
    breaks = np.flatnonzero(np.diff(at) != 1) + 1
    starts = at[np.concatenate([[0], breaks])] * CHUNK
    stops = (at[np.concatenate([breaks - 1, [len(at) - 1]])] + 1) * CHUNK
    return tuple((int(a), int(b)) for a, b in zip(starts, stops, strict=True))


@lru_cache(maxsize=1024)
def _bounds(*key: Any) -> tuple[int, int]:
    """The start and end of a tile, relative to the pattern's start."""
    ranges = _relative_ranges(*key)
    return ranges[0][0], ranges[-1][1]


def _key(descriptor: Descriptor, k_major: bool, mn: int, k: int, size: int) -> tuple[int, TileKey]:
    phase = descriptor.address % _PATTERN
    return descriptor.address - phase, (
        phase, descriptor.leading, descriptor.stride, descriptor.base_offset, descriptor.span,
        descriptor.atom, k_major, mn, k, size,
    )  # fmt: skip


def tile_ranges(
    descriptor: Descriptor, k_major: bool, mn: int, k: int, element_bytes: int
) -> tuple[tuple[int, int], ...]:
    """The byte ranges that a tile touches, coalesced: ((start, stop), …) in shared memory."""
    base, key = _key(descriptor, k_major, mn, k, element_bytes)
    return tuple((base + a, base + b) for a, b in _relative_ranges(*key))


def inside(
    shared: SharedMemory, descriptor: Descriptor, k_major: bool, mn: int, k: int, size: int
) -> bool:
    """Whether a tile is inside the CTA's own shared memory."""
    base, key = _key(descriptor, k_major, mn, k, size)
    first, last = _bounds(*key)
    return base + first >= RESERVED_SHARED and base + last <= shared.size


def read_tiles(
    shared: SharedMemory,
    descriptors: Sequence[Descriptor],
    k_major: bool,
    mn: int,
    k: int,
    kind: str,
) -> NDArray[Any]:
    """The values of tiles side by side, shape (mn, k * tiles): float32, or int32 for s8 and u8.

    Narrow types have to be K-major.
    """
    size = ELEMENT_BYTES[kind]
    places = [_key(descriptor, k_major, mn, k, size) for descriptor in descriptors]
    first = places[0][0]
    at = _joined(tuple((base - first, key) for base, key in places)) + (first >> 4)
    # sixteen bytes at a time, by NumPy's only plain type of that width
    chunks = shared.data.view(np.complex128).take(at)
    per = CHUNK // size
    raw = chunks.view(np.dtype(f"u{size}"))
    if kind in NARROW:
        raw = taken_apart(raw, NARROW[kind])
    if not k_major:
        depth = at.shape[1]
        raw = raw.reshape(mn // per, depth, per).transpose(0, 2, 1).reshape(mn, depth)
    return values_of(raw, kind)


def taken_apart(raw: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The elements of narrow types, one in each byte, from rows of chunks."""
    count = len(raw)
    groups = np.unpackbits(raw.reshape(count, -1, CHUNK)[:, :, : 2 * bits], -1, bitorder="little")
    parts: NDArray[np.uint8] = np.packbits(
        groups.reshape(count, -1, bits), axis=-1, bitorder="little"
    )
    return parts[..., 0]


@lru_cache(maxsize=1024)
def _joined(places: tuple[tuple[int, TileKey], ...]) -> NDArray[np.int64]:
    """Chunks of tiles side by side along K, each ``base`` bytes from the first."""
    if len(places) == 1:
        return _chunks(*places[0][1])
    return np.concatenate([_chunks(*key) + (base >> 4) for base, key in places], axis=1)


def values_of(raw: NDArray[Any], kind: str) -> NDArray[Any]:
    """Raw unsigned elements as numbers: float32, or int32 for s8 and u8."""
    if kind == "bf16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind == "f16":
        return raw.view(np.float16).astype(np.float32)
    if kind == "tf32":
        return np.asarray((raw & np.uint32(0xFFFFE000)).view(np.float32))
    if kind == "s8":
        return raw.view(np.int8).astype(np.int32)
    if kind == "u8":
        return raw.astype(np.int32)
    bits = NARROW.get(kind, 8)
    numbers: NDArray[np.float32] = _table(kind, bits).take(
        raw if bits == 8 else raw & np.uint8((1 << bits) - 1)
    )
    return numbers


@lru_cache(maxsize=8)
def _table(kind: str, bits: int) -> NDArray[np.float32]:
    codes = np.arange(1 << bits, dtype=np.uint8)
    with np.errstate(all="ignore"):
        values: NDArray[np.float32] = codes.view(_FLOAT8[kind]).astype(np.float32)
    return values
