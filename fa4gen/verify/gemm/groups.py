"""Groups of rows in verify: where the rows of each lie, and how plain cases are turned into groups.

Rows of no group are NaN in A, in its scales and in C, and must stay as they are in the output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.cases import GemmCase

ROWS_OF_NONE: Final = (3, 5)
"""Rows before the first group and after the last one, or after those of each."""
MANY: Final = 70
"""Groups, more than twice as many as a warp has lanes."""


@dataclass(frozen=True)
class Part:
    """Rows of the result that one B is multiplied for: of a matrix of the batch, or of a group."""

    batch: int
    """The matrix of A, and of what else has its rows."""
    first: int
    """The first row in that matrix."""
    rows: int
    b: int
    """The B, and the C of one row."""
    place: tuple[int, int]
    """The matrix of the result and the row in it where the rows begin."""


@dataclass(frozen=True)
class Groups:
    """The rows of the groups of a case."""

    kind: str
    """"offsets" or "masked"."""
    counts: tuple[int, ...]
    apart: tuple[int, int]

    @property
    def matrices(self) -> int:
        """Matrices that A and the output have."""
        return len(self.counts) if self.kind == "masked" else 1

    @property
    def rows(self) -> int:
        """Rows of each of them."""
        before, after = self.apart
        if self.kind == "masked":
            return max(self.counts, default=0) + after
        return before + sum(self.counts) + after

    @property
    def argument(self) -> tuple[str, NDArray[np.int32]]:
        """The name of the array with the groups' rows, and its elements."""
        if self.kind == "masked":
            return "row_counts", np.array(self.counts, np.int32)
        offsets = self.apart[0] + np.cumsum((0, *self.counts))
        return "row_offsets", offsets.astype(np.int32)

    def parts(self) -> Iterator[Part]:
        """Yield the groups; in the result their rows follow one another."""
        begin = 0
        for group, count in enumerate(self.counts):
            batch, first = (group, 0) if self.kind == "masked" else (0, self.apart[0] + begin)
            yield Part(batch, first, count, group, (0, begin))
            begin += count

    def rows_of_none(self) -> NDArray[np.bool_]:
        """Return a mask (matrices, rows) of the rows that belong to no group."""
        mask = np.ones((self.matrices, self.rows), np.bool_)
        for part in self.parts():
            mask[part.batch, part.first : part.first + part.rows] = False
        return mask

    def row_of(self, row: int) -> tuple[int, int]:
        """Return the matrix and the row in it of a row of the result."""
        own = next(part for part in self.parts() if row < part.place[1] + part.rows)
        return own.batch, own.first + row - own.place[1]


def groups_of(plan: GemmPlan, case: GemmCase) -> Groups | None:
    """Return the groups of a case; None for a kernel without."""
    return None if plan.groups is None else Groups(plan.groups, case.counts, case.apart)


def case_extents(case: GemmCase, plan: GemmPlan) -> tuple[int, int, int]:
    """Return the number of Bs, of matrices of A and the output, and the rows of each of these."""
    batch = 1 if case.batch is None else case.batch
    groups = groups_of(plan, case)
    return (batch, batch, case.m) if groups is None else (batch, groups.matrices, groups.rows)


def matrix_parts(batches: int, rows: int) -> Iterator[Part]:
    """Yield the matrices of a batch as parts."""
    for batch in range(batches):
        yield Part(batch, 0, rows, batch, (batch, 0))


def in_groups(plan: GemmPlan, cases: Iterable[GemmCase]) -> tuple[GemmCase, ...]:
    """Return the cases for a kernel with groups: a matrix of the batch is a group of rows.

    Every other group has fewer rows. Groups share nothing, and are as many as a call may have.
    """
    if plan.groups is None:
        return tuple(cases)
    return tuple(_in_groups(case, plan.most_groups) for case in cases)


def _in_groups(case: GemmCase, most: int) -> GemmCase:
    if case.counts:
        counts = case.counts[-most:]
        return replace(case, counts=counts, batch=len(counts), m=max(counts))
    number = min(most, 1 if case.batch is None else case.batch)
    counts = tuple(-(-case.m // (1 + i % 2)) for i in range(number))
    return replace(case, batch=number, shared=(), counts=counts, apart=ROWS_OF_NONE)


def group_cases(plan: GemmPlan, make: type[GemmCase]) -> Iterator[GemmCase]:
    """Yield the cases for groups alone: empty ones, many, and neighbours with NaN."""
    if plan.groups is None:
        return
    rows, n, k = plan.tile_rows, plan.tile_columns, plan.BK

    def case(name: str, counts: tuple[int, ...], n: int, k: int, data: str) -> GemmCase:
        most = max(counts, default=0)
        return make(
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
    if plan.dtype != "fp8_e4m3":  # which has no infinity
        yield case("inf_neighbours", (9, rows + 2, 5, 7, rows), n + 8, 2 * k, "inf_groups")
