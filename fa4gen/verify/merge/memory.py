"""Tensors of a merging case: drawn, and placed in memory (see ``buffers``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.verify.buffers import (
    GUARD_BYTES,
    LEAST_ALIGNMENT,
    CaseMemory,
    Image,
    View,
    new_buffer,
    poison,
    words,
)
from fa4gen.verify.rounding import from_bits, numpy_dtype, round_to, to_bits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.verify.merge.case import MergeCase

    Floats = NDArray[np.float32]

PADDING = 16
"""Elements: 32 bytes of 16-bit types."""
OUT_AXES = ("batch", "row", "head", "column")
LSE_AXES = ("batch", "head", "row")


@dataclass(frozen=True)
class MergeInputs:
    """float32: parts (parts, batch, rows, heads, depth), lse (parts, batch, heads, rows)."""

    parts: Floats
    lse: Floats


@dataclass(frozen=True)
class MergeMemory(CaseMemory):
    """Views are "parts", "part_lse", "out", and "lse" for a kernel that writes it."""

    has_batch: bool = True

    def place_of(self, name: str, index: tuple[int, ...]) -> str:
        """Name an element of an output."""
        axes = OUT_AXES if name == "out" else LSE_AXES
        return words(name, axes[len(axes) - len(index) :], index)

    def read(self, name: str, buffers: Mapping[str, Image]) -> Floats:
        """Return an output as float32, with a batch in front."""
        view = self.views[name]
        found = from_bits(view.bits(buffers[view.buffer]), view.dtype)
        return found if self.has_batch else found[None]


def draw(case: MergeCase, plan: MergePlan, rng: np.random.Generator) -> MergeInputs:
    """Draw parts and log-sum-exps; outputs of empty parts are NaN."""
    batch = 1 if case.batch is None else case.batch
    shape = (case.parts, batch, case.rows, case.heads, plan.depth)
    parts = round_to(rng.standard_normal(shape, dtype=np.float32), plan.dtype)
    of_rows = (case.parts, batch, case.heads, case.rows)
    lse = rng.normal(3.0, 2.0, of_rows)
    if case.lse == "apart":
        lse *= 20
    elif case.lse == "huge":
        lse = rng.choice([1e30, -1e30, 1.25e30, 3e38, -3e38], of_rows)
    elif case.lse == "equal":
        lse[:] = 5.5
    elif case.lse == "all_empty":
        lse[:] = -np.inf
    elif case.lse == "empty":
        lse[rng.random(of_rows) < 0.4] = -np.inf
        lse[:, :, :, ::5] = -np.inf  # rows without any
    elif case.lse == "nan":
        lse = rng.choice([1.0, 2.0, -np.inf, np.inf, np.nan], of_rows, p=[0.2, 0.2, 0.3, 0.1, 0.2])
    lse32 = lse.astype(np.float32)
    parts[np.isneginf(lse32).swapaxes(2, 3)] = np.nan
    return MergeInputs(parts, lse32)


def place(case: MergeCase, inputs: MergeInputs, plan: MergePlan) -> MergeMemory:
    """Lay the tensors out as the case says; an output in place of a part is not poisoned."""
    buffers: dict[str, Image] = {}
    views: dict[str, View] = {}
    padding = PADDING if case.padded else 0

    def add(name: str, values: Floats, dtype: str, order: Sequence[int], *, output: bool) -> None:
        element, step = numpy_dtype(dtype).itemsize, 1
        strides = [0] * values.ndim
        for axis in reversed(order):  # from the innermost one outwards
            strides[axis] = element * step
            step = step * values.shape[axis] + (padding if axis != order[-1] or padding else 0)
        offset = GUARD_BYTES + (LEAST_ALIGNMENT if case.padded else 0)
        buffers[name] = new_buffer(max(1, step), dtype, output=output)
        view = View(name, offset, values.shape, tuple(strides), dtype)
        view.bits(buffers[name])[...] = to_bits(values, dtype)
        views[name] = view

    order = (0, 1, 3, 2, 4) if case.padded else (0, 1, 2, 3, 4)  # heads before rows in memory
    rows_first = (0, 1, 3, 2) if case.padded else (0, 1, 2, 3)
    in_place = case.in_place is not None
    add("parts", inputs.parts, plan.dtype, order, output=in_place)
    add("part_lse", inputs.lse, "fp32", rows_first, output=in_place and plan.lse)
    outputs = [("out", "parts"), *([("lse", "part_lse")] * plan.lse)]
    for name, of_parts in outputs:
        whole = views[of_parts]
        if case.in_place is not None:
            own = whole.offset + case.in_place * whole.strides[0]
            views[name] = replace(
                whole, offset=own, shape=whole.shape[1:], strides=whole.strides[1:]
            )
            continue
        shape = np.broadcast_shapes(whole.shape[1:])
        inner = tuple(axis - 1 for axis in (order if name == "out" else rows_first) if axis)
        dtype = plan.out_dtype if name == "out" else "fp32"
        add(name, np.zeros(shape, np.float32), dtype, inner, output=True)
        poison(views[name], buffers[name])
    if case.batch is None:
        views = {name: _without_batch(name, view) for name, view in views.items()}
    return MergeMemory(buffers, views, has_batch=case.batch is not None)


def _without_batch(name: str, view: View) -> View:
    at = 1 if name in ("parts", "part_lse") else 0
    shape, strides = view.shape, view.strides
    return replace(
        view, shape=shape[:at] + shape[at + 1 :], strides=strides[:at] + strides[at + 1 :]
    )
