"""Tensor maps of a matrix product: a box is a swizzled panel of so many lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.designs.shared.tensor_maps import tensor_map

if TYPE_CHECKING:
    from fa4gen.designs.shared.model import TensorMapPlan
    from fa4gen.designs.shared.values import GemmValues


def gemm_tensor_maps(
    values: GemmValues[Any],
    *,
    panel_bytes: tuple[int, int],
    b_lines: int,
    out_rows: int,
    out_columns: int,
) -> tuple[TensorMapPlan, ...]:
    """Return the maps of A, B, C where there is one, and the output.

    ``panel_bytes``: of a line of a panel of A, and of B. ``b_lines`` that a CTA loads of B;
    ``out_rows`` and ``out_columns``: of a box of the output and of C.
    """
    config, size, out_size = values.config, values.element_bytes, values.out_element_bytes
    a_dims = ("k", "m", "batch") if config.a_major == "k" else ("m", "k", "batch")
    b_dims = ("k", "n", "batch") if config.b_major == "k" else ("n", "k", "batch")
    a_lines = values.BM if config.a_major == "k" else values.BK
    out_dims = ("n", "m", "batch")
    maps = [
        tensor_map("a", a_dims, (panel_bytes[0] // size, a_lines, 1), size),
        tensor_map("b", b_dims, (panel_bytes[1] // size, b_lines, 1), size),
    ]
    out = tensor_map("out", out_dims, (out_columns, out_rows, 1), out_size)
    if values.c.exists:
        box = (*values.c.extents(out_rows, out_columns)[::-1], 1)
        matrix = values.c.is_matrix
        maps.append(tensor_map("c", values.c.dims, box, out_size, swizzled=matrix))
    return (*maps, out)
