"""The 128 bytes of a tensor map, with the place of each field for driver and ``tensormap.replace``.

The layout is documented nowhere. It was found by giving cuTensorMapEncodeTiled every parameter
bit by bit (driver 580, an H100) and by running every ``tensormap.replace`` on that GPU: both agree.
For Blackwell the same is assumed, since ptxas expands ``tensormap.replace`` for sm_100a like that;
the atomicity of swizzles, which Hopper lacks, is known from there alone.

As 32-bit words: 0 and 1 the address; 2 the flags below; 3 to 6 strides of dimensions 1 to 4 in
units of 16 bytes, the four highest bits of each in word 7; 8 to 12 extents less one; 13 element
strides less one, three bits each, and in its highest byte the box of dimension 0 less one; 14 the
other box sizes less one, a byte each. Later words of the driver do not steer copies: 16 the bytes
of a box, 18 the alignment in shared memory that the swizzle asks for. A map of zeros of which every
field was replaced has zeros there, and works; so does one of CuTe DSL, whose host code writes the
first 64 bytes itself and leaves the others as they are.

Bit 0 of word 2 marks im2col maps: channels less one are in the highest byte of word 13, pixels less
one in word 15, and the corners, two's complement, in word 14. Which corner and which dimension come
first there is not known: the numbers in the driver's maps that were seen fit several orders. Maps
made here have the lower corner first, W first in it, and say so in their last word; other maps are
read only where every order gives the same.

Two bits of word 2 change nothing here. Bit 1 is set in maps of CuTe DSL, which Hopper takes like
others. Bit 21 is set by drivers for Blackwell and by CuTe DSL for tensors of 128 KiB and more; for
smaller ones CUTLASS and Triton clear the bit that drivers up to 13.1 set, for it makes copies fail
there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MAP_BYTES: Final = 128
MAP_ALIGN: Final = 64
MAX_RANK: Final = 5

_WORDS: Final = struct.Struct("<32I")
_IM2COL: Final = 1
_RANK: Final = 4
_ELEMENT: Final = 7
_INTERLEAVE: Final = 11
_SWIZZLE: Final = 13
_FILL: Final = 15
_TF32: Final = 16
_L2: Final = 17
_ATOMICITY: Final = 19
_SWIZZLE_HIGH: Final = 22
_KNOWN_FLAGS: Final = (1 << 23) - 1 & ~0b1100
_BOX_ZERO: Final = 24
_STEP_BITS: Final = 3

CORNER_BITS: Final = {3: 16, 4: 8, 5: 5}  # of a corner in one dimension, by rank
_MOST_PIXELS: Final = 1024
_OUR_ORDER: Final = 0x6D326369

ARRAY_FIELDS: Final = ("global_stride", "global_dim", "box_dim", "element_stride")
# fields of word 2 that tensormap.replace writes: lowest bit and how many
_FLAGS: Final = {
    "rank": (_RANK, 3),
    "interleave_layout": (_INTERLEAVE, 2),
    "fill_mode": (_FILL, 1),
    "swizzle_atomicity": (_ATOMICITY, 3),
}
FIELDS: Final = ("global_address", "elemtype", "swizzle_mode", *_FLAGS, *ARRAY_FIELDS)

# numbers of element types in PTX that differ from the four bits in the map
_TF32_ELEMENTS: Final = {11: 7, 12: 8}
_SMALL_ELEMENTS: Final = {13: 11, 14: 12, 15: 13}


class MapError(ValueError):
    """An error in a tensor map."""


@dataclass(frozen=True, slots=True)
class MapFields:
    """The numbers in a map, dimension 0 first; ``rank`` entries each, strides one less.

    Numbers of ``element``, ``interleave``, ``swizzle``, ``atomicity`` and ``fill`` are those of
    ``tensormap.replace``; ``l2`` is the driver's L2 promotion. Im2col maps have corners, along W, H
    and D, and their ``box`` is channels and pixels.
    """

    address: int
    element: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    atomicity: int = 0
    fill: int = 0
    l2: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()


def pack(fields: MapFields, element_bits: int) -> bytes:
    """The map as the driver writes it."""
    words = np.zeros(MAP_BYTES // 4, np.uint32)
    rank = len(fields.dims)
    replace(words, "global_address", 0, fields.address)
    replace(words, "rank", 0, rank - 1)
    replace(words, "elemtype", 0, fields.element)
    replace(words, "interleave_layout", 0, fields.interleave)
    replace(words, "swizzle_mode", 0, fields.swizzle)
    replace(words, "swizzle_atomicity", 0, fields.atomicity)
    replace(words, "fill_mode", 0, fields.fill)
    _put(words, 2, _L2, 2, fields.l2)
    total = element_bits
    for axis in range(rank):
        replace(words, "global_dim", axis, fields.dims[axis])
        replace(words, "element_stride", axis, fields.steps[axis])
        if axis:
            replace(words, "global_stride", axis - 1, fields.strides[axis - 1])
        if not fields.lower:
            replace(words, "box_dim", axis, fields.box[axis])
            total *= fields.box[axis] // fields.steps[axis]
    if fields.lower:
        _put_pixels(words, fields)
        total *= fields.box[0] * fields.box[1]
    words[16] = total // 8 & 0xFFFFFFFF
    words[18] = 128 << fields.swizzle if fields.swizzle else 16
    return words.tobytes()


def unpack(raw: bytes) -> MapFields:
    """Read a map. Raises MapError for unknown bits."""
    words = _WORDS.unpack(raw)
    flags = words[2]
    pixels = bool(flags & _IM2COL)
    _only(2, flags, _KNOWN_FLAGS)
    if flags >> _SWIZZLE_HIGH & 1:
        raise MapError("a swizzle beyond 128 bytes (bit 22 of word 2), which is not modelled")
    for index, mask in (7, 0xFFFF), (13, 0xFF007FFF), (15, _MOST_PIXELS - 1 if pixels else 0):
        _only(index, words[index], mask)
    rank = (flags >> _RANK & 7) + 1
    if rank > MAX_RANK:
        raise MapError(f"rank {rank}; 1 to {MAX_RANK} are possible")
    strides = (
        (words[3 + axis] | (words[7] >> 4 * axis & 15) << 32) << 4 for axis in range(rank - 1)
    )
    lower, upper = _corners(words, rank) if pixels else ((), ())
    boxes = (words[13] >> _BOX_ZERO, *(words[14] >> 8 * axis & 255 for axis in range(4)))
    return MapFields(
        address=words[0] | words[1] << 32,
        element=_element(flags),
        dims=tuple(word + 1 for word in words[8 : 8 + rank]),
        strides=tuple(strides),
        box=(boxes[0] + 1, words[15] + 1) if pixels else tuple(box + 1 for box in boxes[:rank]),
        steps=tuple((words[13] >> _STEP_BITS * axis & 7) + 1 for axis in range(rank)),
        interleave=flags >> _INTERLEAVE & 3,
        swizzle=flags >> _SWIZZLE & 3,
        atomicity=flags >> _ATOMICITY & 3,
        fill=flags >> _FILL & 1,
        l2=flags >> _L2 & 3,
        lower=lower,
        upper=upper,
    )


def _put_pixels(words: NDArray[np.uint32], fields: MapFields) -> None:
    """Write the fields of im2col maps alone."""
    bits = CORNER_BITS[len(fields.dims)]
    _put(words, 2, 0, 1, _IM2COL)
    replace(words, "box_dim", 0, fields.box[0])
    words[15] = fields.box[1] - 1
    for place, corner in enumerate((*fields.lower, *fields.upper)):
        _put(words, 14, bits * place, bits, corner)
    words[-1] = _OUR_ORDER


def _corners(words: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lower and the upper corner of an im2col map."""
    if rank not in CORNER_BITS:
        raise MapError(f"an im2col map of rank {rank}; 3 to 5 are possible")
    bits, count = CORNER_BITS[rank], rank - 2
    raw = [words[14] >> bits * place & (1 << bits) - 1 for place in range(2 * count)]
    corners = tuple(one - (one >> bits - 1 << bits) for one in raw)
    if words[-1] != _OUR_ORDER and len(set(corners)) > 1:
        raise MapError(
            f"an im2col map of another machine with corners {corners} in word 14, whose order is "
            "not known"
        )
    return corners[:count], corners[count:]


