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
* ``packed``: query, key and value are slices of one (batch, rows, all heads, depth) tensor; the
  output is padded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import POISON_BITS, from_bits, to_bits

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
UNALIGNED_ELEMENTS = 8
"""16 bytes: the least alignment that the launcher takes."""
TENSORS = ("query", "key", "value", "out")

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
    """"bf16", "fp16" or "fp32"."""

    def bits(self, image: Image) -> NDArray[Any]:
        """Return the elements as unsigned integers, in the memory of ``image``."""
        unsigned = np.uint32 if self.dtype == "fp32" else np.uint16
        return np.ndarray(
            self.shape, unsigned, buffer=image.data, offset=self.offset, strides=self.strides
        )


@dataclass(frozen=True)
class CaseMemory:
    """Buffers by name, the tensors' places in them, and what else the launcher is told."""

    buffers: Mapping[str, Image]
    views: Mapping[str, View]
    """"query", "key", "value", "out", and "lse" for a kernel that writes it."""
    layout: Literal["bshd", "bhsd"]
    softmax_scale: float | None
    """None where the launcher's default is meant."""


def place(case: Case, inputs: Inputs, dtype: str, *, lse: bool) -> CaseMemory:
    """Lay the inputs out as the case says, and poison the outputs."""
    maker = _Maker(dtype, {}, {})
    arrays = {"query": inputs.query, "key": inputs.key, "value": inputs.value}
    if case.layout == "packed":
        maker.pack(arrays)
        maker.add("out", inputs.query.shape, "padded")
    else:
        for name, array in arrays.items():
            maker.add(name, array.shape, case.layout)
            maker.fill(name, array)
        maker.add("out", inputs.query.shape, case.layout)
    if lse:
        batch, rows, heads, _ = inputs.query.shape
        maker.add_lse((batch, heads, rows))
    memory = CaseMemory(
        maker.buffers,
        maker.views,
        "bhsd" if case.layout == "bhsd" else "bshd",
        None if inputs.scale_is_default else inputs.softmax_scale,
    )
    for name in ("out", "lse"):
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
    element = 4 if view.dtype == "fp32" else 2
    np.ndarray(
        (*view.shape, element),
        np.bool_,
        buffer=mask.data,
        offset=view.offset,
        strides=(*view.strides, 1),
    )[...] = False
    return mask


@dataclass(frozen=True)
class _Maker:
    dtype: str
    buffers: dict[str, Image]
    views: dict[str, View]

    def add(self, name: str, shape: tuple[int, ...], layout: str) -> None:
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
            offset += 2 * UNALIGNED_ELEMENTS
        else:
            strides = (rows * row, row, depth, 1)
            size = math.prod(shape)
        if layout == "bhsd":
            shape = (batch, heads, rows, depth)
            strides = (strides[0], strides[2], strides[1], strides[3])
        self._new_buffer(name, 2 * size, name == "out")
        self.views[name] = View(name, offset, shape, tuple(2 * s for s in strides), self.dtype)

    def add_lse(self, shape: tuple[int, int, int]) -> None:
        """Add the contiguous log-sum-exp."""
        self._new_buffer("lse", 4 * math.prod(shape), output=True)
        _, heads, rows = shape
        strides = (4 * heads * rows, 4 * rows, 4)
        self.views["lse"] = View("lse", GUARD_BYTES, shape, strides, "fp32")

    def pack(self, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        """Put query, key and value side by side along the heads of one tensor."""
        batch, rows, _, depth = arrays["query"].shape
        if any(array.shape[1] != rows for array in arrays.values()):
            raise ValueError("packed tensors have the same number of rows")
        heads = sum(array.shape[2] for array in arrays.values())
        strides = tuple(2 * s for s in (rows * heads * depth, heads * depth, depth, 1))
        self._new_buffer("packed", 2 * batch * rows * heads * depth, output=False)
        before = 0
        for name, array in arrays.items():
            offset = GUARD_BYTES + 2 * before * depth
            self.views[name] = View("packed", offset, array.shape, strides, self.dtype)
            self.fill(name, array)
            before += array.shape[2]

    def fill(self, name: str, array: NDArray[np.float32]) -> None:
        """Write values of the element type, (batch, rows, heads, depth)."""
        view = self.views[name]
        bits = to_bits(array, self.dtype)
        if view.shape != array.shape:
            bits = bits.swapaxes(1, 2)
        view.bits(self.buffers[view.buffer])[...] = bits

    def _new_buffer(self, name: str, size: int, output: bool) -> None:
        total = size + 2 * GUARD_BYTES + 4 * UNALIGNED_ELEMENTS
        if output:
            self.buffers[name] = np.full(total, GUARD_PATTERN, dtype=np.uint8)
        else:
            poison = np.full(total // 2, POISON_BITS[self.dtype], dtype=np.uint16)
            self.buffers[name] = poison.view(np.uint8)
