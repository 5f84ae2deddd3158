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

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.runtime.scale_arguments import AMAX
from fa4gen.scales.atoms import ATOM_BYTES, BYTES, GROUPS, LINES, arrange
from fa4gen.verify.buffers import (
    GUARD_BYTES,
    GUARD_PATTERN,
    LEAST_ALIGNMENT,
    OUTPUTS,
    CaseMemory,
    Image,
    View,
    new_buffer,
    poison,
    with_odd_strides,
    words,
)
from fa4gen.verify.gemm.initial_amax import count_of, initial
from fa4gen.verify.gemm.scales import scale_bits
from fa4gen.verify.rounding import NARROW, from_bits, narrow_values, numpy_dtype, stored_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.case import GemmCase
    from fa4gen.verify.gemm.groups import Groups
    from fa4gen.verify.gemm.inputs import GemmInputs
    from fa4gen.verify.gemm.scatter import Scatter

CHUNK_BYTES = 16
"""Bytes: strides are multiples of it, and TMA writes in units of it."""
TENSORS = ("a", "b", "c", "out", "scale_a", "scale_b", "out_scales", "row_index",
           "out_index", "row_weights")  # fmt: skip
PLACES = {
    "out": ("batch", "row", "column"),
    "out_scales": ("batch", "row", "block"),
    AMAX: ("group",),
}
ATOM_PLACES = ("batch", "atom of rows", "atom of blocks", "line", "group", "byte")
"""The axes of outputs in messages."""
ROW_PADDING_BYTES = 48
MATRIX_PADDING_BYTES = 112


