"""Equal groups of rows in bench: the matrices of a batch as a kernel with groups takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem
from fa4gen.runtime.device import load_cupy

if TYPE_CHECKING:
    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.designs.common.gemm_model import GemmPlan


def refuse_groups(plan: GemmPlan) -> None:
    """Raise ConfigError unless the groups of a kernel are like the matrices of a batch."""
    key = ""
    if plan.sums_by_group:
        key, what = "groups", "sums over the rows of groups"
    elif plan.groups and plan.gathers_rows:
        key, what = "rows", "gathered rows of groups"
    elif plan.places_atoms:
        key, what = "scale_order", "scales in atoms of groups with offsets"
    if key:
        remedy = "`fa4gen verify` checks it, and a call by `fa4gen.load` can be timed."
        raise ConfigError(Problem(f"{plan.name}: bench passes no {what} yet", remedy, key=key))


def as_groups(plan: GemmPlan, array: Any, *, of_rows: bool) -> Any:
    """Return a matrix, or matrices of a batch, as the argument of a kernel with groups.

    ``of_rows``: whether it has rows of the groups, which with offsets lie one after the other.
    """
    matrices = array if array.ndim == 3 else array[None]
    if plan.groups == "offsets" and of_rows:
        return matrices.reshape(-1, matrices.shape[-1])
    return matrices


def for_each_group(workload: GemmWorkload, c: Any) -> Any:
    """Return a C of one axis for each group: the same for all."""
    return load_cupy().repeat(c[None], workload.batch, axis=0)


def row_arrays(plan: GemmPlan, workload: GemmWorkload) -> dict[str, Any]:
    """Return the rows of the groups, by the name of the argument."""
    cupy, groups = load_cupy(), workload.batch
    if plan.groups == "masked":
        return {"row_counts": cupy.full(groups, workload.m, "int32")}
    return {"row_offsets": workload.m * cupy.arange(groups + 1, dtype="int32")}
