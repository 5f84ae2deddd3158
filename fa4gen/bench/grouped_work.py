"""Groups of rows in bench: equal ones are the matrices of a batch, laid out for such a kernel."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem
from fa4gen.runtime.device import load_cupy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.designs.common.gemm_model import GemmPlan

FEW_ROWS = 128
"""Rows of a group on average, of those with rows, up to which memory sets the speed: an H200 does
some 200 multiplications for each element of 2 bytes that it reads."""


def refuse_groups(plan: GemmPlan) -> None:
    """Raise ConfigError unless the groups of a kernel are like the matrices of a batch."""
    key = ""
    if plan.sums_by_group:
        key, what = "groups", "sums over the rows of groups"
    elif plan.groups and plan.gathers_rows:
        key, what = "rows", "gathered rows of groups"
    elif plan.scatters_rows:
        key, what = "out_rows", "places of scattered rows"
    elif plan.places_atoms:
        key, what = "scale_order", "scales in atoms of groups with offsets"
    if key:
        remedy = "`fa4gen verify` checks it, and a call by `fa4gen.load` can be timed."
        raise ConfigError(Problem(f"{plan.name}: bench passes no {what} yet", remedy, key=key))


def refuse_uneven(plan: GemmPlan, workload: GemmWorkload) -> None:
    """Raise ConfigError for uneven groups of a kernel without groups."""
    if workload.uneven is not None and not plan.groups:
        raise ConfigError(
            Problem(
                f"{workload.at}: {plan.name} multiplies matrices of equal rows, not uneven groups",
                "Give the size to a kernel with groups: offsets or masked.",
            )
        )


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
    if plan.groups == "masked":
        return {"row_counts": load_cupy().asarray(workload.group_rows, "int32")}
    return {"row_offsets": load_cupy().asarray(offsets_of(workload), "int32")}


def offsets_of(workload: GemmWorkload) -> list[int]:
    """Return the first row of each group, and the end of the last."""
    return [0, *accumulate(workload.group_rows)]


def bytes_to_read(plan: GemmPlan, workload: GemmWorkload) -> int:
    """Return the bytes that groups of few rows have to read; 0 where products set the speed.

    Weights of groups without rows are not read.
    """
    filled = sum(number for rows, number in workload.heights.items() if rows)
    few = bool(plan.groups) and workload.rows <= FEW_ROWS * filled
    return workload.bytes_read(plan) if few else 0


def joined(arrays: Sequence[Any]) -> Any:
    """Return the bytes of arrays, one after the other."""
    cupy = load_cupy()
    return cupy.concatenate([one.ravel().view(cupy.uint8) for one in arrays])
