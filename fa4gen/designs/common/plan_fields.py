"""Fields that plans of matrix products have alike, by their names: a plan is made of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.gemm_values import GemmValues
    from fa4gen.designs.common.model import (
        Barrier,
        Choice,
        Fields,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
        TensorMemoryRegion,
    )
    from fa4gen.designs.common.values import DesignValues


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables that a design derives from its values."""

    summary: tuple[str, ...]
    roles: tuple[Role, ...]
    regions: tuple[SharedRegion, ...]
    barriers: Sequence[Barrier]
    """Not yet placed: they go into the region of that name."""
    tensor_maps: tuple[TensorMapPlan, ...]
    parameters: tuple[Parameter, ...]
    threads: int
    grid: str
    """The rule for the grid, in words."""
    cluster: int | None = None
    """CTAs of a cluster, where they are not ``cta_group``."""
    named_barriers: tuple[tuple[str, int], ...] = ()
    tensor_memory: tuple[TensorMemoryRegion, ...] = ()


def kernel_fields(
    values: DesignValues[Any], choices: tuple[Choice, ...], tables: Tables, *, cta_group: int
) -> Fields:
    """Return the fields of any plan: config, tables, and the origin of each value."""
    return {"config": values.config, "choices": choices, "tables": tables, "cta_group": cta_group}


def gemm_fields(values: GemmValues[Any]) -> Fields:
    """Return the fields of a product's plan from its config and tile, whatever its design."""
    return {
        "BM": values.BM,
        "BN": values.BN,
        "BK": values.BK,
        "num_stages": values.num_stages,
        "num_epi_stages": values.num_epi_stages,
        "scales": values.operand_scales,
    }
