"""The memory of a case: every buffer as bytes on the host, with guard bands, before and after.

A backend copies the buffers to where its kernel runs, runs it, and copies all of them back. What
it finds there shows every stray access that leaves a trace: outputs begin as NaN bits that no
arithmetic makes, the bytes around and between their elements hold a pattern that must survive,
inputs must survive whole, and the memory around and between the inputs' elements is NaN, which
turns the result into NaN if it is read and used.

Layouts, by the caller's axes (``layout`` of the launcher) and where the elements lie:

* ``bshd``: contiguous (batch, rows, heads, depth).
* ``bhsd``: contiguous (batch, heads, rows, depth), passed as such.
* ``transposed``: memory as in bhsd, passed as a (batch, rows, heads, depth) view.
* ``padded``: as bshd, with 16 unused elements after each row of heads, 48 after each batch, and an
  address that is a multiple of 16 bytes and no more.
* ``packed``: query, key and value are slices of one (batch, rows, columns of all heads) tensor; the
  output is padded.

The log-sum-exp and the scales of fp8 are contiguous, as the launcher wants them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import POISON_BITS, bits_dtype, from_bits, numpy_dtype, to_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.verify.cases import Case
    from fa4gen.verify.inputs import Inputs

GUARD_BYTES = 1 << 16
"""Before and after the elements of a buffer: wider than a tile of 192 rows of 256 elements is off
by half."""
GUARD_PATTERN = 0xA5
ROW_PADDING = 16
BATCH_PADDING = 48
LEAST_ALIGNMENT = 16
"""Bytes: the least that the launcher takes."""
OUTPUTS = ("out", "lse")

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """Where a tensor lies in a buffer. Axes in the order that the launcher is given them."""

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


@dataclass(frozen=True)
class CaseMemory:
    """Buffers by name, the tensors' places in them, and what else the launcher is told."""

    buffers: Mapping[str, Image]
    views: Mapping[str, View]
    """"query", "key", "value", "out"; "lse" for a kernel that writes it; "query_descale",
    "key_descale", "value_descale" where the call passes them."""
    layout: Literal["bshd", "bhsd"]
    softmax_scale: float | None
    """None where the launcher's default is meant."""


def place(
    case: Case, inputs: Inputs, dtype: str, *, lse: bool, out_dtype: str | None = None
) -> CaseMemory:
    """Lay the inputs out as the case says, and poison the outputs.

    The output has the type of the inputs unless ``out_dtype`` names another.
    """
    maker = _Maker({}, {})
    arrays = {"query": inputs.query, "key": inputs.key, "value": inputs.value}
    out_shape = (*inputs.query.shape[:3], inputs.value.shape[3])
    if case.layout == "packed":
        maker.pack(arrays, dtype)
    else:
        for name, array in arrays.items():
            maker.add(name, array.shape, case.layout, dtype)
            maker.fill(name, array)
    out_layout = "padded" if case.layout == "packed" else case.layout
    maker.add("out", out_shape, out_layout, out_dtype or dtype)
    for name, array in inputs.descales.items():
        maker.add_contiguous(f"{name}_descale", array.shape)
        maker.fill(f"{name}_descale", array)
    if lse:
        batch, rows, heads, _ = inputs.query.shape
        maker.add_contiguous("lse", (batch, heads, rows))
    memory = CaseMemory(
        maker.buffers,
        maker.views,
        "bhsd" if case.layout == "bhsd" else "bshd",
        None if inputs.scale_is_default else inputs.softmax_scale,
    )
    for name in OUTPUTS:
        if name in memory.views:
            view = memory.views[name]
            view.bits(memory.buffers[view.buffer])[...] = POISON_BITS[view.dtype]
    return memory


def read_out(memory: CaseMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32]:
    """Return the output in ``buffers`` as float32 (batch, rows, heads, depth)."""
    view = memory.views["out"]
    return from_bits(rows_before_heads(memory, out_bits(memory, buffers)), view.dtype)


def read_lse(memory: CaseMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32] | None:
    """Return the log-sum-exp in ``buffers``, (batch, heads, rows), if there is one."""
    view = memory.views.get("lse")
    if view is None:
        return None
    return view.bits(buffers[view.buffer]).view(np.float32)


