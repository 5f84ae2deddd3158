"""Tensor maps as arguments of a launch: made of arrays, as by cuTensorMapEncodeTiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.state import decoded_map
from fa4gen.emulator.state.decoded_map import ELEMENTS, PACKED, Corners
from fa4gen.emulator.state.map_bits import MAX_RANK, MapError

# NumPy's kind and size -> number of the element type; signed and 8-bit types travel as bits
_CODES: Final = {
    "u1": 0,
    "i1": 0,
    "b1": 0,
    "u2": 1,
    "i2": 1,
    "u4": 2,
    "i4": 3,
    "u8": 4,
    "i8": 5,
    "f2": 6,
    "f4": 7,
    "f8": 9,
}
_BF16: Final = 10


class TensorMap:
    """An argument of a launch: a tensor map over ``array`` and the box that a copy moves.

    ``box`` and ``element_strides`` are in the array's own axis order, the contiguous axis last.
    ``swizzle`` is the span in bytes (0, 32, 64, 128), ``atom`` the bytes that it keeps together;
    ``fill`` is ``zero`` or ``nan``, for elements outside the tensor. ``dtype``, ``shape`` and
    ``strides`` (bytes, NumPy order) describe the memory that starts where ``array`` starts, if it
    is to be seen otherwise than as the array. 8-bit floating types travel as bytes.

    Raises LaunchError where the driver refuses.
    """

    def __init__(
        self,
        array: NDArray[Any],
        box: Sequence[int],
        *,
        swizzle: int = 0,
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        fill: str = "zero",
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        atom: int = 16,
        packed: str | None = None,
        im2col: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        self.array = array
        sizes = [int(size) for size in (array.shape if shape is None else shape)]
        rank = len(sizes)
        if not 1 <= rank <= MAX_RANK:
            raise _refusal(f"{rank} dimensions; 1 to {MAX_RANK} are possible")
        kind = np.dtype(array.dtype if dtype is None else dtype)
        self.element = _element_code(kind) if packed is None else _packed_code(packed, kind)
        bits = ELEMENTS[self.element].bits
        if packed is not None and shape is None:
            sizes[-1] = sizes[-1] * 8 // bits
        steps = [1] * rank if element_strides is None else [int(step) for step in element_strides]
        for what, given, count in (
            ("box", box, rank if im2col is None else 2), ("element_strides", steps, rank),
        ):  # fmt: skip
            if len(given) != count:
                raise _refusal(f"{what} has {len(given)} entries for {rank} dimensions")
        if fill not in ("zero", "nan"):
            raise _refusal(f"fill is 'zero' or 'nan', not {fill!r}")
        self.dims = tuple(reversed(sizes))
        self.box = tuple(int(size) for size in reversed(box))
        self.steps = tuple(reversed(steps))
        self.strides = self._strides(kind.itemsize, bits, sizes, strides, shape is None)
        self.interleave = interleave
        self.span = swizzle
        self.atom = atom
        self.nan_fill = fill == "nan"
        self.corners: Corners | None = None
        if im2col is not None:
            lower, upper = (tuple(int(one) for one in reversed(corner)) for corner in im2col)
            self.corners = Corners(lower, upper)
        self._check(0)

    def encode(self, address: int) -> bytes:
        """The 128 bytes of the map for the array at ``address``."""
        self._check(address)
        return decoded_map.encode(
            address=address,
            element=self.element,
            dims=self.dims,
            strides=self.strides,
            box=self.box,
            steps=self.steps,
            span=self.span,
            atom=self.atom,
            nan_fill=self.nan_fill,
            corners=self.corners,
        )

    def _check(self, address: int) -> None:
        try:
            decoded_map.check_map(
                ELEMENTS[self.element],
                address,
                self.dims,
                self.strides,
                self.box,
                self.steps,
                self.interleave,
                self.span,
                self.atom,
                self.nan_fill,
                self.corners,
            )
        except MapError as error:
            raise _refusal(str(error)) from None

    def _strides(
        self,
        size: int,
        bits: int,
        sizes: list[int],
        given: Sequence[int] | None,
        same_shape: bool,
    ) -> tuple[int, ...]:
        """Strides in bytes, dimension 0 first; an extent of 1 gets a stride that is allowed."""
        if given is not None:
            if len(given) != len(sizes):
                raise _refusal(f"strides has {len(given)} entries for {len(sizes)} dimensions")
            strides = [int(stride) for stride in reversed(given)]
        elif same_shape and self.array.dtype.itemsize == size:
            strides = list(reversed(self.array.strides))
        else:
            if not self.array.flags.c_contiguous:
                raise _refusal("another shape of an array that is not contiguous needs strides")
            strides = [size]
            total = bits
            for extent in reversed(sizes[1:]):
                total *= extent
                strides.append(total // 8)
        if sizes[-1] > 1 and 0 not in sizes and strides[0] != size:
            raise _refusal(
                f"the last axis is not contiguous: its stride is {strides[0]} bytes, not {size}"
            )
        strides[0] = size
        for axis, extent in enumerate(reversed(sizes)):
            if axis and extent == 1:
                strides[axis] = 16
        return tuple(strides)


def _element_code(dtype: np.dtype[Any]) -> int:
    if dtype == np.dtype(ml_dtypes.bfloat16):
        return _BF16
    if dtype.itemsize == 1:
        return 0
    code = _CODES.get(f"{dtype.kind}{dtype.itemsize}")
    if code is None or not dtype.isnative:
        raise _refusal(f"no element type for {dtype}")
    return code


def _packed_code(packed: str, dtype: np.dtype[Any]) -> int:
    if packed not in PACKED:
        raise _refusal(f"packed is one of {', '.join(PACKED)}, not {packed!r}")
    if dtype.itemsize != 1:
        raise _refusal(f"a packed type over {dtype}; the array holds its bytes")
    return PACKED[packed]


def _refusal(message: str) -> LaunchError:
    return LaunchError(f"tensor map: {message}")
