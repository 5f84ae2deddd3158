"""Tensor maps of a matrix product: a box is a swizzled panel of a number of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.tensor_maps import (
    CLIPPED_LINES,
    CLIPPED_MATRIX_DIMS,
    SWIZZLES,
    tensor_map,
)

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.model import TensorMapPlan


def gemm_tensor_maps(
    plan: GemmPlan,
    *,
    panel_bytes: tuple[int, int],
    a_lines: int | None = None,
    b_lines: int,
    out_rows: int,
    out_columns: int,
    last_columns: int | None = None,
    residual_rows: int = 0,
) -> tuple[TensorMapPlan, ...]:
    """Return the maps of A and the output, unless an index names their rows, B, and a C.

    ``panel_bytes``: of a line of a panel of A, and of B. ``a_lines`` that a CTA loads of A, all
    when not given, and ``b_lines`` of B;
    ``out_rows`` and ``out_columns``: of a box of the output and of C. ``last_columns``: of the last
    box of a tile, where they are fewer; a C with both axes and the output then have a second map,
    unless a tile has that box alone. ``residual_rows``: of a C with one axis, if not ``out_rows``.
    """
    config, size = plan.config, plan.element_bytes
    a_dims: tuple[str, ...] = ("k", "m", "batch") if config.a_major == "k" else ("m", "k", "batch")
    b_dims: tuple[str, ...] = ("k", "n", "batch") if config.b_major == "k" else ("n", "k", "batch")
    every = plan.BM if config.a_major == "k" else plan.BK
    b_box: tuple[int, ...] = (panel_bytes[1] // size, b_lines, 1)
    if plan.gated:
        b_dims, b_box = _gated(plan, b_dims, b_box)
    a_box: tuple[int, ...] = (panel_bytes[0] // size, a_lines or every, 1)
    if plan.sums_by_group:  # both have k as their second dimension
        a_dims, b_dims = ("m", *CLIPPED_LINES), ("n", *CLIPPED_LINES)
        a_box, b_box = (*a_box, 1, 1), (*b_box, 1, 1)
    maps = [tensor_map("b", b_dims, b_box, size)]
    if not plan.gathers_rows:
        maps.insert(0, tensor_map("a", a_dims, a_box, size))
    last = last_columns or out_columns
    several = out_columns < plan.out_columns
    outs = [("", out_columns if several else last)]
    outs += [("last", last)] if several and last < out_columns else []
    if plan.c.exists:
        for part, columns in outs if plan.c.is_matrix else [("", out_columns)]:
            rows = out_rows if plan.c.is_matrix else residual_rows or out_rows
            if plan.c.is_matrix:
                columns = min(columns, plan.c_panel_columns)
            elif plan.gated and plan.gate_layout == "interleaved":
                columns = plan.columns_of_b(columns)
            box = (*plan.c.extents(rows, columns)[::-1], 1)
            maps.append(_panel("c", plan, box, part, out_columns))
    for part, columns in [] if plan.scatters_rows else outs:
        maps.append(_panel("out", plan, (columns, out_rows, 1), part, out_columns))
    return tuple(maps)


def _gated(
    plan: GemmPlan, dims: tuple[str, ...], box: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return dimensions and box of a map of B with a dimension for gate and up.

    Lines that are columns of B come by half a tile at most: a box of all has both halves.
    """
    inner, lines, batch = box
    halves = 2 if plan.b_major == "k" and lines > plan.out_columns else 1
    return (*dims[:-1], "half", dims[-1]), (inner, lines // halves, halves, batch)


def _panel(
    tensor: Literal["c", "out"],
    plan: GemmPlan,
    box: tuple[int, ...],
    part: str,
    columns: int,
) -> TensorMapPlan:
    """Return a map of panels with lines for ``columns`` columns, of which a box may have fewer."""
    is_output = tensor == "out"
    swizzled = is_output or plan.c.is_matrix
    size = plan.out_element_bytes if is_output else plan.c_element_bytes
    columns = columns if is_output else min(columns, plan.c_panel_columns)
    if is_output and plan.out_elements_per_byte > 1:
        columns = plan.out_line_bytes(columns)
        box = (plan.out_line_bytes(box[0]), *box[1:])
    dims = ("n", "m", "batch") if is_output else plan.c.dims
    if plan.groups and len(dims) == len(CLIPPED_MATRIX_DIMS) - 2:
        dims, box = CLIPPED_MATRIX_DIMS, (*box, 1, 1)
    return tensor_map(
        tensor,
        dims,
        box,
        size,
        swizzled=swizzled,
        span=SWIZZLES[columns * size] if swizzled else None,
        part=part,
    )
