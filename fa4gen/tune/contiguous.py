"""Matrix products of contiguous matrices, as tuning measures them: whether a call takes them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments
from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.scale_arguments import SCALE_BYTES
from fa4gen.runtime.strides import ALIGNMENT
from fa4gen.runtime.tensor_view import TensorView

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

APART = 1 << 50
"""Bytes between the matrices."""


def refusals(plan: GemmPlan, problem: GemmWorkload) -> tuple[str, ...]:
    """Return the launcher's refusals of contiguous matrices; empty where it takes them.

    Scales of blocks are left out: they have an order of their own.
    """
    m, n, k = problem.m, problem.n, math.ceil(problem.k / plan.elements_per_byte)
    if problem.uneven is not None:  # masked groups have matrices of the most rows
        m = problem.uneven.most
    lead = (problem.batch,) if problem.batch > 1 or plan.groups else ()
    rows = (problem.rows,) if plan.groups == "offsets" else (*lead, m)
    columns = plan.output_columns(n)
    of_c = (*(lead if plan.c.is_matrix or plan.groups else ()), *plan.c_extents(m, columns))
    if plan.c.is_matrix:
        of_c = (*rows, columns)
    counts = {"offsets": "row_offsets", "masked": "row_counts"}.get(plan.groups or "")
    number, scales = problem.batch + (counts == "row_offsets"), plan.output_scales
    of_groups = {counts: _view(7, (number,), "int32", 4)} if counts else {}
    given = GemmArguments(
        a=_view(1, (*rows, k), plan.dtype, plan.element_bytes, swapped=plan.a_major != "k"),
        b=_view(2, (*lead, k, n), plan.dtype, plan.element_bytes, swapped=plan.b_major == "k"),
        c=_view(3, of_c, plan.c_dtype, plan.c_element_bytes) if plan.c.exists else None,
        out=_view(
            4,
            (*rows, columns // plan.out_elements_per_byte),
            plan.out_dtype,
            plan.out_element_bytes,
        ),
        alpha=1.0,
        beta=1.0,
        row_index=_view(5, (*lead, m), "int32", 4) if plan.gathers_rows else None,
        out_scales=_output_scales(plan, rows, columns),
        out_amax=_view(8, (problem.batch if plan.config.groups else 1,), "fp32", 4)
        if plan.finds_amax
        else None,
        out_tensor_scale=_view(9, (1,), "fp32", 4)
        if scales is not None and scales.has_tensor_scale
        else None,
        **of_groups,
    )
    try:
        check_gemm_arguments(replace(plan, scales=()), given)
    except ArgumentError as error:
        return tuple(problem.message for problem in error.problems)
    return ()


def padded_problem(plan: GemmPlan, problem: GemmWorkload) -> GemmWorkload:
    """Return the problem with its contiguous extents rounded up to valid rows."""
    bytes_of_c = plan.c_element_bytes if plan.c.exists else plan.out_element_bytes
    unit = ALIGNMENT // min(plan.element_bytes, plan.out_element_bytes, bytes_of_c)
    contiguous = {"k" if plan.a_major == "k" else "m", "k" if plan.b_major == "k" else "n", "n"}
    extents = {"m": problem.m, "n": problem.n, "k": problem.k}
    units = {
        "m": unit,
        "n": plan.columns_of_b(max(unit * plan.out_elements_per_byte, plan.column_unit)),
        "k": unit * plan.elements_per_byte,
    }
    rounded = {
        name: math.ceil(extent / units[name]) * units[name] if name in contiguous else extent
        for name, extent in extents.items()
    }
    if problem.uneven is not None:
        return GemmWorkload.of_counts(problem.uneven, rounded["n"], rounded["k"])
    return GemmWorkload(rounded["m"], rounded["n"], rounded["k"], problem.batch)


def _output_scales(plan: GemmPlan, rows: tuple[int, ...], n: int) -> TensorView | None:
    scales = plan.output_scales
    if scales is None:
        return None
    return _view(
        6,
        (*rows[:-1], *(scales.extents(rows[-1], n)[axis] for axis in scales.axes[1:])),
        scales.dtype,
        SCALE_BYTES[GEMM_DTYPES[scales.dtype]],
    )


def _view(
    place: int, shape: tuple[int, ...], dtype: str, element_bytes: int, *, swapped: bool = False
) -> TensorView:
    """Return a contiguous array, its last two axes exchanged if ``swapped``."""
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    axes = order if swapped else tuple(range(len(shape)))
    strides, step = [0] * len(shape), element_bytes
    for axis in reversed(axes):
        strides[axis] = step
        step *= shape[axis]
    return TensorView(place * APART, shape, tuple(strides), GEMM_DTYPES[dtype], 0)
