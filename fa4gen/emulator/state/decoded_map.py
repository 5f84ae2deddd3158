"""The fields of a tensor map, and the rules that they must obey; ``map_bits`` has the bits.

Dimension 0 is the contiguous one, as in PTX and in cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from fa4gen.emulator.state.map_bits import (
    CORNER_BITS,
    MAX_RANK,
    MapError,
    MapFields,
    pack,
    unpack,
)


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: its PTX name, how many bytes, and NumPy's view of it.

    Sixteen elements of a ``packed`` type, which have that number of bits each, are copied together,
    as bytes; a ``padded`` one fills 16 bytes of shared memory with them.
    """

    name: str
    size: int
    dtype: Any
    packed: int = 0
    padded: bool = False

    @property
    def is_float(self) -> bool:
        return not self.packed and self.name[0] in "fbt"

    @property
    def bits(self) -> int:
        """Bits of an element in global memory."""
        return self.packed or 8 * self.size


# by the number in tensormap.replace
ELEMENTS: Final[dict[int, ElementType]] = {
    0: ElementType("u8", 1, np.uint8),
    1: ElementType("u16", 2, np.uint16),
    2: ElementType("u32", 4, np.uint32),
    3: ElementType("s32", 4, np.int32),
    4: ElementType("u64", 8, np.uint64),
    5: ElementType("s64", 8, np.int64),
    6: ElementType("f16", 2, np.float16),
    7: ElementType("f32", 4, np.float32),
    9: ElementType("f64", 8, np.float64),
    10: ElementType("bf16", 2, ml_dtypes.bfloat16),
    11: ElementType("tf32", 4, np.float32),
    13: ElementType("b4x16", 1, np.uint8, 4),
    14: ElementType("b4x16_p64", 1, np.uint8, 4, padded=True),
    15: ElementType("b6x16_p32", 1, np.uint8, 6, padded=True),
}
# the driver's names of the packed types, as arguments
PACKED: Final = {"16u4_align8b": 13, "16u4_align16b": 14, "16u6_align16b": 15}
PADDED_BOX: Final = 128  # elements of a padded type in each line of a box
INTERLEAVES: Final = ("none", "16B", "32B")
SPANS: Final = (0, 32, 64, 128)
ATOMS: Final = (16, 32, 0, 64)  # code 2, 32 bytes with a flip of 8, is not modelled


