"""cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, as the driver 580 of an H100 has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fa4gen.emulator.state.decoded_map import (
    ATOMS,
    ELEMENTS,
    SPANS,
    Corners,
    check_corners,
    check_packed,
)
from fa4gen.emulator.state.map_bits import MAX_RANK, MapError, MapFields, pack

# CUtensorMapDataType -> number in PTX, bits
_TYPES: Final = {
    0: (0, 8),
    1: (1, 16),
    2: (2, 32),
    3: (3, 32),
    4: (4, 64),
    5: (5, 64),
    6: (6, 16),
    7: (7, 32),
    8: (9, 64),
    9: (10, 16),
    10: (8, 32),
    11: (11, 32),
    12: (12, 32),
    13: (13, 4),
    14: (14, 4),
    15: (15, 6),
}
_PADDED: Final = (14, 15)
_PACKED_FROM: Final = 13
_FLOATS: Final = range(6, 13)
# CUtensorMapSwizzle -> span, atomicity; those with other atoms are of sm_100 on
_SWIZZLES: Final = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 0), 4: (3, 1), 5: (3, 2), 6: (3, 3)}
_HOPPER_SWIZZLES: Final = 4
_ADDRESS_BITS: Final = 57
_STRIDE_BITS: Final = 40
_MOST_BOX_BYTES: Final = 227 * 1024


def encode(
    *,
    data_type: int,
    address: int,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    interleave: int,
    swizzle: int,
    l2: int,
    fill: int,
    sm: int,
    corners: Corners | None = None,
) -> bytes:
    """The map that the driver makes; numbers are those of the driver's enumerations.

    ``dims`` and ``box`` in elements, ``strides`` in bytes from dimension 1 on; with ``corners`` an
    im2col map, whose box is channels and pixels. Raises MapError where the driver returns
    CUDA_ERROR_INVALID_VALUE.
    """
    rank = len(dims)
    if not 1 <= rank <= MAX_RANK:
        raise MapError(f"tensorRank is {rank}; 1 to {MAX_RANK} are possible")
    if data_type not in _TYPES:
        raise MapError(f"tensorDataType {data_type} is unknown")
    if data_type >= _PACKED_FROM and sm < 100:
        raise MapError(f"tensorDataType {data_type}, packed, does not exist on sm_{sm}")
    if not 0 <= interleave <= 2 or (interleave and rank < 3):
        raise MapError(f"interleave {interleave} with tensorRank {rank}; it needs three dimensions")
    if swizzle not in _SWIZZLES or (swizzle >= _HOPPER_SWIZZLES and sm < 100):
        raise MapError(f"swizzle {swizzle} does not exist on sm_{sm}")
    if not 0 <= l2 <= 3 or not 0 <= fill <= 1:
        raise MapError(f"l2Promotion {l2} or oobFill {fill} is unknown")
    if fill and data_type not in _FLOATS:
        raise MapError("oobFill with NaN needs a floating-point type")
    element, bits = _TYPES[data_type]
    align = 32 if interleave == 2 or data_type in _PADDED else 16
    if address % align or address >> _ADDRESS_BITS:
        raise MapError(f"globalAddress {address:#x} is no multiple of {align} below 2^57")
    for axis, stride in enumerate(strides):
        if stride % align or stride >> _STRIDE_BITS:
            raise MapError(f"globalStrides[{axis}] is {stride}: no multiple of {align} below 2^40")
    total = bits
    for axis in range(rank):
        if not 1 <= dims[axis] <= 1 << 32:
            raise MapError(f"globalDim[{axis}] is {dims[axis]}; 1 to 2^32 are possible")
        if not 1 <= steps[axis] <= 8:
            raise MapError(f"elementStrides[{axis}] is {steps[axis]}; 1 to 8 are possible")
    if corners is not None:
        check_corners(corners, dims, box)
        total *= box[0] * box[1]
    else:
        total *= _box_elements(box, steps)
    span, atomicity = _SWIZZLES[swizzle]
    if data_type >= _PACKED_FROM:
        check_packed(ELEMENTS[element], dims[0], box[0], SPANS[span], ATOMS[atomicity])
    inner = box[0] * bits // 8
    if inner % 16:
        raise MapError(f"the box is {inner} bytes wide in dimension 0, no multiple of 16")
    if not interleave and span and inner > 16 << span:
        raise MapError(f"the box is {inner} bytes wide, more than the swizzle's {16 << span}")
    total //= 8
    if total > _MOST_BOX_BYTES:
        raise MapError(f"a box has {total} bytes, more than shared memory ({_MOST_BOX_BYTES})")
    fields = MapFields(
        address,
        element,
        tuple(dims),
        tuple(strides),
        tuple(box),
        tuple(steps),
        interleave,
        span,
        atomicity,
        fill,
        l2,
        corners.lower if corners else (),
        corners.upper if corners else (),
    )
    return pack(fields, bits)


def _box_elements(box: Sequence[int], steps: Sequence[int]) -> int:
    """The elements of the box of a tiled map."""
    count = 1
    for axis, (size, step) in enumerate(zip(box, steps, strict=True)):
        if not 1 <= size <= 256:
            raise MapError(f"boxDim[{axis}] is {size}; 1 to 256 are possible")
        count *= size // step
    return count
