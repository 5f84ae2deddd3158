"""Roles, tensor maps and summary of the Blackwell matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.shared.model import Role, TensorMapPlan
from fa4gen.designs.shared.tensor_maps import SWIZZLES

if TYPE_CHECKING:
    from typing import Literal

    from fa4gen.designs.gemm_sm100.values import Values

EPILOGUE_WARPS = 4


def gemm_roles(values: Values) -> tuple[Role, ...]:
    """Return the epilogue, then a warp for each thing that is issued."""
    leader = " for both CTAs" if values.is_pair else ""
    rows = [
        ("epilogue", EPILOGUE_WARPS, "reads the sums, adds the residual, stores the output"
         if values.has_residual else "reads the sums, stores the output"),
    ]  # fmt: skip
    if values.scheduler == "dynamic":
        rows.append(("scheduler", 1, f"asks the hardware for the next tile{leader}"))
    rows += [
        ("load", 1, "issues the TMA loads of A and B"),
        ("mma", 1, f"issues the products{leader}; has the tensor memory"),
    ]
    if values.has_residual:
        rows.append(("residual", 1, "issues the TMA loads of C, ahead of the epilogue"))
    roles = []
    first = 0
    for name, warps, work in rows:
        roles.append(Role(name, first, warps, registers_per_thread(values), work))
        first += warps
    return tuple(roles)


def registers_per_thread(values: Values) -> int:
    """Return the registers that a thread may use: no role gives any to another."""
    threads = 32 * values.num_warps
    return min(values.arch.registers // threads // 8 * 8, values.arch.max_registers_per_thread)


def gemm_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of A, B, C and the output: a box is a swizzled panel.

    In a pair a CTA brings its rows of A, and the part of B for half of the tile's columns.
    """
    config, size = values.config, values.element_bytes
    a_dims = ("k", "m", "batch") if config.a_major == "k" else ("m", "k", "batch")
    b_dims = ("k", "n", "batch") if config.b_major == "k" else ("n", "k", "batch")
    a_lines = values.BM if config.a_major == "k" else values.BK
    b_lines = values.b_columns if config.b_major == "k" else values.BK
    maps = [
        _map("a", a_dims, values.a_panel_bytes, a_lines, size),
        _map("b", b_dims, values.b_panel_bytes, b_lines, size),
    ]
    out_size = values.out_element_bytes
    row_bytes = values.out_panel_columns * out_size
    if config.residual == "matrix":
        maps.append(_map("c", ("n", "m", "batch"), row_bytes, values.BM, out_size))
    elif config.residual == "row":
        maps.append(
            TensorMapPlan(
                name="c",
                parameter="c_map",
                tensor="c",
                dims=("n", "batch"),
                box=(values.out_panel_columns, 1),
                swizzle=0,
                box_bytes=row_bytes,
                direction="load",
            )
        )
    return (*maps, _map("out", ("n", "m", "batch"), row_bytes, values.BM, out_size))


def _map(
    tensor: Literal["a", "b", "c", "out"],
    dims: tuple[str, ...],
    row_bytes: int,
    lines: int,
    element_bytes: int,
) -> TensorMapPlan:
    return TensorMapPlan(
        name=tensor,
        parameter=f"{tensor}_map",
        tensor=tensor,
        dims=dims,
        box=(row_bytes // element_bytes, lines, 1),
        swizzle=SWIZZLES[row_bytes],
        box_bytes=row_bytes * lines,
        direction="store" if tensor == "out" else "load",
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    residual = {
        "none": "no residual",
        "matrix": f"a matrix as residual, {values.num_epi_stages} slots",
        "row": f"a row as residual, {values.num_epi_stages} slots",
    }[config.residual]
    rows = values.cta_group * values.BM
    lines = [
        f"{config.dtype}, A {config.a_major}-major, B {config.b_major}-major, sums in float32; "
        f"output {config.resolved_out_dtype}, {values.num_out_stages} slots",
        f"tiles of {rows} x {values.BN}, {values.BK} along k a stage, {values.num_stages} stages; "
        f"{values.num_accum_stages} accumulators",
        f"{residual}; {values.scheduler} scheduler",
    ]
    if config.activation is not None:
        lines.append(f"activation {config.activation}")
    if values.is_pair:
        lines.append("a pair of CTAs multiplies together, each with its rows of A and half of B")
    return tuple(lines)