@dataclass(frozen=True, slots=True)
class Corners:
    """The bounding box of an im2col map along W, H and D, as far as there are these.

    The filter's positions are from ``lower`` on to ``upper`` beyond the last place of the image.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True)
class DecodedMap:
    """A valid tensor map. Lists have one entry per dimension, the contiguous one first.

    ``strides`` are bytes, ``strides[0]`` the element size; ``box`` counts tensor elements, of which
    every ``steps``-th is copied. ``span`` and ``atom`` are the swizzle's, in bytes. Dimension 0 of
    a packed type counts bytes of global memory. The box of an im2col map, which has ``corners``, is
    channels and pixels; its steps are those of the filter's positions.
    """

    address: int
    element: ElementType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    span: int
    atom: int
    nan_fill: bool
    corners: Corners | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements copied along each dimension; of im2col channels and pixels."""
        if self.corners is not None:
            return self.box
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes of a line of the box in global memory."""
        return self.counts[0] * self.element.size

    @cached_property
    def inner_bytes(self) -> int:
        """Bytes of a line of the box in shared memory."""
        kind = self.element
        return self.moved_bytes // (2 * kind.packed) * 16 if kind.padded else self.moved_bytes

    @cached_property
    def pitch(self) -> int:
        """Bytes from line to line in shared memory: the span, or packed without a swizzle."""
        return self.span or self.inner_bytes


def check_map(
    element: ElementType,
    address: int,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    interleave: str,
    span: int,
    atom: int,
    nan_fill: bool,
    corners: Corners | None = None,
) -> None:
    """Raise MapError where cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col refuses.

    Lists start with dimension 0; ``strides`` has an entry per dimension, the first one unused. With
    ``corners`` the box is channels and pixels.
    """
    align = 32 if interleave == "32B" or element.padded else 16
    if address % align:
        raise MapError(f"the address {address:#x} is not a multiple of {align}")
    if interleave not in INTERLEAVES:
        raise MapError(f"interleave is one of {', '.join(INTERLEAVES)}, not {interleave!r}")
    if span not in SPANS:
        raise MapError(f"swizzle is 0, 32, 64 or 128 bytes, not {span!r}")
    if atom not in (16, 32, 64) or (atom != 16 and span != 128):
        raise MapError(f"swizzle atoms of {atom} bytes do not go with a swizzle of {span}")
    for axis, size in enumerate(dims):
        if not 1 <= size <= 1 << 32:
            raise MapError(f"dimension {axis} has {size} elements; 1 to 2^32 are possible")
        if corners is None and not 1 <= box[axis] <= 256:
            raise MapError(f"the box has {box[axis]} elements in dimension {axis}; 1 to 256 fit")
        if not 1 <= steps[axis] <= 8:
            raise MapError(f"element stride {steps[axis]} in dimension {axis}; 1 to 8 are possible")
        if axis and size > 1 and (strides[axis] % align or not 0 <= strides[axis] < 1 << 40):
            raise MapError(
                f"the stride of dimension {axis} is {strides[axis]} bytes; multiples of {align}"
                " below 2^40 are possible"
            )
    if nan_fill and not element.is_float:
        raise MapError(f"NaN fill needs a floating-point type, not {element.name}")
    if corners is not None:
        check_corners(corners, dims, box)
    if interleave != "none":
        _check_interleave(interleave, len(dims), span)
        return
    if element.packed:
        check_packed(element, dims[0], box[0], span, atom)
    inner = box[0] * element.bits // 8
    if inner % 16:
        raise MapError(f"the box is {inner} bytes wide in dimension 0, no multiple of 16")
    if span and inner > span:
        raise MapError(f"the box is {inner} bytes wide, more than the swizzle's {span}")


def check_corners(corners: Corners, dims: Sequence[int], box: Sequence[int]) -> None:
    """Check the bounding box of an im2col map, and its channels and pixels."""
    rank, most = len(dims), (256, 1024)
    if not 3 <= rank <= MAX_RANK or {len(corners.lower), len(corners.upper)} != {rank - 2}:
        raise MapError(
            f"im2col of rank {rank} with {len(corners.lower)} and {len(corners.upper)} corners: "
            "rank 3 to 5, and two less of each corner"
        )
    if len(box) != len(most) or not all(1 <= n <= m for n, m in zip(box, most, strict=True)):
        raise MapError(f"{tuple(box)} channels and pixels; up to {most} are possible")
    limit = 1 << CORNER_BITS[rank] - 1
    for axis, (low, up) in enumerate(zip(corners.lower, corners.upper, strict=True), 1):
        if not -limit <= min(low, up) <= max(low, up) < limit:
            raise MapError(f"corners {low} and {up} in dimension {axis}; from {-limit} to {limit}")
        if low > dims[axis] - 1 + up:
            raise MapError(f"corners {low} and {up} in dimension {axis}: the bounding box is empty")


def check_packed(element: ElementType, size: int, box: int, span: int, atom: int) -> None:
    """Check dimension 0 and the swizzle of a packed type; ``atom`` 0 is one of 32 with a flip."""
    step = PADDED_BOX if element.padded else 2
    if size % step:
        raise MapError(f"dimension 0 has {size} elements of {element.name}, no multiple of {step}")
    if not element.padded:
        return
    if box != PADDED_BOX:
        raise MapError(f"the box has {box} elements of {element.name} in dimension 0, not 128")
    if span not in (0, 128) or not atom or (atom == 64 and element.packed == 4):
        raise MapError(f"{element.name} does not go with a swizzle of {span} in atoms of {atom}")


def _check_interleave(interleave: str, rank: int, span: int) -> None:
    if rank < 3:
        raise MapError(f"interleave {interleave} needs at least three dimensions, not {rank}")
    if interleave == "32B" and span != 32:
        raise MapError(f"interleave 32B needs a swizzle of 32, not {span}")
    raise MapError(f"interleave {interleave} is not modelled")


def encode(
    *,
    address: int,
    element: int,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    span: int,
    atom: int,
    nan_fill: bool,
    corners: Corners | None = None,
) -> bytes:
    """The 128 bytes of a map; the arguments as for ``check_map``, ``element`` as a number."""
    fields = MapFields(
        address=address,
        element=element,
        dims=tuple(dims),
        strides=tuple(strides[1:]),  # that of dimension 0 is implied
        box=tuple(box),
        steps=tuple(steps),
        swizzle=SPANS.index(span),
        atomicity=ATOMS.index(atom),
        fill=int(nan_fill),
        lower=corners.lower if corners else (),
        upper=corners.upper if corners else (),
    )
    return pack(fields, ELEMENTS[element].bits)


@lru_cache(maxsize=1024)
def decode(raw: bytes) -> DecodedMap:
    """Read a map. Raises MapError if there is something wrong with it."""
    fields = unpack(raw)
    if fields.element not in ELEMENTS:
        raise MapError(f"element type {fields.element} is not modelled")
    if fields.interleave >= len(INTERLEAVES):
        raise MapError(f"interleave {fields.interleave} is unknown")
    if fields.atomicity >= len(ATOMS) or not ATOMS[fields.atomicity]:
        raise MapError(f"swizzle atomicity {fields.atomicity} is unknown or not modelled")
    kind = ELEMENTS[fields.element]
    strides = (kind.size, *fields.strides)
    span, atom = SPANS[fields.swizzle], ATOMS[fields.atomicity]
    nan_fill = fields.fill == 1
    corners = Corners(fields.lower, fields.upper) if fields.lower else None
    try:
        check_map(
            kind,
            fields.address,
            fields.dims,
            strides,
            fields.box,
            fields.steps,
            INTERLEAVES[fields.interleave],
            span,
            atom,
            nan_fill,
            corners,
        )
    except MapError as error:
        rank = len(fields.dims)
        raise MapError(f"{error} (a map of rank {rank} over {kind.name})") from None
    # the stride of dimension 0 is ignored without interleave
    steps = (1, *fields.steps[1:])
    dims, box = (
        (sizes[0] * kind.packed // 8, *sizes[1:]) if kind.packed else sizes
        for sizes in (fields.dims, fields.box)
    )
    return DecodedMap(
        fields.address, kind, dims, strides, box, steps, span, atom, nan_fill, corners
    )
