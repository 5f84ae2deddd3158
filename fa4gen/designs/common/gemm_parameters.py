"""The parameters of a matrix product's kernel: the same on every architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.model import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_scales import OperandScales

MAP_TYPE = "const __grid_constant__ TensorMap"


def gemm_parameters(
    config: GemmKeys,
    *,
    last_maps: bool = False,
    columns: str = "kBN",
    of_blocks: tuple[OperandScales, ...] = (),
) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order; c_map and beta only where there is a residual.

    ``last_maps``: the last panel of a tile has maps of its own. ``columns``: the constant that has
    those of a tile, of all CTAs of a cluster. ``of_blocks``: scales of A and B.
    """
    rows = [
        Parameter("a_map", MAP_TYPE, f"A (batch, m, k), {config.a_major} contiguous"),
        Parameter("b_map", MAP_TYPE, f"B (batch, k, n), {config.b_major} contiguous"),
    ]
    if config.c.exists:
        rows.append(Parameter("c_map", MAP_TYPE, config.c.described))
    if last_maps and config.c.is_matrix:
        rows.append(Parameter("c_last_map", MAP_TYPE, "the same, for a tile's last panel"))
    rows.append(Parameter("out_map", MAP_TYPE, "output (batch, m, n), n contiguous"))
    if last_maps:
        rows.append(Parameter("out_last_map", MAP_TYPE, "the same, for a tile's last panel"))
    for scales in of_blocks:
        rows += _scale_parameters(scales)
    rows.append(Parameter("alpha", "float", "factor of A . B"))
    if config.c.exists:
        rows.append(Parameter("beta", "float", "factor of C, which is not looked at where it is 0"))
    return (
        *rows,
        Parameter("m", "int32", "rows of A and of the output"),
        Parameter("n", "int32", "columns of B and of the output"),
        Parameter("k", "int32", "columns of A, rows of B"),
        Parameter("row_tiles", "int32", "tiles of kTileRows rows that cover m"),
        Parameter("column_tiles", "int32", f"tiles of {columns} columns that cover n"),
        Parameter("num_tiles", "int32", "row_tiles * column_tiles * batch"),
        Parameter("group_rows", "int32", "row tiles worked on together; 1 is always right"),
    )


def _scale_parameters(scales: OperandScales) -> Iterator[Parameter]:
    """Yield the address of scales and their strides, or their tensor map."""
    name = scales.name
    axes = ", ".join(axis.replace("_", " ") for axis in scales.axes)
    meaning = f"scales {scales.form} of {scales.operand.upper()} ({axes})"
    if scales.in_atoms:
        yield Parameter(f"{name}_map", MAP_TYPE, f"{meaning}, arranged")
        return
    c_type = {"fp32": "const float*", "ue8m0": "const unsigned char*"}[scales.dtype]
    yield Parameter(name, c_type, meaning)
    for stride in scales.strides:
        yield Parameter(stride, "int64", "in elements")