def replace(words: NDArray[np.uint32], field: str, axis: int, value: int) -> None:
    """Write a field of the map in place as ``tensormap.replace`` does: too large values lose bits.

    ``axis`` is the ordinal of fields with several entries; a stride's counts from dimension 1.
    """
    if field == "global_address":
        words[0], words[1] = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF
    elif field == "elemtype":
        # as on the GPU, nothing takes the mark of TF32 away again
        if value in _TF32_ELEMENTS:
            _put(words, 2, _TF32, 1, 1)
        _put(words, 2, _ELEMENT, 4, (_TF32_ELEMENTS | _SMALL_ELEMENTS).get(value, value))
    elif field == "swizzle_mode":
        _put(words, 2, _SWIZZLE, 2, value)
        _put(words, 2, _SWIZZLE_HIGH, 1, value >> 2)
    elif field == "global_dim":
        words[8 + axis] = (value - 1) & 0xFFFFFFFF
    elif field == "box_dim":
        _put(words, 13 if axis == 0 else 14, 24 if axis == 0 else 8 * (axis - 1), 8, value - 1)
    elif field == "element_stride":
        _put(words, 13, _STEP_BITS * axis, _STEP_BITS, value - 1)
    elif field == "global_stride":
        words[3 + axis] = value >> 4 & 0xFFFFFFFF
        _put(words, 7, 4 * axis, 4, value >> 36)
    else:
        start, bits = _FLAGS[field]
        _put(words, 2, start, bits, value)


def _put(words: NDArray[np.uint32], index: int, start: int, bits: int, value: int) -> None:
    mask = (1 << bits) - 1
    words[index] = int(words[index]) & ~(mask << start) | (value & mask) << start


def _only(index: int, word: int, known: int) -> None:
    if word & ~known:
        raise MapError(
            f"bits {word & ~known:#x} of word {index} are set, whose meaning is not known"
        )


def _element(flags: int) -> int:
    code: Any = flags >> _ELEMENT & 15
    if flags >> _TF32 & 1:
        number = next((n for n, c in _TF32_ELEMENTS.items() if c == code), None)
    else:
        number = {c: n for n, c in _SMALL_ELEMENTS.items()}.get(code, code if code < 11 else None)
    if number is None:
        raise MapError(f"element type {code} is unknown")
    return number
