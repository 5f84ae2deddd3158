"""Tensors whose rows, heads and batches are 2^31 elements apart, over memory that costs nothing.

The sequences of a page table are 2^30 entries apart, its largest stride in 32 bits. Matrix products
have only their scales far apart: the strides of their matrices are in tensor maps.

A case has its tensors near each other, where they are cheap to draw, to copy and to compare. For a
launch their elements go to addresses far apart, in mappings of which only touched pages exist, and
come back after it: offsets that a kernel or a launcher computes in 32 bits are wrong there.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.verify.buffers import GUARD_BYTES, View
from fa4gen.verify.memory import AttentionMemory
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fa4gen.verify.buffers import CaseMemory, Image

TENSORS = ("query", "key", "value", "out")
SCALES = ("scale_a", "scale_b")
FAR_ELEMENTS = 1 << 31
FAR_ENTRIES = 1 << 30
"""The stride of the page table, in entries from one sequence to the next."""
OWN_BYTES = 4096
"""The difference of each tensor's strides from those of the one before."""
MAP_NORESERVE = 0x4000
"""Linux's number of the flag; the module has the name from Python 3.13 on."""


@dataclass(frozen=True)
class FarMemory:
    """The memory of a case with its tensors far apart, and the buffers that a launch works on."""

    near: CaseMemory
    memory: CaseMemory
    buffers: dict[str, Image]
    tensors: tuple[str, ...]
    """Those that are far apart."""

    @property
    def moved(self) -> frozenset[str]:
        """Buffers of which a tensor map leads to the first element alone."""
        return frozenset(self.memory.views[name].buffer for name in self.tensors)

    def bring_back(self, buffers: Mapping[str, Image]) -> None:
        """Write the tensors after a launch to ``buffers``, those of the case."""
        for name in self.tensors:
            near, far = self.near.views[name], self.memory.views[name]
            near.bits(buffers[near.buffer])[...] = far.bits(self.buffers[far.buffer])


def far_memory(memory: CaseMemory, buffers: Mapping[str, Image]) -> FarMemory:
    """Copy the tensors in ``buffers`` to places far apart; other arrays stay as they are."""
    views, images = dict(memory.views), dict(buffers)
    tensors: tuple[str, ...] = SCALES
    strides_of: Callable[[View, int], tuple[int, ...]] = _all_far
    if isinstance(memory, AttentionMemory):
        tensors, strides_of = TENSORS, partial(_far_strides, memory)
    for number, name in enumerate(tensors):
        view = memory.views[name]
        if name == "value" and view.buffer == "key":  # they are the first columns of the keys
            views[name] = replace(views["key"], shape=view.shape)
            continue
        strides = strides_of(view, number)
        views[name], images[view.buffer] = _moved(view, strides, buffers[view.buffer])
    if (table := memory.views.get("page_table")) is not None:
        strides = numpy_dtype(table.dtype).itemsize * FAR_ENTRIES, table.strides[1]
        views["page_table"], images[table.buffer] = _moved(table, strides, buffers[table.buffer])
    return FarMemory(memory, replace(memory, buffers=images, views=views), images, tensors)


def _moved(view: View, strides: tuple[int, ...], buffer: Image) -> tuple[View, Image]:
    """Copy a view's elements to memory of its own with these strides, in bytes."""
    moved = replace(view, offset=GUARD_BYTES, strides=strides)
    image = _sparse(_reach(moved) + 2 * GUARD_BYTES)
    moved.bits(image)[...] = view.bits(buffer)
    return moved, image


def _far_strides(memory: AttentionMemory, view: View, number: int) -> tuple[int, ...]:
    """Return strides in bytes: batches are nearest, then heads, then rows.

    Where a map ends at any row, strides are below 2^34 bytes, and batches, or pages, whole rows
    apart: then rows are near each other.
    """
    named = ("batch", "heads", "rows") if memory.layout == "bhsd" else ("batch", "rows", "heads")
    axes = named[4 - len(view.shape) :]
    extent = dict(zip(axes, view.shape, strict=False))
    element = numpy_dtype(view.dtype).itemsize
    far = element * FAR_ELEMENTS + number * OWN_BYTES
    of_keys = view.buffer in ("key", "value")
    if of_keys and "batch" in axes and {"key_lengths", "page_table"} & set(memory.views):
        row = element * (view.shape[-1] + 16 * number)
        a_batch = row * max(1, extent["rows"])
        strides = {"rows": row, "heads": -(-far // row) * row + -(-a_batch // row) * row}
        strides["batch"] = 2 * -(-far // row) * row
    else:
        inner = "rows" if memory.lines_of_keys and view.buffer == "value" else "columns"
        axes, extent = (*axes, "columns"), {**extent, "columns": view.shape[-1]}
        step, strides = far, {inner: element}
        for axis in ("batch", "heads", "rows", "columns"):
            if axis in axes and axis != inner:
                strides[axis] = step
                step *= max(1, extent[axis])
        return tuple(strides[axis] for axis in axes)
    return (*(strides[axis] for axis in axes), element)


def _all_far(view: View, number: int) -> tuple[int, ...]:
    """Return strides in bytes, each far and larger than the one before."""
    far = numpy_dtype(view.dtype).itemsize * FAR_ELEMENTS + number * OWN_BYTES
    extents = [max(1, extent) for extent in view.shape]
    return tuple(far * math.prod(extents[:axis]) for axis in range(len(extents)))


def _reach(view: View) -> int:
    """Return the bytes from the first element of ``view`` to past its last."""
    if 0 in view.shape:
        return 0
    last = sum(
        (extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True)
    )
    return last + numpy_dtype(view.dtype).itemsize


def _sparse(size: int) -> Image:
    """Return zeros of which only touched pages take memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    size = math.ceil(size / mmap.PAGESIZE) * mmap.PAGESIZE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)
