"""Tensor maps of the attention operands: 5 dimensions, so that strides decide the layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.shared.model import Swizzle, TensorMapPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return tensor_map(tensor, DIMS, (panel_columns, rows, panels, 1, 1), element_bytes)


def tensor_map(
    tensor: Tensor | Literal["a", "b", "c"],
    dims: tuple[str, ...],
    box: tuple[int, ...],
    element_bytes: int,
    *,
    swizzled: bool = True,
) -> TensorMapPlan:
    """Return a map whose box has rows of ``box[0]`` elements, as wide as their swizzle."""
    return TensorMapPlan(
        name=tensor,
        parameter=f"{tensor}_map",
        tensor=tensor,
        dims=dims,
        box=box,
        swizzle=SWIZZLES[box[0] * element_bytes] if swizzled else 0,
        box_bytes=math.prod(box) * element_bytes,
        direction="store" if tensor == "out" else "load",
    )


def operand_maps(
    boxes: Mapping[Tensor, tuple[int, int]], panel_columns: int, element_bytes: int
) -> tuple[TensorMapPlan, ...]:
    """Return the maps of tensors with the same panels: rows and panels of a box by tensor."""
    return tuple(
        operand_map(
            tensor,
            panel_columns=panel_columns,
            rows=rows,
            panels=panels,
            element_bytes=element_bytes,
        )
        for tensor, (rows, panels) in boxes.items()
    )
