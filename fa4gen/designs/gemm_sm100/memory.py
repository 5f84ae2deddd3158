"""The shared-memory map of the Blackwell matrix product. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.model import SharedRegion
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, most_that_fit, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm100.barriers import TILE_SLOTS, gemm_barriers

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm100.values import Values

MAX_STAGES = 16
"""The schema's limit."""


def gemm_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    share = " (this CTA's half of the columns)" if values.is_pair else ""
    a = f"{values.BM} x {values.BK} {config.dtype}, {config.a_major}-major"
    b = f"{values.b_columns} x {values.BK} {config.dtype}{share}, {config.b_major}-major"
    swizzles = f"{values.a_panel_bytes}-byte swizzle", f"{values.b_panel_bytes}-byte swizzle"
    regions = [
        slots_of("a", values.num_stages, values.a_bytes, f"Ring of A: {a}, {swizzles[0]}"),
        slots_of("b", values.num_stages, values.b_bytes, f"Ring of B: {b}, {swizzles[1]}"),
        slots_of(
            "output", values.num_out_stages, values.out_bytes,
            f"Output on its way out: {_panels(values)}",
        ),
    ]  # fmt: skip
    small = [*_scale_regions(values), *_small_regions(values)]
    if values.c.is_matrix:
        holds = f"Ring of C: {_panels(values)}"
        regions.append(slots_of("residual", values.num_epi_stages, values.residual_bytes, holds))
    elif values.c.exists:
        elements = values.c.elements(values.BM, values.out_panel_columns)
        holds = f"Ring of C: {values.residual_copies} x {elements} of one {values.c.name}"
        size = values.num_epi_stages * values.residual_bytes
        # After everything that is swizzled: TMA writes to multiples of 128 bytes.
        small.insert(0, SharedRegion("residual", 0, size, 128, values.num_epi_stages, holds))
    return lay_out((*regions, *small))


def _panels(values: Values) -> str:
    columns, size = values.out_panel_columns, values.out_element_bytes
    several = f"{values.slot_panels} panels of " if values.slot_panels > 1 else ""
    return (
        f"{several}{values.BM} x {columns} {values.config.resolved_out_dtype}, "
        f"{columns * size}-byte swizzle"
    )


def _scale_regions(values: Values) -> list[SharedRegion]:
    scales, stages = values.scales, values.num_stages
    if not scales.kind:
        return []
    atoms = "atoms of 128 rows by 4 scales"
    a = f"Ring of A's scales: {scales.k_atoms} {atoms}, along k"
    b = f"Ring of B's scales, for all columns: {scales.b_atoms} x {scales.k_atoms} {atoms}"
    return [
        slots_of("scale_a", stages, scales.a_bytes, a, alignment=PANEL_BYTES),
        slots_of("scale_b", stages, scales.b_bytes, b, alignment=PANEL_BYTES),
    ]


def _small_regions(values: Values) -> list[SharedRegion]:
    small = [barrier_region(gemm_barriers(values))]
    if values.scheduler == "dynamic":
        holds = "Answers of the hardware: the CTA whose tile is ours now, or that there is none"
        small.append(SharedRegion("tile", 0, 16 * TILE_SLOTS, 16, TILE_SLOTS, holds))
    address = "Address of the allocated tensor memory"
    small.append(SharedRegion("tensor_memory", 0, 4, 4, 1, address))
    return small


def most_stages(values: Values) -> int:
    """Return the number of slots of A and B that fit shared memory with the rest: 0 to 16."""
    return most_that_fit(values, gemm_regions, "num_stages", MAX_STAGES)
