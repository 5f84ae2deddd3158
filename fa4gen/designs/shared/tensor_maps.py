"""Tensor maps of the attention operands: 5 dimensions, so that strides decide the layout."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.shared.model import Swizzle, TensorMapPlan

Tensor = Literal["query", "key", "value", "out"]
SWIZZLES: dict[int, Swizzle] = {128: 128, 64: 64, 32: 32}
"""By the bytes of a panel's row."""
DIMS = ("column", "row", "panel", "head", "batch")


def operand_map(
    tensor: Tensor,
    *,
    panel_columns: int,
    rows: int,
    panels: int,
    element_bytes: int,
) -> TensorMapPlan:
    """One box is ``panels`` panels of ``rows`` x ``panel_columns``, rows of a panel contiguous."""
    swizzle = SWIZZLES[panel_columns * element_bytes]
    return TensorMapPlan(
        name=tensor,
        parameter=f"{tensor}_map",
        tensor=tensor,
        dims=DIMS,
        box=(panel_columns, rows, panels, 1, 1),
        swizzle=swizzle,
        box_bytes=panel_columns * rows * panels * element_bytes,
        direction="store" if tensor == "out" else "load",
    )
