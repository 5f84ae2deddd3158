"""The parameters of a matrix product's kernel: the same on every architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.model import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.gemm_config import GemmKeys
    from fa4gen.designs.common.gemm_scales import OperandScales, OutputScales

MAP_TYPE = "const __grid_constant__ TensorMap"
GROUP_ROWS = {
    "offsets": (
        Parameter("row_offsets", "const int32*", "first row of each group, then the last's end"),
    ),
    "masked": (Parameter("row_counts", "const int32*", "rows of each group, the first of its m"),),
    "k_offsets": (
        Parameter(
            "row_offsets", "const int32*", "where each group's k begins, then the last's end"
        ),
    ),
}
"""The rows of groups, which the kernel reads on the device."""
GATHERED_ROWS = (
    Parameter("a", "const unsigned char*", "A, with any number of rows, k contiguous"),
    Parameter("a_row_chunks", "int32", "from a row of A to the next, of 16 bytes"),
    Parameter("a_batch_bytes", "int64", "from a matrix of A to the next"),
    Parameter("a_rows", "int32", "rows of A"),
    Parameter("row_index", "const int32*", "a row of A for each row of the output"),
    Parameter("row_index_batch_stride", "int64", "in elements"),
)
"""Parameters in place of A's tensor map."""
SCATTERED_ROWS = (
    Parameter("out", "unsigned char*", "output, with any number of rows, n contiguous"),
    Parameter("out_row_chunks", "int32", "from a row of the output to the next, of 16 bytes"),
    Parameter("out_rows", "int32", "rows of the output"),
    Parameter("out_index", "const int32*", "a row of the output for each row of the product"),
    Parameter("row_weights", "const float*", "the factor of each row of the product"),
)
"""Parameters in place of the output's tensor map."""
TENSOR_SCALE = "out_tensor_scale"
"""The parameter with the scale of a quantised output's tensor, and the argument of a call."""
_C_TYPES = {"fp32": "float", "ue8m0": "unsigned char", "ue4m3": "unsigned char"}


def gemm_parameters(
    config: GemmKeys,
    *,
    last_maps: bool = False,
    columns: str = "kBN",
    of_blocks: tuple[OperandScales, ...] = (),
    gathers_rows: bool = False,
    scatters_rows: bool = False,
    of_output: OutputScales | None = None,
    finds_amax: bool = False,
) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order; c_map and beta only where there is a residual.

    ``last_maps``: the last panel of a tile has maps of its own. ``columns``: the constant that has
    those of a tile, of all CTAs of a cluster. ``of_blocks``: scales of A and B, ``of_output``: of a
    quantised output. ``gathers_rows``: A is read by the addresses of its rows, ``scatters_rows``:
    the output is written so.
    """
    each = "batch" if config.groups is None else "groups"
    of_rows = "" if config.groups == "offsets" else f"{each}, "
    of_a, of_b = of_rows, f"{each}, "
    if config.groups == "k_offsets":
        of_a = of_b = ""
    columns_of_b = "2, n" if config.is_gated else "n"
    rows = [
        *(GATHERED_ROWS if gathers_rows else (_a_map(config, of_a),)),
        Parameter("b_map", MAP_TYPE, f"B ({of_b}k, {columns_of_b}), {config.b_major} contiguous"),
    ]
    if config.c.exists:
        rows.append(Parameter("c_map", MAP_TYPE, config.c.described))
    if last_maps and config.c.is_matrix:
        rows.append(Parameter("c_last_map", MAP_TYPE, "the same, for a tile's last panel"))
    of_out = Parameter("out_map", MAP_TYPE, f"output ({of_rows}m, n), n contiguous")
    rows += SCATTERED_ROWS if scatters_rows else (of_out,)
    if last_maps:
        rows.append(Parameter("out_last_map", MAP_TYPE, "the same, for a tile's last panel"))
    for scales in of_blocks:
        rows += _scale_parameters(scales)
    if of_output is not None:
        rows += _output_scale_parameters(of_output)
    if finds_amax:
        of_each = "of each group's output" if config.groups else "of the output"
        rows.append(Parameter("out_amax", "float*", f"raised to the largest magnitude {of_each}"))
    rows += GROUP_ROWS.get(config.groups or "", ())
    rows.append(Parameter("alpha", "float", "factor of A . B"))
    if config.c.exists:
        rows.append(Parameter("beta", "float", "factor of C, which is not looked at where it is 0"))
    of_m = "rows of the output" if gathers_rows else "rows of A and of the output"
    return (
        *rows,
        Parameter("m", "int32", of_m),
        Parameter("n", "int32", _columns_of(config)),
        Parameter("k", "int32", "columns of A, rows of B"),
        *_tile_parameters(config, columns, each),
        Parameter("group_rows", "int32", "row tiles worked on together; 1 is always right"),
    )


def _a_map(config: GemmKeys, of_rows: str) -> Parameter:
    return Parameter("a_map", MAP_TYPE, f"A ({of_rows}m, k), {config.a_major} contiguous")


def _tile_parameters(config: GemmKeys, columns: str, each: str) -> Iterator[Parameter]:
    """Yield the counts of tiles, as far as the launcher knows them."""
    of_columns = Parameter("column_tiles", "int32", f"tiles of {columns} columns that cover n")
    if config.groups in (None, "k_offsets"):
        yield Parameter("row_tiles", "int32", "tiles of kTileRows rows that cover m")
        yield of_columns
        yield Parameter("num_tiles", "int32", f"row_tiles * column_tiles * {each}")
    else:
        yield Parameter("groups", "int32", "groups of rows, at most kMostGroups")
        yield of_columns


def _columns_of(config: GemmKeys) -> str:
    of_both = "columns of B and of the output"
    return "columns of the output, half of B's" if config.is_gated else of_both


def _scale_parameters(scales: OperandScales) -> Iterator[Parameter]:
    """Yield the address of scales and their strides, or their tensor map."""
    name = scales.name
    axes = ", ".join(axis.replace("_", " ") for axis in scales.axes)
    meaning = f"scales {scales.form} of {scales.operand.upper()} ({axes})"
    if scales.in_atoms:
        yield Parameter(f"{name}_map", MAP_TYPE, f"{meaning}, arranged")
        return
    yield Parameter(name, f"const {_C_TYPES[scales.dtype]}*", meaning)
    for stride in scales.strides:
        yield Parameter(stride, "int64", "in elements")


def _output_scale_parameters(scales: OutputScales) -> Iterator[Parameter]:
    """Yield the address of a quantised output's scales, their strides, and its tensor's scale."""
    axes = ", ".join(axis.replace("_", " ") for axis in scales.axes)
    meaning = f"scales {scales.form} of the output ({axes})"
    yield Parameter(scales.name, f"{_C_TYPES[scales.dtype]}*", meaning)
    for stride in scales.strides:
        yield Parameter(stride, "int64", "in elements")
    if scales.has_tensor_scale:
        meaning = "scale of the output's tensor, one number above zero"
        yield Parameter(TENSOR_SCALE, "const float*", meaning)
