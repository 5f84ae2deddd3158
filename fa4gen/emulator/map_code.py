"""The 128 bytes of a tensor map, in an encoding of our own, and the rules that a map must obey.

Every field is plain, so that ``tensormap.replace`` can write it, and an all-zero buffer is a valid
map once every field has been replaced: the rank is stored less one (as PTX counts it), and so are
extents, box sizes and element strides, which are never 0.

Dimension 0 is the contiguous one, as in PTX and in cuTensorMapEncodeTiled.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import ml_dtypes
import numpy as np

MAP_BYTES: Final = 128
MAP_ALIGN: Final = 64
MAX_RANK: Final = 5

_HEAD: Final = struct.Struct("<QBBBBBB2x5Q5I5I5I")

# field of tensormap.replace -> (offset of the first entry, struct code of an entry, what is
# subtracted from the value)
FIELDS: Final[dict[str, tuple[int, str, int]]] = {
    "global_address": (0, "Q", 0),
    "rank": (8, "B", 0),
    "elemtype": (9, "B", 0),
    "interleave_layout": (10, "B", 0),
    "swizzle_mode": (11, "B", 0),
    "swizzle_atomicity": (12, "B", 0),
    "fill_mode": (13, "B", 0),
    "global_stride": (16, "Q", 0),
    "global_dim": (56, "I", 1),
    "box_dim": (76, "I", 1),
    "element_stride": (96, "I", 1),
}
ARRAY_FIELDS: Final = ("global_stride", "global_dim", "box_dim", "element_stride")


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: its PTX name, how many bytes, and NumPy's view of it."""

    name: str
    size: int
    dtype: Any

    @property
    def is_float(self) -> bool:
        return self.name[0] in "fb"


# by the number that tensormap.replace gives it
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
}
INTERLEAVES: Final = ("none", "16B", "32B")
SPANS: Final = (0, 32, 64, 128)
ATOMS: Final = (16, 32, 0, 64)  # code 2, 32 bytes with a flip of 8, is not modelled


class MapError(ValueError):
    """What is wrong with a tensor map."""


@dataclass(frozen=True)
class DecodedMap:
    """A valid tensor map. Lists have one entry per dimension, the contiguous one first.

    ``strides`` are bytes, ``strides[0]`` the element size; ``box`` counts tensor elements, of which
    every ``steps``-th is copied. ``span`` and ``atom`` are the swizzle's, in bytes.
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

    @property
    def rank(self) -> int:
        return len(self.dims)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements copied along each dimension."""
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @cached_property
    def inner_bytes(self) -> int:
        """Bytes of a line of the box."""
        return self.counts[0] * self.element.size

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
) -> None:
    """Raise MapError for what cuTensorMapEncodeTiled refuses.

    Lists start with dimension 0; ``strides`` has an entry per dimension, the first one unused.
    """
    align = 32 if interleave == "32B" else 16
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
        if not 1 <= box[axis] <= 256:
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
    if interleave != "none":
        _check_interleave(interleave, len(dims), span)
        return
    inner = box[0] * element.size
    if inner % 16:
        raise MapError(f"the box is {inner} bytes wide in dimension 0, no multiple of 16")
    if span and inner > span:
        raise MapError(f"the box is {inner} bytes wide, more than the swizzle's {span}")


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
) -> bytes:
    """The 128 bytes of a map; the arguments as for ``check_map``, ``element`` as a number."""
    rank = len(dims)

    def five(values: Sequence[int]) -> list[int]:
        return [value - 1 for value in values] + [0] * (MAX_RANK - rank)

    # the stride of dimension 0 is implied: entry i belongs to dimension i + 1
    raw = _HEAD.pack(
        address,
        rank - 1,
        element,
        0,
        SPANS.index(span),
        ATOMS.index(atom),
        int(nan_fill),
        *strides[1:],
        *[0] * (MAX_RANK + 1 - rank),
        *five(dims),
        *five(box),
        *five(steps),
    )
    return raw.ljust(MAP_BYTES, b"\0")


@lru_cache(maxsize=1024)
def decode(raw: bytes) -> DecodedMap:
    """Read a map. Raises MapError if there is something wrong with it."""
    address, rank, element, interleave, swizzle, atomicity, fill, *rest = _HEAD.unpack_from(raw)
    if rank >= MAX_RANK:
        raise MapError(f"rank {rank + 1}; 1 to {MAX_RANK} are possible")
    if element not in ELEMENTS:
        raise MapError(f"element type {element} is unknown or not modelled")
    if interleave >= len(INTERLEAVES) or fill > 1:
        raise MapError(f"interleave {interleave} or fill mode {fill} is unknown")
    if swizzle >= len(SPANS) or atomicity >= len(ATOMS) or not ATOMS[atomicity]:
        raise MapError(f"swizzle {swizzle}, atomicity {atomicity} is unknown or not modelled")
    rank += 1
    kind = ELEMENTS[element]
    dims, box, steps = (
        tuple(value + 1 for value in rest[start : start + rank]) for start in (5, 10, 15)
    )
    strides = (kind.size, *rest[: rank - 1])
    span, atom = SPANS[swizzle], ATOMS[atomicity]
    try:
        check_map(
            kind, address, dims, strides, box, steps, INTERLEAVES[interleave], span, atom, fill == 1
        )
    except MapError as error:
        raise MapError(f"{error} (a map of rank {rank} over {kind.name})") from None
    # the stride of dimension 0 is ignored without interleave
    steps = (1, *steps[1:])
    return DecodedMap(address, kind, dims, strides, box, steps, span, atom, fill == 1)
