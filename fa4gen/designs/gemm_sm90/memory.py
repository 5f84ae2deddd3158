"""The shared-memory map of the Hopper matrix product. Sizes and offsets in bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm90.barriers import gemm_barriers, residual_bytes
from fa4gen.designs.gemm_sm90.values import WGMMA_ROWS
from fa4gen.designs.shared.model import SharedRegion
from fa4gen.designs.shared.shared_memory import align_up, lay_out_regions

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm90.values import Values

SWIZZLE_ALIGNMENT = 1024
ROW_ALIGNMENT = 128
BASE_ALIGNMENT = 16
"""What dynamic shared memory is aligned to without the kernel's doing."""
MAX_STAGES = 16
"""The schema's limit."""


def gemm_regions(values: Values) -> tuple[SharedRegion, ...]:
    """Return the regions at their offsets from a base aligned to the first one's alignment."""
    config = values.config
    majors = {"k": "k", "m": "m", "n": "n"}
    out = config.resolved_out_dtype
    panels = values.num_consumer_warpgroups * values.num_epi_stages
    residual = "the residual, then " if config.residual == "matrix" else ""
    regions = [
        _slots(
            "a",
            values.num_stages,
            values.a_bytes,
            SWIZZLE_ALIGNMENT,
            f"Ring of A: {values.BM} x {values.BK} {config.dtype}, {majors[config.a_major]}-major, "
            "128-byte swizzle",
        ),
        _slots(
            "b",
            values.num_stages,
            values.b_bytes,
            SWIZZLE_ALIGNMENT,
            f"Ring of B: {values.BK} x {values.BN} {config.dtype}, {majors[config.b_major]}-major, "
            "128-byte swizzle",
        ),
        _slots(
            "epi",
            panels,
            values.epi_bytes,
            SWIZZLE_ALIGNMENT,
            f"Panels of {residual}the output, {values.num_epi_stages} a consumer warpgroup: "
            f"{WGMMA_ROWS} x {values.out_panel_columns} {out}, 128-byte swizzle",
        ),
    ]
    if config.residual == "row":
        regions.append(
            _slots(
                "row",
                panels,
                residual_bytes(values),
                ROW_ALIGNMENT,
                f"The residual's row beside each panel: {values.out_panel_columns} {out}",
            )
        )
    regions.append(
        _slots(
            "barriers",
            sum(row.slots for row in gemm_barriers(values)),
            8,
            8,
            "mbarriers: see the barrier table",
        )
    )
    return lay_out_regions(tuple(regions))


def dynamic_shared_bytes(regions: tuple[SharedRegion, ...]) -> int:
    """Return what a launch asks for: the regions, and the room to align their base."""
    return align_up(regions[-1].end, BASE_ALIGNMENT) + SWIZZLE_ALIGNMENT


def most_stages(values: Values) -> int:
    """Return how many slots of A and B fit shared memory: 0 to 16."""

    def fits(stages: int) -> bool:
        regions = gemm_regions(replace(values, num_stages=stages))
        return dynamic_shared_bytes(regions) <= values.arch.shared_bytes

    return len(list(takewhile(fits, range(1, MAX_STAGES + 1))))


def _slots(name: str, slots: int, slot_bytes: int, alignment: int, holds: str) -> SharedRegion:
    return SharedRegion(name, 0, slots * slot_bytes, alignment, slots, holds)
