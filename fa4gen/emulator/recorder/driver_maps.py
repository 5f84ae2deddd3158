"""cuTensorMapEncodeTiled: the driver's rules and numbers, as an H100's driver 580 has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fa4gen.emulator.state.map_bits import MAX_RANK, MapError, MapFields, pack

# CUtensorMapDataType -> number in PTX, bytes; the packed types from 13 on are refused
_TYPES: Final = {
    0: (0, 1),
    1: (1, 2),
    2: (2, 4),
    3: (3, 4),
    4: (4, 8),
    5: (5, 8),
    6: (6, 2),
    7: (7, 4),
    8: (9, 8),
    9: (10, 2),
    10: (8, 4),
    11: (11, 4),
    12: (12, 4),
}
_FLOATS: Final = range(6, 13)
# CUtensorMapSwizzle -> span, atomicity; those with other atoms are of sm_100 on
_SWIZZLES: Final = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 0), 4: (3, 1), 5: (3, 2), 6: (3, 3)}
_HOPPER_SWIZZLES: Final = 4
_ADDRESS_BITS: Final = 57
_STRIDE_BITS: Final = 40
_MOST_BOX_BYTES: Final = 227 * 1024


def encode_tiled(
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
) -> bytes:
    """The map that the driver makes; numbers are those of the driver's enumerations.

    ``dims`` and ``box`` in elements, ``strides`` in bytes from dimension 1 on. Raises MapError for
    what the driver refuses with CUDA_ERROR_INVALID_VALUE.
    """
    rank = len(dims)
    if not 1 <= rank <= MAX_RANK:
        raise MapError(f"tensorRank is {rank}; 1 to {MAX_RANK} are possible")
    if data_type not in _TYPES:
        raise MapError(f"tensorDataType {data_type} is unknown, or packed and not modelled")
    if not 0 <= interleave <= 2 or (interleave and rank < 3):
        raise MapError(f"interleave {interleave} with tensorRank {rank}; it needs three dimensions")
    if swizzle not in _SWIZZLES or (swizzle >= _HOPPER_SWIZZLES and sm < 100):
        raise MapError(f"swizzle {swizzle} does not exist on sm_{sm}")
    if not 0 <= l2 <= 3 or not 0 <= fill <= 1:
        raise MapError(f"l2Promotion {l2} or oobFill {fill} is unknown")
    if fill and data_type not in _FLOATS:
        raise MapError("oobFill with NaN needs a floating-point type")
    element, size = _TYPES[data_type]
    align = 32 if interleave == 2 else 16
    if address % align or address >> _ADDRESS_BITS:
        raise MapError(f"globalAddress {address:#x} is no multiple of {align} below 2^57")
    for axis, stride in enumerate(strides):
        if stride % align or stride >> _STRIDE_BITS:
            raise MapError(f"globalStrides[{axis}] is {stride}: no multiple of {align} below 2^40")
    total = size
    for axis in range(rank):
        if not 1 <= dims[axis] <= 1 << 32:
            raise MapError(f"globalDim[{axis}] is {dims[axis]}; 1 to 2^32 are possible")
        if not 1 <= box[axis] <= 256:
            raise MapError(f"boxDim[{axis}] is {box[axis]}; 1 to 256 are possible")
        if not 1 <= steps[axis] <= 8:
            raise MapError(f"elementStrides[{axis}] is {steps[axis]}; 1 to 8 are possible")
        total *= box[axis] // steps[axis]
    span, atomicity = _SWIZZLES[swizzle]
    inner = box[0] * size
    if inner % 16:
        raise MapError(f"the box is {inner} bytes wide in dimension 0, no multiple of 16")
    if not interleave and span and inner > 16 << span:
        raise MapError(f"the box is {inner} bytes wide, more than the swizzle's {16 << span}")
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
    )
    return pack(fields, size)
