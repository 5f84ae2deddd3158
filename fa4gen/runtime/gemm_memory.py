"""Addresses, strides and overlaps of a matrix product's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.designs.common.gemm_scales import OutputScales
from fa4gen.runtime.gemm_axes import AXES, element_bytes_of, named_axes
from fa4gen.runtime.group_arguments import wrong_clipped_strides
from fa4gen.runtime.memory_overlap import may_overlap
from fa4gen.runtime.refusal import wrong, wrong_address
from fa4gen.runtime.row_index import ROW_INDEX
from fa4gen.runtime.scale_arguments import (
    ARRANGED,
    check_any_strides,
    check_output_atoms,
    scales_of,
)
from fa4gen.runtime.scattered_rows import SCATTERED
from fa4gen.runtime.strides import ALIGNMENT, meets_itself, wrong_stride

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView


def check_memory(plan: GemmPlan, name: str, view: TensorView) -> list[Problem]:
    """Addresses and strides; a tensor without elements is never touched, and may have any."""
    if 0 in view.shape or name == ROW_INDEX or name in SCATTERED:  # see check_row_places
        return []
    axes = named_axes(plan, name)
    contiguous = {"a": plan.a_major, "b": plan.b_major}.get(name, axes[-1])
    scales = scales_of(plan, name)
    if scales is not None and not scales.in_atoms:
        return check_any_strides(name, view, element_bytes_of(plan, name))
    if name == OutputScales.name:
        problems = check_any_strides(name, view, element_bytes_of(plan, name))
        problems += check_output_atoms(plan, view)
        return problems or list(meets_itself(name, view, "pass elements of their own"))
    if scales is not None:
        axes, contiguous = scales.loaded_axes, scales.loaded_axes[-1]
    remedy = f"pass a copy of {name} in which {contiguous} is contiguous and the rest padded"
    if scales is not None:
        remedy = ARRANGED
    problems = list(wrong_address(name, view.pointer, ALIGNMENT, remedy))
    element_bytes = element_bytes_of(plan, name)
    for axis, extent, stride in zip(axes, view.shape, view.strides, strict=True):
        if axis == contiguous:
            if stride != element_bytes and extent > 1:
                key = {"a": "a_major", "b": "b_major"}.get(name)
                said = f" (the config says {key}: {contiguous})" if key else ""
                expected = f"a stride along {axis} of {element_bytes} bytes{said}"
                problems.append(wrong(name, f"{stride} bytes", expected, remedy))
        elif extent > 1:
            problems += wrong_stride(name, axis, stride, remedy)
    of_rows = plan.groups and name in ("out", "c") and axes == AXES["out"]
    if of_rows or (plan.sums_by_group and name in ("a", "b")):
        problems += wrong_clipped_strides(name, view, axes, remedy)
    if name == "out" and not problems:
        problems += meets_itself(name, view, remedy)
    return problems


def check_overlap(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    """Refuse an output that shares memory with an input; only C itself may be overwritten.

    Each panel of C is read before the same panel of the output is written, and no other is.
    """
    problems = []
    inputs = ("a", "b", "c", "scale_a", "scale_b", ROW_INDEX, *SCATTERED, TENSOR_SCALE)
    pairs = [("out", name) for name in inputs]
    pairs += [(OutputScales.name, name) for name in (*inputs, "out")]
    for written, name in pairs:
        if written not in views or name not in views:
            continue
        out, view = views[written], views[name]
        in_place = (written, name) == ("out", "c") and plan.may_write_in_place
        if in_place and _same_memory(view, out):
            continue
        if may_overlap(out, element_bytes_of(plan, written), view, element_bytes_of(plan, name)):
            but = ", or C's own memory" if in_place else ""
            problems.append(
                wrong(written, f"memory that overlaps {name}'s", f"memory of its own{but}")
            )
    return problems


def _same_memory(c: TensorView, out: TensorView) -> bool:
    """Whether each element has the other's address; strides of extents of 1 do not matter."""
    return (c.pointer, c.shape) == (out.pointer, out.shape) and all(
        stride == other
        for extent, stride, other in zip(c.shape, c.strides, out.strides, strict=True)
        if extent > 1
    )
