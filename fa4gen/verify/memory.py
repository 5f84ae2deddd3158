"""The memory of an attention case (see ``buffers``): the layouts of its tensors.

Layouts, by the caller's axes (``layout`` of the launcher) and the order in memory:

* ``bshd``: contiguous (batch, rows, heads, depth).
* ``bhsd``: contiguous (batch, heads, rows, depth), passed as such.
* ``transposed``: memory as in bhsd, passed as a (batch, rows, heads, depth) view.
* ``padded``: as bshd, with 16 unused elements after each row of heads, 48 after each batch, an
  address that is an odd multiple of 16 bytes, and odd strides of axes with one element.
* ``apart``: unused elements after each head, row and batch, other numbers of them for each tensor,
  and keys and output with heads before rows in memory; passed as bshd.
* ``packed``: query, key and value are slices of one (batch, rows, columns of all heads) tensor; the
  output is padded.

The log-sum-exp and the scales of fp8 are contiguous, as the launcher requires.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fa4gen.verify.buffers import (
    GUARD_BYTES,
    LEAST_ALIGNMENT,
    OUTPUTS,
    RAISED,
    CaseMemory,
    Image,
    View,
    new_buffer,
    poison,
    with_odd_strides,
    words,
)
from fa4gen.verify.rounding import from_bits, numpy_dtype, to_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fa4gen.verify.cases import Case
    from fa4gen.verify.inputs import Inputs

ROW_PADDING = 16
APART = ("query", "key", "value", "out")
BATCH_PADDING = 48


@dataclass(frozen=True)
class AttentionMemory(CaseMemory):
    """The tensors' places, and the launcher's other arguments.

    Views are "query", "key", "value", "out"; "lse" for a kernel that writes it;
    "query_descale", "key_descale", "value_descale", "sinks" where the call passes them.
    """

    layout: Literal["bshd", "bhsd"]
    softmax_scale: float | None
    """None for the launcher's default."""
    packed: tuple[bool, bool] = (False, False)
    """Whether queries, and keys, are the rows of all sequences, without an axis of batches."""
    lines_of_keys: bool = False
    """Whether the keys of a column of values are contiguous."""

    def place_of(self, name: str, index: tuple[int, ...]) -> str:
        """Name an element by its logical place, whatever the layout."""
        if self.packed[0] and name != RAISED:
            index = 0, *index
        if name == RAISED:
            return words("max_logits", ("head",), index)
        if name == "lse":
            return words(name, ("batch", "head", "row"), index)
        if self.layout == "bhsd":
            batch, head, row, column = index
            index = batch, row, head, column
        return words(name, ("batch", "row", "head", "column"), index)


def place(
    case: Case,
    inputs: Inputs,
    dtype: str,
    *,
    lse: bool,
    kv_dtype: str | None = None,
    out_dtype: str | None = None,
    packed: tuple[bool, bool] = (False, False),
    tables: Mapping[str, NDArray[np.int32]] | None = None,
    values_in_keys: bool = False,
    lines_of_keys: bool = False,
) -> AttentionMemory:
    """Lay the inputs out as the case says, and poison the outputs.

    Keys, values and output have the type of the query unless ``kv_dtype`` or ``out_dtype`` names
    another. ``packed``: see AttentionMemory. ``tables``: further arrays of int32 of the call, by
    argument. ``values_in_keys``: values are the first columns of the keys, in their memory.
    ``lines_of_keys``: the keys of a column of values are contiguous.
    """
    maker = _Maker({}, {}, whole_rows=bool(tables))
    arrays = {"query": inputs.query, "key": inputs.key, "value": inputs.value}
    out_shape = (*inputs.query.shape[:3], inputs.value.shape[3])
    if lines_of_keys:
        maker.add_lines("value", arrays.pop("value"), case.layout, kv_dtype or dtype)
    if case.layout == "packed":
        maker.pack(arrays, dtype)
    else:
        for name, array in arrays.items():
            if name == "value" and values_in_keys:
                whole = maker.views["key"]
                shape = (*whole.shape[:-1], array.shape[-1])
                maker.views[name] = replace(whole, shape=shape)
                continue
            own = dtype if name == "query" else kv_dtype or dtype
            maker.add(name, array.shape, case.layout, own)
            maker.fill(name, array.swapaxes(1, 2) if case.layout == "bhsd" else array)
    out_layout = "padded" if case.layout == "packed" else case.layout
    maker.add("out", out_shape, out_layout, out_dtype or dtype)
    for name, array in inputs.descales.items():
        maker.add_contiguous(f"{name}_descale", array.shape)
        maker.fill(f"{name}_descale", array)
    if inputs.sinks is not None:
        maker.add_contiguous("sinks", inputs.sinks.shape)
        maker.fill("sinks", inputs.sinks)
    for name, tensor in inputs.tensors.items():
        dtype_name = "fp32" if tensor.dtype == np.float32 else "int32"
        maker.add_contiguous(f"given_{name}", tensor.shape, dtype_name)
        view = maker.views[f"given_{name}"]
        view.bits(maker.buffers[view.buffer])[...] = tensor.view(np.uint32)
    if inputs.max_logits is not None:
        maker.add_contiguous(RAISED, inputs.max_logits.shape)
    if lse:
        batch, rows, heads, _ = inputs.query.shape
        maker.add_contiguous("lse", (batch, heads, rows))
    for name, table in (tables or {}).items():
        maker.add_contiguous(name, table.shape, "int32")
        maker.views[name].bits(maker.buffers[name])[...] = table.view(np.uint32)
    of_queries, of_keys = packed
    for name in ("query", "out", "lse") * of_queries + ("key", "value") * of_keys:
        if name in maker.views:
            view = maker.views[name]
            maker.views[name] = replace(view, shape=view.shape[1:], strides=view.strides[1:])
    memory = AttentionMemory(
        maker.buffers,
        maker.views,
        "bhsd" if case.layout == "bhsd" else "bshd",
        None if inputs.scale_is_default else inputs.softmax_scale,
        packed,
        lines_of_keys,
    )
    for view in memory.outputs.values():
        poison(view, memory.buffers[view.buffer])
    if inputs.max_logits is not None:
        maker.fill(RAISED, inputs.max_logits)
    return memory


