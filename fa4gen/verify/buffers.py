"""The memory of a case: every buffer as bytes on the host, with guard bands, before and after.

A backend copies the buffers to where its kernel runs, runs it, and copies all of them back. Every
stray access that changes memory or the result shows: outputs begin as NaN bits that no arithmetic
makes, the bytes around and between their elements hold a pattern that must survive, inputs must be
unchanged, and the memory around and between the inputs' elements is NaN, which
turns the result into NaN if it is read and used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import POISON_BITS, bits_dtype, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

GUARD_BYTES = 1 << 16
"""Before and after the elements of a buffer: wider than a tile of 192 rows of 256 elements is off
by half."""
GUARD_PATTERN = 0xA5
LEAST_ALIGNMENT = 16
"""Bytes: the least alignment that the launchers accept."""
RAISED = "given_max_logits"
OUTPUTS = ("out", "lse", "out_scales", "out_amax", RAISED)
ODD_STRIDE = 7
"""Elements: no multiple of 16 bytes."""

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """Place of a tensor in a buffer. Axes are in the order in which the launcher gets them."""

    buffer: str
    offset: int
    """Bytes from the start of the buffer to the first element."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes."""
    dtype: str
    """"bf16", "fp16", "fp8_e4m3" or "fp32"."""

    def bits(self, image: Image) -> NDArray[Any]:
        """Return the elements as unsigned integers, in the memory of ``image``."""
        return np.ndarray(
            self.shape,
            bits_dtype(self.dtype),
            buffer=image.data,
            offset=self.offset,
            strides=self.strides,
        )


def with_odd_strides(view: View, contiguous: int = -1) -> View:
    """Return a view with strides that a launcher must not use: odd ones, for axes of one element.

    The axis that is contiguous keeps its own, by which launchers know it.
    """
    odd = ODD_STRIDE * numpy_dtype(view.dtype).itemsize
    strides = [
        odd if extent == 1 else stride
        for extent, stride in zip(view.shape, view.strides, strict=True)
    ]
    strides[contiguous] = view.strides[contiguous]
    return replace(view, strides=tuple(strides))


@dataclass(frozen=True)
class CaseMemory(ABC):
    """Buffers by name, and the tensors' places in them; a family adds a call's other arguments."""

    buffers: Mapping[str, Image]
    views: Mapping[str, View]
    multiprocessors: int | None = field(default=None, kw_only=True)
    """The launcher's argument where the case is emulated; None: the backend's choice."""
    group: int | None = field(default=None, kw_only=True)
    """The unit of the kernel's work in an emulated case: heads, keys of all heads of a group, or
    row tiles. None: the launcher's choice."""
    far: bool = field(default=False, kw_only=True)
    """Rows, heads and batches of attention's tensors, or of a product's scales, are 2^31 elements
    apart where the case is emulated."""

    @property
    def outputs(self) -> dict[str, View]:
        """The tensors that the kernel writes, by name."""
        return {name: self.views[name] for name in OUTPUTS if name in self.views}

    @abstractmethod
    def place_of(self, name: str, index: tuple[int, ...]) -> str:
        """Name an element of an output, the index by the launcher's axes: "out[row 3, ...]"."""

    def outside(self, name: str) -> NDArray[np.bool_]:
        """Return a mask over an output's buffer: the bytes that must stay as they are."""
        view = self.views[name]
        mask = np.ones(self.buffers[view.buffer].size, dtype=np.bool_)
        np.ndarray(
            (*view.shape, numpy_dtype(view.dtype).itemsize),
            np.bool_,
            buffer=mask.data,
            offset=view.offset,
            strides=(*view.strides, 1),
        )[...] = False
        return mask


def new_buffer(num_elements: int, dtype: str, *, output: bool) -> Image:
    """Return a buffer with bands at both ends: a pattern for outputs, for inputs NaN throughout."""
    total = num_elements * numpy_dtype(dtype).itemsize + 2 * (GUARD_BYTES + LEAST_ALIGNMENT)
    if output:
        return np.full(total, GUARD_PATTERN, dtype=np.uint8)
    unsigned = bits_dtype(dtype)
    poison = np.full(total // unsigned.itemsize, POISON_BITS[dtype], dtype=unsigned)
    return poison.view(np.uint8)


def poison(view: View, image: Image) -> None:
    """Fill an output with the NaN that marks elements that were never written."""
    view.bits(image)[...] = POISON_BITS[view.dtype]


def words(name: str, axes: tuple[str, ...], index: tuple[int, ...]) -> str:
    """Return "out[row 3, column 5]"."""
    places = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
    return f"{name}[{places}]"
