"""The arguments of a call as the C launcher takes them: extents, and strides in elements.

Shapes that the C structs cannot say, such as a value of other rows than the key's, are the caller's
mistake here: nothing is checked but what has no place in a struct.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.designs.common.score_text import GIVEN
from fa4gen.runtime.axes import is_packed, swap_rows_and_heads, with_batch
from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.group_arguments import ROW_ARGUMENTS
from fa4gen.runtime.merge_arguments import FLOAT32_BYTES
from fa4gen.runtime.scale_arguments import AMAX, SCALE_BYTES
from fa4gen.runtime.scattered_rows import SCATTERED
from fa4gen.runtime.table_arguments import INT32_BYTES
from fa4gen.vendoring.binding import (
    AttentionArgs,
    GemmArgs,
    Matrix,
    MergeArgs,
    RowNumbers,
    Scales,
    Tensor,
)

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.runtime.arguments import Arguments
    from fa4gen.runtime.gemm_arguments import GemmArguments
    from fa4gen.runtime.merge_arguments import MergeArguments
    from fa4gen.runtime.tensor_view import TensorView


def attention_args(plan: AttentionPlan, arguments: Arguments) -> AttentionArgs:
    """Return the struct of a call; ``workspace`` is left empty. ValueError without an output.

    A softmax scale of 0, which stands for the default in C, is not one that Python takes.
    """
    if arguments.out is None:
        raise ValueError("no output")

    def in_order(name: str, view: TensorView) -> TensorView:
        """Return the view as (batch, rows, heads, depth)."""
        view = with_batch(view) if is_packed(plan, name) else view
        return view if arguments.layout == "bshd" else swap_rows_and_heads(view)

    def tensor(view: TensorView, element_bytes: int) -> Tensor:
        strides = (_elements(stride, element_bytes) for stride in view.strides[:3])
        return Tensor(view.pointer, *strides)

    query, key = in_order("query", arguments.query), in_order("key", arguments.key)
    value, out = in_order("value", arguments.value), in_order("out", arguments.out)
    offsets, table = arguments.query_offsets, arguments.page_table
    args = AttentionArgs(
        struct_size=ctypes.sizeof(AttentionArgs),
        batch=query.shape[0] if offsets is None else offsets.shape[0] - 1,
        query_rows=query.shape[1],
        key_rows=key.shape[1],
        query_heads=query.shape[2],
        key_heads=key.shape[2],
        query=tensor(query, plan.element_bytes),
        key=tensor(key, plan.kv_element_bytes),
        value=tensor(value, plan.kv_element_bytes),
        out=tensor(out, plan.out_element_bytes),
        softmax_scale=arguments.softmax_scale,
    )
    if table is not None:
        args.page_table_stride = _elements(table.strides[0], INT32_BYTES)
        args.most_pages = table.shape[1]
        args.pages = key.shape[0]
    given = dict(arguments.tensors)
    for number, name in enumerate(plan.given_names):
        view = given.get(name.removeprefix(GIVEN))
        args.tensors[number] = None if view is None else view.pointer
    small = {"lse": arguments.lse, **arguments.float32_inputs, **arguments.tables}
    for name, view in small.items():
        if name in given:
            continue
        setattr(args, name, None if view is None else view.pointer)
    return args


def gemm_args(plan: GemmPlan, arguments: GemmArguments) -> GemmArgs:
    """Return the struct of a call; ``workspace`` is left empty. ValueError without an output."""
    a, b, c, out = arguments.a, arguments.b, arguments.c, arguments.out
    if out is None:
        raise ValueError("no output")

    def matrix(view: TensorView, axes: int, element_bytes: int, contiguous: int) -> Matrix:
        """``axes`` without the batch; ``contiguous`` is 0 or 1 of them."""
        strides = [_elements(stride, element_bytes) for stride in view.strides]
        batch = strides[0] if len(strides) > axes else 0
        return Matrix(view.pointer, batch, strides[-2:][1 - contiguous] if axes == 2 else 0)

    index = arguments.row_index
    args = GemmArgs(
        struct_size=ctypes.sizeof(GemmArgs),
        batch=_count_matrices(plan, arguments),
        m=a.shape[-2] if index is None else index.shape[-1],
        n=b.shape[-1],
        k=a.shape[-1] * plan.elements_per_byte,
        a=matrix(a, 2, plan.element_bytes, 1 if plan.a_major == "k" else 0),
        b=matrix(b, 2, plan.element_bytes, 1 if plan.b_major == "n" else 0),
        out=matrix(out, 2, plan.out_element_bytes, 1),
        alpha=arguments.alpha,
        beta=arguments.beta,
    )
    if c is not None:
        args.c = matrix(c, len(plan.c.axes), plan.c_element_bytes, 1)
    given = {"scale_a": arguments.scale_a, "scale_b": arguments.scale_b}
    for row in plan.scales:
        view = given[row.name]
        if view is not None:
            setattr(args, row.name, _scales(view, row))
    for name in (*ROW_ARGUMENTS, *SCATTERED, AMAX, TENSOR_SCALE):
        view = getattr(arguments, name)
        setattr(args, name, None if view is None else view.pointer)
    if plan.scatters_rows:
        args.out_rows = out.shape[0]
    if plan.output_scales is not None and arguments.out_scales is not None:
        size = SCALE_BYTES[GEMM_DTYPES[plan.output_scales.dtype]]
        in_order = _of_atoms if plan.output_scales.in_atoms else partial(_in_elements, size=size)
        args.out_scales = in_order(arguments.out_scales)
    if index is not None:
        args.row_index, args.a_rows = index.pointer, a.shape[-2]
        args.row_index_stride = (0, *(_elements(one, INT32_BYTES) for one in index.strides))[-2]
    return args


def merge_args(plan: MergePlan, arguments: MergeArguments) -> MergeArgs:
    """Return the struct of a call; without batches it has one. ValueError without an output."""
    parts, part_lse, out, lse = arguments
    if out is None:
        raise ValueError("no output")
    count, *lead, rows, heads, _ = parts.shape

    def steps(view: TensorView, axes: int, element_bytes: int) -> list[int]:
        """Return the strides of ``axes``: the last three are of batch and two others."""
        strides = [_elements(stride, element_bytes) for stride in view.strides[:axes]]
        return strides if lead else [*strides[:-2], 0, *strides[-2:]]

    axes = 3 if lead else 2
    part_stride, *of_parts = steps(parts, axes + 1, plan.element_bytes)
    part_lse_stride, *of_part_lse = steps(part_lse, axes + 1, FLOAT32_BYTES)
    args = MergeArgs(
        struct_size=ctypes.sizeof(MergeArgs),
        num_parts=count,
        batch=lead[0] if lead else 1,
        rows=rows,
        heads=heads,
        parts=Tensor(parts.pointer, *of_parts),
        part_stride=part_stride,
        part_lse=RowNumbers(part_lse.pointer, *of_part_lse),
        part_lse_stride=part_lse_stride,
        out=Tensor(out.pointer, *steps(out, axes, plan.out_element_bytes)),
    )
    if lse is not None:
        args.lse = RowNumbers(lse.pointer, *steps(lse, axes, FLOAT32_BYTES))
    return args


def _scales(view: TensorView, row: OperandScales) -> Scales:
    """Return scales whose last two axes are in the operand's order, or arranged ones."""
    if row.in_atoms:
        return _of_atoms(view)
    found = _in_elements(view, SCALE_BYTES[GEMM_DTYPES[row.dtype]])
    if row.operand == "b":
        found.stride, found.k_stride = found.k_stride, found.stride
    return found


def _of_atoms(view: TensorView) -> Scales:
    """Return arranged scales; strides are bytes from atom to atom."""
    return Scales(view.pointer, *(0, *view.strides)[-6:-3])


def _in_elements(view: TensorView, size: int) -> Scales:
    """Return scales with the axes (batch, across, along), or without a batch."""
    return Scales(view.pointer, *(0, *(_elements(one, size) for one in view.strides))[-3:])


def _count_matrices(plan: GemmPlan, arguments: GemmArguments) -> int:
    """Return the batch of a call: groups are counted by B, or where they divide k by offsets."""
    if plan.sums_by_group:
        offsets = arguments.row_offsets
        return 0 if offsets is None else max(0, offsets.shape[0] - 1)
    lead = (arguments.b if plan.config.groups else arguments.a).shape[:-2]
    return lead[0] if lead else 1


def _elements(stride: int, element_bytes: int) -> int:
    if stride % element_bytes:
        raise ValueError(
            f"a stride of {stride} bytes is not a multiple of {element_bytes}-byte elements"
        )
    return stride // element_bytes