def read_out(memory: AttentionMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32]:
    """Return the output in ``buffers`` as float32 (batch, rows, heads, depth)."""
    view = memory.views["out"]
    return from_bits(rows_before_heads(memory, out_bits(memory, buffers)), view.dtype)


def read_lse(memory: AttentionMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32] | None:
    """Return the log-sum-exp in ``buffers``, (batch, heads, rows), if there is one."""
    view = memory.views.get("lse")
    if view is None:
        return None
    lse = view.bits(buffers[view.buffer]).view(np.float32)
    return lse[None] if memory.packed[0] else lse


def read_max_logits(
    memory: AttentionMemory, buffers: Mapping[str, Image]
) -> NDArray[np.float32] | None:
    """Return the largest logits in ``buffers``, (query heads), if the kernel raises any."""
    view = memory.views.get(RAISED)
    return None if view is None else view.bits(buffers[view.buffer]).view(np.float32)


def out_bits(memory: AttentionMemory, buffers: Mapping[str, Image]) -> NDArray[Any]:
    """Return the output's bits in the order of the launcher's axes, a batch in front."""
    view = memory.views["out"]
    bits = view.bits(buffers[view.buffer])
    return bits[None] if memory.packed[0] else bits


def rows_before_heads(memory: AttentionMemory, array: NDArray[Any]) -> NDArray[Any]:
    """Transpose a tensor from the launcher's order of axes to (batch, rows, heads, depth)."""
    return array.swapaxes(1, 2) if memory.layout == "bhsd" else array


@dataclass(frozen=True)
class _Maker:
    buffers: dict[str, Image]
    views: dict[str, View]
    whole_rows: bool = False
    """Whether the keys' batches are whole rows apart, as clipped maps need it."""

    def add(self, name: str, shape: tuple[int, ...], layout: str, dtype: str) -> None:
        """Add a tensor (batch, rows, heads, depth) with a buffer of its own."""
        batch, rows, heads, depth = shape
        offset = GUARD_BYTES
        row = heads * depth
        if layout == "apart":
            strides, size = self._apart(name, shape)
        elif layout in ("bhsd", "transposed"):
            strides = (heads * rows * depth, depth, rows * depth, 1)
            size = math.prod(shape)
        elif layout == "padded":
            row += ROW_PADDING
            padding = row if self.whole_rows and name in ("key", "value") else BATCH_PADDING
            strides = (rows * row + padding, row, depth, 1)
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
        view = View(name, offset, shape, tuple(element * s for s in strides), dtype)
        self.views[name] = with_odd_strides(view) if layout == "padded" else view

    def add_lines(self, name: str, array: NDArray[np.float32], layout: str, dtype: str) -> None:
        """Add and fill a tensor (batch, rows, heads, depth) with contiguous rows."""
        batch, rows, heads, depth = array.shape
        line = -(-rows // LEAST_ALIGNMENT) * LEAST_ALIGNMENT
        if layout in ("padded", "apart"):
            line += LEAST_ALIGNMENT
        self._new_buffer(name, batch * heads * depth * line, dtype)
        strides = (heads * depth * line, 1, depth * line, line)
        view = View(name, GUARD_BYTES, array.shape, strides, dtype)
        self.views[name] = view
        self.fill(name, array)
        if layout == "bhsd":
            batch_step, row, head, column = strides
            shape = (batch, heads, rows, depth)
            self.views[name] = replace(view, shape=shape, strides=(batch_step, head, row, column))

    def _apart(self, name: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Return strides that no other tensor and no other axis has, and the elements in all."""
        batch, rows, heads, depth = shape
        number = APART.index(name)
        step = depth + ROW_PADDING * (1 + number)
        if name in ("key", "out"):
            row, head = step, step * rows + ROW_PADDING * (7 + number)
            end = head * heads
        else:
            head, row = step, step * heads + ROW_PADDING * (7 + number)
            end = row * rows
        end += ROW_PADDING * (13 + number)
        if self.whole_rows and name in ("key", "value"):
            end = -(-end // row) * row
        return (end, row, head, 1), end * batch

    def add_contiguous(self, name: str, shape: tuple[int, ...], dtype: str = "fp32") -> None:
        """Add a contiguous array of elements of 4 bytes."""
        self._new_buffer(name, math.prod(shape), dtype)
        strides = tuple(4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        self.views[name] = View(name, GUARD_BYTES, shape, strides, dtype)

    def pack(self, arrays: Mapping[str, NDArray[np.float32]], dtype: str) -> None:
        """Concatenate query, key and value along the columns of one tensor."""
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
        """Write values of the element type, axes in the order of the view."""
        view = self.views[name]
        view.bits(self.buffers[view.buffer])[...] = to_bits(array, view.dtype)

    def _new_buffer(self, name: str, elements: int, dtype: str) -> None:
        self.buffers[name] = new_buffer(elements, dtype, output=name in OUTPUTS)
