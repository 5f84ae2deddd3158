"""The shared-memory map of the Hopper matrix product. Sizes and offsets in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.shared_memory import barrier_region, lay_out, most_that_fit, slots_of
from fa4gen.designs.gemm_sm90.barriers import gemm_barriers, residual_bytes, residual_rows

if TYPE_CHECKING:
    from fa4gen.designs.common.model import SharedRegion
    from fa4gen.designs.gemm_sm90.values import Values

RESIDUAL_ALIGNMENT = 128
"""Bytes, as TMA requires."""
MAX_STAGES = 16
"""The schema's limit."""


def gemm_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    majors = {"k": "k", "m": "m", "n": "n"}
    out = config.resolved_out_dtype
    panels = values.num_consumer_warpgroups * values.num_epi_stages
    residual = "the residual, then " if values.c.is_matrix else ""
    ring = ", over the ring of A and B" if config.output_in_ring else ""
    regions = [
        slots_of(
            "a",
            values.num_stages,
            values.a_bytes,
            f"Ring of A: {values.BM} x {values.BK} {config.dtype}, {majors[config.a_major]}-major, "
            "128-byte swizzle",
        ),
        slots_of(
            "b",
            values.num_stages,
            values.b_bytes,
            f"Ring of B: {values.BK} x {values.BN} {config.dtype}, {majors[config.b_major]}-major, "
            "128-byte swizzle",
        ),
        slots_of(
            "epi",
            panels,
            values.epi_bytes,
            f"Panels of {residual}the output, {values.num_epi_stages} a consumer warpgroup{ring}: "
            f"{values.panel_rows} x {values.out_panel_columns} {out}, 128-byte swizzle",
        ),
    ]
    for scales in values.operand_scales:
        if scales.is_tensor_map:
            regions.append(
                slots_of(
                    scales.name,
                    values.num_stages,
                    values.scale_bytes(scales),
                    f"Ring of the scales of {scales.words}",
                    alignment=RESIDUAL_ALIGNMENT,
                )
            )
    if values.c.exists and not values.c.is_matrix:
        elements = values.c.elements(residual_rows(values), values.out_panel_columns)
        regions.append(
            slots_of(
                "residual",
                panels,
                residual_bytes(values),
                f"The residual's {values.c.name} beside each panel: {elements} {out}",
                alignment=RESIDUAL_ALIGNMENT,
            )
        )
    if values.is_split:
        regions.append(
            slots_of(
                "sums",
                values.num_consumer_warpgroups,
                values.sums_bytes,
                "The peer's sums over its part of k, in float32, thread by thread",
            )
        )
    regions.append(barrier_region(gemm_barriers(values)))
    if config.output_in_ring:
        return _over_the_ring(regions)
    return lay_out(tuple(regions))


def _over_the_ring(regions: list[SharedRegion]) -> tuple[SharedRegion, ...]:
    """Return the regions with that of the output where the ring of A and B begins."""
    placed = {row.name: row for row in lay_out([row for row in regions if row.name != "epi"])}
    return tuple(placed.get(row.name, row) for row in regions)


def most_stages(values: Values) -> int:
    """Return how many slots of A and B fit shared memory: 0 to 16."""
    return most_that_fit(values, gemm_regions, "num_stages", MAX_STAGES)
