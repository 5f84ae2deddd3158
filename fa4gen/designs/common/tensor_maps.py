"""Tensor maps of the attention operands: 5 dimensions, so that strides decide the layout.

A clipped map ends at whatever row a copy asks for, so that TMA reads or writes nothing past the end
of a sequence among others. Its rows go on to END_ROW, and a copy counts them from the end: row r of
``count`` has coordinate END_ROW - count + r. To come to the sequence's memory, "place" moves on by
rows once more, to the sequence's end, and "wrap" takes END_ROW rows back: its only other coordinate
adds 2^64 bytes less those. Addresses are modulo 2^64 (seen on an H200, and relied on).

A box of several panels leaves no dimension for heads. "place" then moves on by the greatest common
divisor of the strides of rows and heads, and the kernel is given both in such steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.model import Swizzle, TensorMapPlan

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


Tensor = Literal["query", "key", "value", "out"]
SWIZZLES: dict[int, Swizzle] = {128: 128, 64: 64, 32: 32}
"""By the bytes of a panel's row."""
DIMS = ("column", "row", "panel", "head", "batch")
HEADS_FIRST_DIMS = ("column", "head", "row", "panel", "batch")
"""The dimensions of queries and output with tiles of several heads."""
KEYS_FIRST_DIMS = ("row", "column", "head", "batch")
"""The dimensions of values with contiguous keys."""
CLIPPED_DIMS = ("column", "row", "head", "place", "wrap")
CLIPPED_PANEL_DIMS = ("column", "row", "panel", "place", "wrap")
CLIPPED_MATRIX_DIMS = ("n", "m", "batch", "place", "wrap")
"""The dimensions of a matrix whose rows end with those of a group."""
CLIPPED_LINES: tuple[str, ...] = ("k", "batch", "place", "wrap")
"""The dimensions after m or n of an A or B with lines along k that end where a group ends."""
END_ROW_LOG2 = 30
END_ROW = 1 << END_ROW_LOG2
"""Rows that a clipped map has, of which a copy uses the last ones."""


def tensor_map(
    tensor: Tensor | Literal["a", "b", "c", "scale_a", "scale_b"],
    dims: tuple[str, ...],
    box: tuple[int, ...],
    element_bytes: int,
    *,
    swizzled: bool = True,
    span: Swizzle | None = None,
    part: str = "",
) -> TensorMapPlan:
    """Return a map whose box has rows of ``box[0]`` elements, as wide as their swizzle.

    ``span``: of the swizzle, where the rows are narrower: in shared memory they are as far apart.
    ``part``: the name of the map among several of the tensor.
    """
    name = f"{tensor}_{part}" if part else tensor
    return TensorMapPlan(
        name=name,
        parameter=f"{name}_map",
        tensor=tensor,
        dims=dims,
        box=box,
        swizzle=(span or SWIZZLES[box[0] * element_bytes]) if swizzled else 0,
        box_bytes=math.prod(box) * element_bytes,
        direction="store" if tensor == "out" else "load",
    )


def operand_maps(
    boxes: Mapping[Tensor, tuple[int, int]],
    panel_columns: int,
    element_bytes: int,
    clipped: Collection[Tensor] = (),
    tile_heads: int = 1,
    several: Collection[Tensor] = (),
) -> tuple[TensorMapPlan, ...]:
    """Return the maps of tensors with the same panels: rows and panels of a box by tensor.

    The rows of a panel are contiguous. Maps of ``clipped`` end where a sequence does, and have
    boxes of one panel, but those of ``several``; rows of queries and output are those of
    ``tile_heads`` heads in turn.
    """
    maps = []
    for tensor, (rows, panels) in boxes.items():
        if tensor in clipped and tensor in several:
            dims, extents = CLIPPED_PANEL_DIMS, (rows, panels, 1, 1)
        elif tensor in clipped:
            dims, extents = CLIPPED_DIMS, (rows, 1, 1, 1)
        elif tile_heads > 1 and tensor in ("query", "out"):
            dims, extents = HEADS_FIRST_DIMS, (tile_heads, rows // tile_heads, panels, 1)
        else:
            dims, extents = DIMS, (rows, panels, 1, 1)
        maps.append(tensor_map(tensor, dims, (panel_columns, *extents), element_bytes))
    return tuple(maps)
