"""Roles, tensor maps and summary of the Blackwell matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_maps import gemm_tensor_maps as maps_of
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import tensor_map
from fa4gen.designs.gemm_sm100.scaling import ATOM_BYTES

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.gemm_sm100.values import Values

EPILOGUE_WARPS = 4
WORD_BYTES = 4


def gemm_roles(values: Values) -> tuple[Role, ...]:
    """Return the epilogue, then a warp for each thing that is issued."""
    leader = " for both CTAs" if values.is_pair else ""
    scaled = bool(values.scales.kind)
    rows = [
        ("epilogue", EPILOGUE_WARPS, "reads the sums, adds the residual, stores the output"
         if values.c.exists else "reads the sums, stores the output"),
    ]  # fmt: skip
    if values.scheduler == "dynamic":
        rows.append(("scheduler", 1, f"asks the hardware for the next tile{leader}"))
    rows += [
        ("load", 1, f"issues the TMA loads of A and B{' and their scales' * scaled}"),
        (
            "mma",
            1,
            f"{'copies scales to tensor memory, ' * scaled}issues the products{leader}; "
            "allocates tensor memory",
        ),
    ]
    if values.c.exists:
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
    return maps_of(
        values,
        panel_bytes=(values.a_panel_bytes, values.b_panel_bytes),
        b_lines=values.b_columns if values.config.b_major == "k" else values.BK,
        out_rows=values.BM,
        out_columns=values.out_panel_columns,
    ) + _scale_maps(values)


def _scale_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of the scales of A and B, by words of 4 bytes: a box has whole atoms."""
    scales = values.scales
    if not scales.kind:
        return ()
    box = (ATOM_BYTES // WORD_BYTES, scales.k_atoms)
    # Each CTA of a pair brings one of two atoms into both.
    b_atoms = 1 if values.is_pair else scales.b_atoms
    return (
        tensor_map(
            "scale_a", ("word", "k_atoms", "m_atoms", "batch"), (*box, 1, 1), WORD_BYTES,
            swizzled=False,
        ),
        tensor_map(
            "scale_b", ("word", "k_atoms", "n_atoms", "batch"), (*box, b_atoms, 1), WORD_BYTES,
            swizzled=False,
        ),
    )  # fmt: skip


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    slots = f", {values.num_epi_stages} slots" if values.c.exists else ""
    rows = values.cta_group * values.BM
    lines = [
        f"{config.dtype}, A {config.a_major}-major, B {config.b_major}-major, sums in float32; "
        f"output {config.resolved_out_dtype}, {values.num_out_stages} slots",
        f"tiles of {rows} x {values.BN}, {values.BK} along k a stage, {values.num_stages} stages; "
        f"{values.num_accum_stages} accumulators",
        f"{values.c.words}{slots}; {values.scheduler} scheduler",
    ]
    if config.activation is not None:
        lines.append(f"activation {config.activation}")
    if config.scales is not None:
        kind = "powers of two" if values.scales.powers_of_two else "in e4m3"
        lines.append(
            f"{config.scales}: a scale for {values.scales.columns} elements along k of each row of "
            f"A and column of B, {kind}; {values.num_scale_stages} slots in tensor memory"
        )
    if values.is_pair:
        lines.append("a pair of CTAs multiplies together, each with its rows of A and half of B")
    return tuple(lines)
