"""The memory of a matrix product's case (see ``buffers``): majors, padding, shared buffers.

Rows (columns, for an A or B whose other extent is contiguous) begin at multiples of 16 bytes, as
the launcher requires; where that leaves space after a row, or the case has more of it, the space is
NaN in inputs and the guard pattern in outputs. TMA writes in units of 16 bytes: up to the next
multiple after a row of the output anything may be written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.scales import arrange
from fa4gen.scales.atoms import ATOM_BYTES, BYTES, GROUPS, LINES
from fa4gen.scales.narrow import ELEMENTS, encode, pack_pairs
from fa4gen.verify.buffers import (
    GUARD_BYTES,
    LEAST_ALIGNMENT,
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

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.cases import GemmCase
    from fa4gen.verify.gemm.inputs import GemmInputs

CHUNK_BYTES = 16
"""Bytes: strides are multiples of it, and TMA writes in units of it."""
TENSORS = ("a", "b", "c", "out", "scale_a", "scale_b")
ROW_PADDING_BYTES = 48
MATRIX_PADDING_BYTES = 112


@dataclass(frozen=True)
class GemmMemory(CaseMemory):
    """Views are "a", "b", "out", with a residual "c", and with scales "scale_a" and "scale_b"."""

    alpha: float
    beta: float

    def place_of(self, name: str, index: tuple[int, ...]) -> str:
        """Name an element of the output."""
        return words(name, ("batch", "row", "column")[3 - len(index) :], index)

    def outside(self, name: str) -> NDArray[np.bool_]:
        """Return a mask over the output's buffer: whole units of 16 bytes belong to the output."""
        view = self.views[name]
        per_chunk = CHUNK_BYTES // view.strides[-1]
        columns = -(-view.shape[-1] // per_chunk) * per_chunk
        whole = replace(view, shape=(*view.shape[:-1], columns))
        return CaseMemory.outside(replace(self, views={**self.views, name: whole}), name)


def place(case: GemmCase, inputs: GemmInputs, plan: GemmPlan) -> GemmMemory:
    """Lay the inputs out as the case says, and poison the output unless it holds C."""
    maker = _Maker(case, {}, {})
    maker.add("a", inputs.a, plan.dtype, contiguous=2 if plan.a_major == "k" else 1)
    maker.add("b", inputs.b, plan.b_dtype, contiguous=1 if plan.b_major == "k" else 2)
    for scales, values in zip(plan.scales, inputs.scales, strict=True):
        if scales.in_atoms:
            by_rows = values if scales.operand == "a" else values.transpose(0, 2, 1)
            maker.add_atoms(scales.name, by_rows, scales.dtype)
            continue
        maker.add(scales.name, values, scales.dtype, contiguous=-1 if case.padded else 1)
    batch = 1 if case.batch is None else case.batch
    out = np.zeros((batch, case.m, case.n), np.float32)
    if case.in_place and inputs.c is not None:
        maker.add("out", inputs.c, plan.out_dtype)
        maker.views["c"] = maker.views["out"]
    else:
        maker.add("out", out, plan.out_dtype)
        poison(maker.views["out"], maker.buffers["out"])
        if inputs.c is not None:
            maker.add("c", inputs.c, plan.out_dtype)
    return GemmMemory(maker.buffers, maker.views, inputs.alpha, inputs.beta)


def read_out(memory: GemmMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32]:
    """Return the output in ``buffers`` as float32 (batch, m, n)."""
    view = memory.views["out"]
    found = from_bits(view.bits(buffers[view.buffer]), view.dtype)
    return found[None] if len(view.shape) == 2 else found


@dataclass(frozen=True)
class _Maker:
    case: GemmCase
    buffers: dict[str, Image]
    views: dict[str, View]

    def add(self, name: str, values: NDArray[np.float32], dtype: str, contiguous: int = -1) -> None:
        """Add a tensor (batch, ...) with a buffer of its own and fill it.

        ``contiguous`` is the axis that is contiguous in memory.
        """
        self._put(name, _bits(values, dtype, contiguous), dtype, contiguous)

    def add_atoms(self, name: str, values: NDArray[np.float32], dtype: str) -> None:
        """Add scales (batch, rows, blocks of k) in the order that Blackwell reads."""
        atoms = arrange(_bits(values, dtype, -1))
        self._put(name, atoms.reshape(*atoms.shape[:3], ATOM_BYTES), dtype, -1)
        view = self.views[name]
        inner, strides = (LINES, GROUPS, BYTES), (GROUPS * BYTES, BYTES, 1)
        self.views[name] = replace(
            view, shape=(*view.shape[:-1], *inner), strides=(*view.strides[:-1], *strides)
        )

    def _put(self, name: str, values: NDArray[Any], dtype: str, contiguous: int) -> None:
        element = numpy_dtype(dtype).itemsize
        axes = [axis for axis in range(values.ndim) if axis != contiguous % values.ndim]
        axes.append(contiguous % values.ndim)
        strides = [element] * values.ndim
        step = element
        for axis, inner in zip(axes[-2::-1], axes[:0:-1], strict=True):
            step = _rounded_up(step * values.shape[inner]) + self._padding(name, axis)
            strides[axis] = step
        offset = GUARD_BYTES + (LEAST_ALIGNMENT if self.case.padded else 0)
        total = max(1, values.shape[0]) * strides[0]
        self.buffers[name] = new_buffer(-(-total // element), dtype, output=name == "out")
        view = View(name, offset, values.shape, tuple(strides), dtype)
        if self.case.padded:
            view = with_odd_strides(view, contiguous)
        view.bits(self.buffers[name])[...] = values
        if self.case.batch is None or name.removeprefix("scale_") in self.case.shared:
            view = replace(view, shape=view.shape[1:], strides=view.strides[1:])
        self.views[name] = view

    def _padding(self, name: str, axis: int) -> int:
        """Return unused bytes, of each tensor another number of them."""
        if not self.case.padded:
            return 0
        own = CHUNK_BYTES * TENSORS.index(name)
        return own + (ROW_PADDING_BYTES if axis else MATRIX_PADDING_BYTES)


def _rounded_up(size: int) -> int:
    return -(-size // CHUNK_BYTES) * CHUNK_BYTES


def _bits(values: NDArray[np.float32], dtype: str, contiguous: int) -> NDArray[Any]:
    """Return the elements in memory; those that share bytes do so along the contiguous axis."""
    if dtype == "fp4_e2m1":
        patterns = encode(np.moveaxis(values, contiguous, -1), ELEMENTS[dtype])
        packed: NDArray[Any] = np.moveaxis(pack_pairs(patterns), -1, contiguous)
        return packed
    with np.errstate(invalid="ignore"):
        return to_bits(values, dtype)