@dataclass(frozen=True)
class GemmMemory(CaseMemory):
    """Views are "a", "b", "out", with a residual "c", with scales "scale_a" and "scale_b".

    With gathered rows there is "row_index", too, and for a quantised output "out_scales", for one
    of nvfp4 also "out_tensor_scale".
    """

    alpha: float
    beta: float
    tensor_scale: float = 1.0
    """The scale of a quantised output's tensor."""
    groups: Groups | None = None
    scatter: Scatter | None = None
    unwritten: NDArray[np.bool_] | None = None
    """The rows of the output that are not written, by matrix."""

    def place_of(self, name: str, index: tuple[int, ...]) -> str:
        """Name an element of an output."""
        axes = PLACES[name] if len(index) <= len(PLACES[name]) else ATOM_PLACES
        return words(name, axes[len(axes) - len(index) :], index)

    def index_of(self, element: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index in the output of an element of the result."""
        if self.scatter is not None:
            element = (0, int(self.scatter.places[element[1]]), element[2])
        elif self.groups is not None:
            element = (*self.groups.row_of(element[1]), element[2])
        return element[3 - len(self.views["out"].shape) :]

    def outside(self, name: str) -> NDArray[np.bool_]:
        """Return a mask over an output's buffer: TMA writes whole units of 16 bytes of ``out``."""
        view = self.views[name]
        if name == "out":
            per_chunk = CHUNK_BYTES // view.strides[-1]
            columns = -(-view.shape[-1] // per_chunk) * per_chunk
            view = replace(view, shape=(*view.shape[:-1], columns))
        mask = CaseMemory.outside(replace(self, views={**self.views, name: view}), name)
        if self.unwritten is None or name == AMAX:
            return mask
        size = numpy_dtype(view.dtype).itemsize
        shape, strides = (*view.shape, size), (*view.strides, 1)
        written = np.ndarray(shape, np.bool_, mask.data, view.offset, strides)
        in_atoms = len(view.shape) > len(PLACES[name])
        axes = len(ATOM_PLACES if in_atoms else PLACES[name])
        by_matrix = written if len(view.shape) == axes else written[None]
        unwritten = self.unwritten
        if in_atoms and self.groups is not None:
            unwritten = self.groups.atoms_of_none()
        by_matrix[unwritten] = True
        return mask


def place(case: GemmCase, inputs: GemmInputs, plan: GemmPlan) -> GemmMemory:
    """Lay the inputs out as the case says, and poison the output unless it holds C."""
    maker = _Maker(case, _without_batch(case, inputs, plan), {}, {})
    maker.add("a", inputs.a, plan.dtype, contiguous=2 if plan.a_major == "k" else 1)
    maker.add("b", inputs.b, plan.b_dtype, contiguous=1 if plan.b_major == "k" else 2)
    for scales, values in zip(plan.scales, inputs.scales, strict=True):
        bits = scale_bits(scales, values, inputs.groups)
        if scales.in_atoms:
            maker.put_atoms(scales.name, bits, scales.dtype)
            continue
        along_k = -1 if scales.operand == "a" else 1  # tensor cores' are row-major but with padding
        contiguous = along_k if scales.in_tensor_cores and not case.padded else 1
        maker.put(scales.name, bits, scales.dtype, contiguous=-1 if case.padded else contiguous)
    if inputs.row_index is not None:
        maker.put("row_index", inputs.row_index.view(np.uint32), "int32", contiguous=-1)
    out = np.zeros((*inputs.stored_rows, case.n), np.float32)
    if inputs.scatter is not None:
        maker.put("out_index", inputs.scatter.index[None].view(np.uint32), "int32", contiguous=-1)
        maker.add("row_weights", inputs.scatter.weights[None], "fp32")
    if case.in_place and inputs.c is not None:
        maker.add("out", inputs.c, plan.out_dtype)
        maker.views["c"] = maker.views["out"]
    else:
        maker.add("out", out, plan.out_dtype)
        poison(maker.views["out"], maker.buffers["out"])
        if inputs.unwritten is not None:
            maker.guard("out", inputs.unwritten)
        if inputs.c is not None:
            maker.add("c", inputs.c, plan.c_dtype)
    if plan.output_scales is not None:
        blocks = np.zeros((*out.shape[:2], plan.output_scales.blocks(case.n)), np.uint8)
        if plan.output_scales.in_atoms:
            placed = blocks if inputs.groups is None else inputs.groups.in_atoms(blocks, 0)
            maker.put_atoms("out_scales", arrange(placed), plan.output_scales.dtype)
        else:
            floats = blocks.astype(np.float32)
            contiguous = -1 if case.padded else 1
            maker.add("out_scales", floats, plan.output_scales.dtype, contiguous=contiguous)
        poison(maker.views["out_scales"], maker.buffers["out_scales"])
        if inputs.groups is not None:
            maker.guard("out_scales", _unwritten(inputs.groups, plan.output_scales.in_atoms))
        if plan.output_scales.has_tensor_scale:
            maker.add_floats(TENSOR_SCALE, np.array([inputs.tensor_scale], np.float32))
    if plan.finds_amax:
        maker.add_floats(AMAX, initial(count_of(inputs)))
    groups = inputs.groups or inputs.k_groups
    if groups is not None:
        maker.add_rows(*groups.argument)
    return GemmMemory(
        maker.buffers, maker.views, inputs.alpha, inputs.beta, inputs.tensor_scale, inputs.groups,
        inputs.scatter, inputs.unwritten, far=case.far,
    )  # fmt: skip


def read_out(memory: GemmMemory, buffers: Mapping[str, Image]) -> NDArray[np.float32]:
    """Return the output in ``buffers`` as float32 (batch, m, n); with groups, their rows alone."""
    bits, dtype = read_bits(memory, buffers, "out"), memory.views["out"].dtype
    if dtype in NARROW:
        found: NDArray[np.float32] = narrow_values(bits, dtype)
        return found
    return from_bits(bits, dtype)


def read_bits(memory: GemmMemory, buffers: Mapping[str, Image], name: str) -> NDArray[Any]:
    """Return the bit patterns of an output in ``buffers``, (batch, rows, ...), as ``read_out``."""
    view = memory.views[name]
    found = view.bits(buffers[view.buffer])
    found = found[None] if len(view.shape) == 2 else found
    if memory.scatter is not None:
        return memory.scatter.gathered(found[0])[None]
    return found if memory.groups is None else rows_of_groups(memory.groups, found)


def rows_of_groups(groups: Groups, found: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of all groups of (matrices, rows, columns), one after the other."""
    none = np.zeros((0, found.shape[2]), found.dtype)
    rows = (found[part.batch, part.first :][: part.rows] for part in groups.parts())
    return np.concatenate([none, *rows])[None]


def _unwritten(groups: Groups, in_atoms: bool) -> NDArray[np.bool_]:
    """Return a mask over matrices and rows, or atoms of rows, of what no group has."""
    return groups.atoms_of_none() if in_atoms else groups.rows_of_none()


def _without_batch(case: GemmCase, inputs: GemmInputs, plan: GemmPlan) -> frozenset[str]:
    """Return the arguments without a batch in front."""
    if inputs.groups is not None:
        of_rows = {
            "a",
            "scale_a",
            *OUTPUTS,
            "row_index",
            "out_index",
            "row_weights",
            *(["c"] if "m" in plan.c.axes else []),
        }
        if inputs.groups.kind == "offsets":
            return frozenset(of_rows)
        return frozenset(("a", "scale_a") if plan.gathers_rows else ())
    if inputs.k_groups is not None:
        return frozenset(("a", "b"))
    if case.batch is None:
        return frozenset(TENSORS)
    return frozenset({*case.shared, *(f"scale_{name}" for name in case.shared)})


@dataclass(frozen=True)
class _Maker:
    case: GemmCase
    single: frozenset[str]
    """Arguments that are passed without their first axis."""
    buffers: dict[str, Image]
    views: dict[str, View]

    def add(self, name: str, values: NDArray[np.float32], dtype: str, contiguous: int = -1) -> None:
        """Add a tensor (batch, ...) with a buffer of its own and fill it.

        ``contiguous`` is the axis that is contiguous in memory.
        """
        self.put(name, stored_bits(values, dtype, contiguous), dtype, contiguous)

    def put_atoms(self, name: str, atoms: NDArray[Any], dtype: str) -> None:
        """Add scales in the order that Blackwell reads: (batch, rows, blocks, 32, 4, 4)."""
        self.put(name, atoms.reshape(*atoms.shape[:3], ATOM_BYTES), dtype, -1)
        view = self.views[name]
        inner, strides = (LINES, GROUPS, BYTES), (GROUPS * BYTES, BYTES, 1)
        self.views[name] = replace(
            view, shape=(*view.shape[:-1], *inner), strides=(*view.strides[:-1], *strides)
        )

    def put(self, name: str, values: NDArray[Any], dtype: str, contiguous: int) -> None:
        """Add a tensor by its bit patterns."""
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
        self.buffers[name] = new_buffer(-(-total // element), dtype, output=name in OUTPUTS)
        view = View(name, offset, values.shape, tuple(strides), dtype)
        if self.case.padded:
            view = with_odd_strides(view, contiguous)
        view.bits(self.buffers[name])[...] = values
        if name in self.single:
            view = replace(view, shape=view.shape[1:], strides=view.strides[1:])
        self.views[name] = view

    def guard(self, name: str, rows: NDArray[np.bool_]) -> None:
        """Fill rows, or atoms of rows, by matrix, with the pattern that must survive."""
        bits = self.views[name].bits(self.buffers[name])
        element = np.frombuffer(bytes([GUARD_PATTERN] * bits.itemsize), bits.dtype)[0]
        lead = 1 if name in self.single else 2
        bits.reshape(*rows.shape, *bits.shape[lead:])[rows] = element

    def add_floats(self, name: str, values: NDArray[np.float32]) -> None:
        """Add a contiguous array of float32 with one axis."""
        self.buffers[name] = new_buffer(values.size, "fp32", output=name in OUTPUTS)
        self.views[name] = View(name, GUARD_BYTES, values.shape, (values.itemsize,), "fp32")
        self.views[name].bits(self.buffers[name])[...] = values.view(np.uint32)

    def add_rows(self, name: str, rows: NDArray[np.int32]) -> None:
        """Add the array with the rows of groups."""
        self.buffers[name] = new_buffer(rows.size, "int32", output=False)
        self.views[name] = View(name, GUARD_BYTES, rows.shape, (rows.itemsize,), "int32")
        self.views[name].bits(self.buffers[name])[...] = rows.view(np.uint32)

    def _padding(self, name: str, axis: int) -> int:
        """Return unused bytes, of each tensor another number of them."""
        if not self.case.padded:
            return 0
        own = CHUNK_BYTES * TENSORS.index(name)
        return own + (ROW_PADDING_BYTES if axis else MATRIX_PADDING_BYTES)


def _rounded_up(size: int) -> int:
    return -(-size // CHUNK_BYTES) * CHUNK_BYTES
