from __future__ import annotations

import pytest

from fa4gen.designs.common.tensor_maps import Tensor, operand_maps


@pytest.mark.parametrize(
    ("tensor", "panel_columns", "swizzle", "direction"),
    [("query", 64, 128, "load"), ("value", 32, 64, "load"), ("out", 64, 128, "store")],
)
def test_operand_map(tensor: Tensor, panel_columns: int, swizzle: int, direction: str) -> None:
    (tensor_map,) = operand_maps({tensor: (80, 3)}, panel_columns, 2)
    assert tensor_map.parameter == f"{tensor}_map"
    assert tensor_map.dims == ("column", "row", "panel", "head", "batch")
    assert tensor_map.box == (panel_columns, 80, 3, 1, 1)
    assert tensor_map.box_bytes == panel_columns * 80 * 3 * 2
    assert (tensor_map.swizzle, tensor_map.direction) == (swizzle, direction)
