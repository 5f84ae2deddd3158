"""Groups of rows among the arguments of a matrix product: their counts, axes and extents.

The counts are on the GPU, and what they are is not checked: the kernel keeps within the tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.tensor_maps import END_ROW
from fa4gen.runtime.gated_arguments import check_columns, wrong_shape
from fa4gen.runtime.refusal import unwanted, wrong, wrong_address, wrong_device
from fa4gen.runtime.scattered_rows import SCATTERED
from fa4gen.runtime.strides import CLIPPED_STRIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

INT32_BYTES = 4
ROW_ARGUMENTS: Final = {"row_offsets": ("offsets", "k_offsets"), "row_counts": ("masked",)}
"""The arrays of int32 with the rows of groups, and the kinds of groups that each is for."""
MORE: Final = {"row_offsets": 1, "row_counts": 0}
"""Elements in addition to one for each group."""


def group_axes(plan: GemmPlan, axes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the axes of an argument of a call with groups, of those that it has in a batch.

    With offsets the rows of all groups are one matrix's, along k those of A and of B; an index
    names rows of one matrix for all groups of either kind.
    """
    divided = {"offsets": {"m", "m_atoms"}, "k_offsets": {"k"}}.get(plan.config.groups or "", ())
    if not {"rows", "out_rows", *divided}.isdisjoint(axes):
        axes = axes[1:]
    return tuple("groups" if axis == "batch" else axis for axis in axes)


def atom_groups(plan: GemmPlan, groups: int) -> int | None:
    """Return how many groups begin an atom of scales of A's rows, or of the output's, in a call.

    None where these are not divided: masked groups have a matrix each.
    """
    return groups if plan.groups == "offsets" else None


def check_rows(plan: GemmPlan, rows: Mapping[str, TensorView | None], device: int) -> list[Problem]:
    """Check that the array with the rows of groups is there, and what is known of it."""
    problems = []
    for name, view in rows.items():
        groups = plan.config.groups
        wanted = groups in ROW_ARGUMENTS[name]
        if view is None and wanted:
            words = "groups + 1" if MORE[name] else "groups"
            problems.append(wrong(name, "nothing", f"int32 ({words},), groups: {groups}"))
        elif view is not None and not wanted:
            said = "without groups" if groups is None else f"with groups: {groups}"
            problems.append(unwanted(name, f"this kernel was generated {said}"))
        elif view is not None:
            problems += _check_row_array(name, view, device)
    return problems


def _check_row_array(name: str, view: TensorView, device: int) -> Iterator[Problem]:
    if view.dtype != "int32":
        yield wrong(name, view.dtype, "int32")
    yield from wrong_device(name, view.device, device, "A's")
    if len(view.shape) != 1:
        yield wrong(name, f"{len(view.shape)} axes {view.shape}", "one axis")
    elif view.dtype == "int32" and view.device >= 0:
        if view.shape[0] > 1 and view.strides[0] != INT32_BYTES:
            yield wrong(name, f"a stride of {view.strides[0]} bytes", "a contiguous array")
        yield from wrong_address(name, view.pointer, INT32_BYTES)


def check_group_extents(
    plan: GemmPlan,
    views: Mapping[str, TensorView],
    axes: Mapping[str, tuple[str, ...]],
    rows: Mapping[str, TensorView | None],
) -> list[Problem]:
    """Check axes and extents of the arguments; ``axes`` are those of a call with groups."""
    problems = [
        wrong(name, f"{len(view.shape)} axes {view.shape}", f"axes ({', '.join(axes[name])})")
        for name, view in views.items()
        if len(view.shape) != len(axes[name])
    ]
    if problems:
        return problems
    groups = count_groups(plan, views, rows)
    extents = {"groups": groups, "n": views["b"].shape[-1]}
    extents |= dict(zip(axes["a"][-2:], views["a"].shape[-2:], strict=True))
    places, rows_of_a = atom_groups(plan, groups), extents[axes["a"][-2]]
    for scales in plan.scales:
        k = extents["k"] * plan.elements_per_byte
        extents |= scales.extents(rows_of_a, extents["n"], k, places)
    if plan.gathers_rows:
        extents["m"] = views["row_index"].shape[-1]
    if plan.output_scales is not None:
        columns = plan.output_columns(extents["n"])
        extents |= plan.output_scales.extents(extents["m"], columns, places)
    if plan.scatters_rows and "out" in views:
        extents["out_rows"] = views["out"].shape[0]
    problems += check_columns(plan, extents["n"])
    if plan.groups and groups > plan.most_groups:
        remedy = f"generate the kernel with most_groups: {groups} or more"
        problems.append(wrong("b", f"{groups} groups", f"at most {plan.most_groups}", remedy))
    divided = "k" if plan.sums_by_group else "m"
    if extents[divided] > END_ROW:
        named = "row_index" if plan.gathers_rows else "a"
        problems.append(wrong(named, f"{extents[divided]} rows", f"at most {END_ROW}"))
    for name, view in views.items():
        problems += wrong_shape(plan, name, view, axes[name], extents)
    for name, array in rows.items():
        count = groups + MORE[name]
        if array is not None and array.shape != (count,):
            problems.append(wrong(name, f"{array.shape}", f"one element a group: ({count},)"))
    return problems


def count_groups(
    plan: GemmPlan, views: Mapping[str, TensorView], rows: Mapping[str, TensorView | None]
) -> int:
    """Return the number of groups of a call: where they divide k, B is one matrix for all."""
    offsets = rows["row_offsets"]
    if plan.sums_by_group and offsets is not None:
        return max(0, offsets.shape[0] - 1)
    return views["b"].shape[0]


def with_groups(
    name: str, view: TensorView, axes: tuple[str, ...], full: tuple[str, ...], groups: int
) -> TensorView:
    """Return an argument with all axes of a batch: what all groups share has a stride of 0.

    The output, and a C of its shape, are one matrix, whose tensor maps end at a group's rows.
    """
    if len(axes) == len(full):
        return view
    count = (
        1 if name in ("out", "out_scales", *SCATTERED) or full == ("batch", "m", "n") else groups
    )
    return view._replace(shape=(count, *view.shape), strides=(0, *view.strides))


def wrong_clipped_strides(
    name: str, view: TensorView, axes: tuple[str, ...], remedy: str
) -> Iterator[Problem]:
    """Yield the error of rows that are too far apart for a map that ends at any row."""
    axis = "k" if "k" in axes else "m"
    stride = view.strides[axes.index(axis)]
    if view.shape[axes.index(axis)] > 1 and stride > CLIPPED_STRIDE:
        expected = f"a stride along {axis} of at most {CLIPPED_STRIDE}"
        yield wrong(name, f"{stride} bytes", expected, remedy)
