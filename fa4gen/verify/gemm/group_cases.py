"""The cases of products with groups of rows: plain ones in groups, and those for groups alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fa4gen.designs.common.gemm_model import GemmPlan

ROWS_OF_NONE: Final = (3, 5)
"""Rows before the first group and after the last one, or after those of each."""
MANY: Final = 70
"""Groups, more than twice as many as a warp has lanes."""


def groups_of(plan: GemmPlan, case: GemmCase) -> Groups | None:
    """Return the groups of a case; None for a kernel without."""
    groups = plan.config.groups
    return None if groups is None else Groups(groups, case.counts, case.apart)


def operand_shapes(case: GemmCase, plan: GemmPlan) -> dict[str, tuple[int, ...]]:
    """Return the shapes of A, B and C, each with a batch in front."""
    batch = matrices = 1 if case.batch is None else case.batch
    groups, rows, k = groups_of(plan, case), case.m, case.k
    of_a, of_b = matrices, batch
    if groups is not None and plan.sums_by_group:
        of_a = of_b = 1
        k = groups.rows
    elif groups is not None:
        of_a = matrices = groups.matrices
        rows = groups.rows
    of_c = matrices if "m" in plan.c.axes else batch
    shapes = {
        "a": (of_a, rows, k),
        "b": (of_b, k, plan.columns_of_b(case.n)),
        "c": (of_c, *plan.c_extents(rows, case.n)),
    }
    return {name: (1, *of[1:]) if name in case.shared else of for name, of in shapes.items()}


def in_groups(plan: GemmPlan, cases: Iterable[GemmCase]) -> tuple[GemmCase, ...]:
    """Return the cases for a kernel with groups: a matrix of the batch is a group of rows.

    Every other group has fewer rows. Groups share nothing, and are as many as a call may have.
    """
    if plan.sums_by_group:
        return tuple(_along_k(case) for case in cases)
    if plan.groups is None:
        return tuple(cases)
    return tuple(_in_groups(case, plan.most_groups) for case in cases)


def _along_k(case: GemmCase) -> GemmCase:
    """Return the case with a group along k for each matrix of the batch."""
    number = 1 if case.batch is None else case.batch
    counts = case.counts or tuple(-(-case.k // (1 + i % 2)) for i in range(number))
    apart = case.apart if case.counts else ROWS_OF_NONE
    k = max(counts, default=case.k)
    return replace(case, batch=len(counts), k=k, shared=(), counts=counts, apart=apart)


def _in_groups(case: GemmCase, most: int) -> GemmCase:
    if case.counts:
        counts = case.counts[-most:]
        return replace(case, counts=counts, batch=len(counts), m=max(counts))
    number = min(most, 1 if case.batch is None else case.batch)
    counts = tuple(-(-case.m // (1 + i % 2)) for i in range(number))
    return replace(case, batch=number, shared=(), counts=counts, apart=ROWS_OF_NONE)


def group_cases(plan: GemmPlan) -> Iterator[GemmCase]:
    """Yield the cases for groups alone: empty ones, many, and neighbours with NaN."""
    if plan.sums_by_group:
        yield from _cases_along_k(plan)
    if plan.groups is None:
        return
    rows, n, k = plan.tile_rows, plan.tile_columns, plan.BK

    def case(name: str, counts: tuple[int, ...], n: int, k: int, data: str) -> GemmCase:
        most = max(counts, default=0)
        return GemmCase(
            f"groups/{name}", most, n, k, len(counts), data=data, counts=counts, apart=ROWS_OF_NONE
        )

    uneven = (rows - 1, 0, 1, 2 * rows + 3, 0, 0, rows)
    yield case("uneven", uneven, n + 9, k + 8, "counting")
    yield replace(case("ends", (rows, 1, rows + 1), n - 1, k, "counting"), apart=(0, 0))
    yield case("none_has_rows", (0, 0, 0), n, k, "normal")
    few = tuple((0, 1, 3, 0, 2)[i % 5] for i in range(MANY))
    yield case("many", few, 24, 24, "counting")
    yield case("mostly_empty", (*(0,) * 298, 2, 0, 5), 24, 8, "counting")
    yield case("nan_neighbours", (9, rows + 2, 5, 7, rows), n + 8, 2 * k, "nan_groups")
    if plan.dtype not in ("fp8_e4m3", "fp4_e2m1"):  # which have no infinity
        yield case("inf_neighbours", (9, rows + 2, 5, 7, rows), n + 8, 2 * k, "inf_groups")


def _cases_along_k(plan: GemmPlan) -> Iterator[GemmCase]:
    """Yield the cases of groups along k: empty ones, many, ones that share a block of k."""
    rows, n, k = plan.tile_rows, plan.tile_columns, plan.BK
    ring = plan.num_stages * k

    def case(name: str, counts: tuple[int, ...], m: int, n: int, data: str) -> GemmCase:
        most = max(counts, default=0)
        return GemmCase(
            f"groups/{name}", m, n, most, len(counts), data=data, counts=counts, apart=ROWS_OF_NONE
        )

    uneven = (k - 1, 0, 1, ring + 3, 0, 0, k)
    yield case("uneven", uneven, rows + 8, n + 9, "counting")
    yield replace(case("ends", (k, 1, k + 1), rows - 1, 24, "counting"), apart=(0, 0))
    yield case("none_has_rows", (0, 0, 0), rows + 1, n, "normal")
    yield case("many", tuple((0, 1, 3, 0, 2)[i % 5] for i in range(MANY)), 24, 24, "counting")
    counts = (9, k + 2, 5, k + 7, k)
    yield case("nan_neighbours", counts, 40, n + 8, "nan_groups")
    yield case("inf_neighbours", counts, 40, n + 8, "inf_groups")