def out_bits(memory: CaseMemory, buffers: Mapping[str, Image]) -> NDArray[Any]:
    """Return the output's bits in the order of the launcher's axes."""
    view = memory.views["out"]
    return view.bits(buffers[view.buffer])


def rows_before_heads(memory: CaseMemory, array: NDArray[Any]) -> NDArray[Any]:
    """Bring a tensor in the launcher's order of axes into (batch, rows, heads, depth)."""
    return array.swapaxes(1, 2) if memory.layout == "bhsd" else array


def outside(memory: CaseMemory, name: str) -> NDArray[np.bool_]:
    """Return a mask over the bytes of an output's buffer that are none of its elements."""
    view = memory.views[name]
    mask = np.ones(memory.buffers[view.buffer].size, dtype=np.bool_)
    np.ndarray(
        (*view.shape, numpy_dtype(view.dtype).itemsize),
        np.bool_,
        buffer=mask.data,
        offset=view.offset,
        strides=(*view.strides, 1),
    )[...] = False
    return mask


@dataclass(frozen=True)
class _Maker:
    buffers: dict[str, Image]
    views: dict[str, View]

    def add(self, name: str, shape: tuple[int, ...], layout: str, dtype: str) -> None:
        """Add a tensor (batch, rows, heads, depth) with a buffer of its own."""
        batch, rows, heads, depth = shape
        offset = GUARD_BYTES
        row = heads * depth
        if layout in ("bhsd", "transposed"):
            strides = (heads * rows * depth, depth, rows * depth, 1)
            size = math.prod(shape)
        elif layout == "padded":
            row += ROW_PADDING
            strides = (rows * row + BATCH_PADDING, row, depth, 1)
            size = batch * strides[0]
            offset += LEAST_ALIGNMENT
        else:
            strides = (rows * row, row, depth, 1)
            size = math.prod(shape)
        if layout == "bhsd":
            shape = (batch, heads, rows, depth)
            strides = (strides[0], strides[2], strides[1], strides[3])
        self._new_buffer(name, size, dtype)
        element = numpy_dtype(dtype).itemsize
        self.views[name] = View(name, offset, shape, tuple(element * s for s in strides), dtype)

    def add_contiguous(self, name: str, shape: tuple[int, ...]) -> None:
        """Add a contiguous float32 array."""
        self._new_buffer(name, math.prod(shape), "fp32")
        strides = tuple(4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.views[name] = View(name, GUARD_BYTES, shape, strides, "fp32")

    def pack(self, arrays: Mapping[str, NDArray[np.float32]], dtype: str) -> None:
        """Put query, key and value side by side along the columns of one tensor."""
        batch, rows, _, _ = arrays["query"].shape
        if any(array.shape[1] != rows for array in arrays.values()):
            raise ValueError("packed tensors have the same number of rows")
        columns = sum(math.prod(array.shape[2:]) for array in arrays.values())
        element = numpy_dtype(dtype).itemsize
        self._new_buffer("packed", batch * rows * columns, dtype)
        before = 0
        for name, array in arrays.items():
            steps = (rows * columns, columns, array.shape[3], 1)
            strides = tuple(element * step for step in steps)
            offset = GUARD_BYTES + element * before
            self.views[name] = View("packed", offset, array.shape, strides, dtype)
            self.fill(name, array)
            before += math.prod(array.shape[2:])

    def fill(self, name: str, array: NDArray[np.float32]) -> None:
        """Write values of the element type; a tensor's axes are (batch, rows, heads, depth)."""
        view = self.views[name]
        bits = to_bits(array, view.dtype)
        if view.shape != array.shape:
            bits = bits.swapaxes(1, 2)
        view.bits(self.buffers[view.buffer])[...] = bits

    def _new_buffer(self, name: str, elements: int, dtype: str) -> None:
        total = elements * numpy_dtype(dtype).itemsize + 2 * (GUARD_BYTES + LEAST_ALIGNMENT)
        if name in OUTPUTS:
            self.buffers[name] = np.full(total, GUARD_PATTERN, dtype=np.uint8)
        else:
            unsigned = bits_dtype(dtype)
            poison = np.full(total // unsigned.itemsize, POISON_BITS[dtype], dtype=unsigned)
            self.buffers[name] = poison.view(np.uint8)
