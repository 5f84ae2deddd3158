"""The edges of matrix products, and the emulator's cases that reach those not reached before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.runtime.schedule import ceil_div
from fa4gen.verify.cases import COUNTING, MULTIPROCESSORS
from fa4gen.verify.edges.edge import ODD_STRIDES, RELATIONS, WHY_ODD_STRIDES, Edge, Special
from fa4gen.verify.gemm.case import GemmCase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fa4gen.designs.common.gemm_model import GemmPlan

LANES = 32
"""Threads of a warp."""


def edges(plan: GemmPlan) -> tuple[Edge, ...]:
    """Return the edges of a plan."""
    return tuple(one.edge(plan) for one in specials(plan))


def reached(plan: GemmPlan, case: GemmCase) -> frozenset[str]:
    """Return the names of the edges that a case reaches."""
    if 0 in (case.m, case.n, case.batch):
        return frozenset()
    return frozenset(one.name for one in specials(plan) if one.has(plan, case))


def edge_cases(plan: GemmPlan, others: Iterable[GemmCase]) -> tuple[GemmCase, ...]:
    """Return cases for the edges that ``others`` do not reach."""
    left = {edge.name for edge in edges(plan) if not edge.impossible}
    for case in others:
        left -= reached(plan, case)
    made = []
    for one in specials(plan):
        if one.name in left:
            made.append(one.make(plan))
            left -= reached(plan, made[-1])
    return tuple(made)


def specials(plan: GemmPlan) -> Iterator[Special[GemmPlan, GemmCase]]:
    """Yield the edges of a plan, each with a case that is at it."""
    for one in (*SPECIALS, *_ends("rows", "m"), *_ends("columns", "n"), *_ends("k", "k")):
        if one.concerns(plan):
            yield one


def extent(plan: GemmPlan, axis: str) -> int:
    """Return rows or columns of a tile, or the extent of a block along k."""
    return {"m": plan.tile_rows, "n": plan.tile_columns, "k": plan.BK}[axis]


def _ends(words: str, axis: str) -> Iterator[Special[GemmPlan, GemmCase]]:
    """Yield the edges of an extent that ends on the boundary of a tile or block, or near it."""
    for relation, where in RELATIONS.items():

        def has(plan: GemmPlan, case: GemmCase, relation: int = relation) -> bool:
            step, unit = extent(plan, axis), _unit(plan, axis)
            return int(getattr(case, axis)) % step == relation * unit % step

        def make(plan: GemmPlan, relation: int = relation) -> GemmCase:
            there = extent(plan, axis) + relation * _unit(plan, axis)
            sizes = {"m": 9, "n": 9, "k": 8, axis: there}
            return GemmCase(
                f"edges/{axis}{sizes[axis]}", sizes["m"], sizes["n"], sizes["k"], data=COUNTING
            )

        why = f"{words} past the last one count, or the last ones do not"
        yield Special(f"{words} end {where}", why, lambda _: True, has, make)


def _unit(plan: GemmPlan, axis: str) -> int:
    """Return the least step of an extent: elements along k may share bytes."""
    return {"k": plan.elements_per_byte, "n": plan.column_unit}.get(axis, 1)


def _group(plan: GemmPlan) -> GemmCase:
    """Three rows of tiles in groups of two."""
    rows, columns = 2 * plan.tile_rows + 1, plan.tile_columns + 9
    return GemmCase("groups/rows", rows, columns, 24, batch=2, data=COUNTING, group=2)


def _has_groups(plan: GemmPlan, case: GemmCase) -> bool:
    tiles = ceil_div(case.m, plan.tile_rows)
    several = case.n > plan.tile_columns and (case.batch or 1) > 1
    return several and case.group is not None and case.group < tiles and tiles % case.group > 0


def _has_waves(plan: GemmPlan, case: GemmCase) -> bool:
    count = case.multiprocessors or MULTIPROCESSORS
    size = GemmSize(case.batch or 1, case.m, case.n, case.k)
    tiles = plan_gemm_schedule(plan, size, count).num_tiles
    return tiles * plan.launch.cluster > 2 * count


def _waves(plan: GemmPlan) -> GemmCase:
    """Six tiles for each cluster of the chip."""
    rows, columns = plan.tile_rows + 5, 2 * plan.tile_columns + 9
    return GemmCase("edges/waves", rows, columns, 24, multiprocessors=plan.launch.cluster)


def _parts(plan: GemmPlan) -> int:
    """Return how many CTAs divide k of a tile."""
    return int(getattr(plan, "split_k", 1))


def _has_unequal_parts(plan: GemmPlan, case: GemmCase) -> bool:
    blocks, parts = ceil_div(case.k, plan.BK), _parts(plan)
    return blocks > parts and blocks % parts > 0


def _unequal_parts(plan: GemmPlan) -> GemmCase:
    return GemmCase("edges/unequal_parts", 9, 24, _parts(plan) * plan.BK + 8, data=COUNTING)


def _has_idle_parts(plan: GemmPlan, case: GemmCase) -> bool:
    return 0 < ceil_div(case.k, plan.BK) < _parts(plan)


def _is_grouped(plan: GemmPlan) -> bool:
    return plan.groups is not None


def _sums_by_group(plan: GemmPlan) -> bool:
    return plan.sums_by_group


def _along_k(counts: tuple[int, ...]) -> GemmCase:
    """Return a case with groups along k."""
    name = f"edges/groups_of_{counts[0]}"
    return GemmCase(name, 24, 24, max(counts), len(counts), data=COUNTING, counts=counts)


def _groups(plan: GemmPlan, counts: tuple[int, ...]) -> GemmCase:
    """Return a case with groups of these rows, as many as a call may have."""
    counts = counts[: plan.most_groups]
    name = f"edges/groups_of_{counts[0]}"
    return GemmCase(name, max(counts), 24, 24, len(counts), data=COUNTING, counts=counts)


SPECIALS: Final[tuple[Special[GemmPlan, GemmCase], ...]] = (
    Special(
        "several groups of row tiles, the last not full",
        "rows past the last full group are left out, or others are computed twice",
        lambda _: True,
        _has_groups,
        _group,
    ),
    Special(
        "strides that no other matrix and axis has",
        "a matrix is read or written with the strides of another, or with those of another axis",
        lambda _: True,
        lambda _, case: case.padded and (case.batch or 1) > 1 and case.m > 1 and not case.shared,
        lambda _: GemmCase("strides/apart", 33, 40, 24, batch=2, data=COUNTING, padded=True),
    ),
    Special(
        ODD_STRIDES,
        WHY_ODD_STRIDES,
        lambda _: True,
        lambda _, case: case.padded and 1 in (case.m, case.n),
        lambda _: GemmCase("strides/odd", 1, 9, 9, data=COUNTING, padded=True),
    ),
    Special(
        "more tiles than two waves",
        "state of one tile is left for the next, or tiles are taken twice",
        lambda _: True,
        _has_waves,
        _waves,
    ),
    Special(
        "CTAs of a cluster without rows",
        "a CTA past the last row does not take part, and others wait for it",
        lambda plan: plan.tile_rows > plan.BM,
        lambda plan, case: 0 < case.m % plan.tile_rows <= plan.tile_rows - plan.BM,
        lambda plan: GemmCase("edges/rows_of_one", 9, plan.BN + 9, plan.BK + 8, data=COUNTING),
    ),
    Special(
        "CTAs of a cluster without columns",
        "a CTA past the last column does not take part, and others wait for it",
        lambda plan: plan.tile_columns > plan.out_columns,
        lambda plan, case: 0 < case.n % plan.tile_columns <= plan.tile_columns - plan.out_columns,
        lambda plan: GemmCase(
            "edges/columns_of_one", plan.tile_rows + 9, 9, plan.BK + 8, data=COUNTING
        ),
    ),
    Special(
        "groups without rows",
        "the list counts tiles for them, or a tile is given to one",
        _is_grouped,
        lambda _, case: 0 in case.counts[:-1] and any(case.counts),
        lambda plan: _groups(plan, (0, 9, 0, 0, plan.tile_rows + 1, 0)),
    ),
    Special(
        "more groups than twice a warp's lanes",
        "a lane counts one of them alone, or a search ends early",
        lambda plan: plan.most_groups > 2 * LANES,
        lambda _, case: len(case.counts) > 2 * LANES and len({*case.counts}) > 1,
        lambda plan: _groups(plan, (0, 2, 1) * LANES),
    ),
    Special(
        "groups that begin and end within a tile's rows",
        "rows of a neighbour are overwritten, or counted from a multiple of a tile",
        _is_grouped,
        lambda plan, case: any(count % plan.tile_rows for count in case.counts[:-1]),
        lambda plan: _groups(plan, (plan.tile_rows - 1, 5, plan.tile_rows + 1)),
    ),
    Special(
        "groups along k without rows",
        "a slot of the ring is waited for, or what is written is not zero",
        _sums_by_group,
        lambda _, case: 0 in case.counts[:-1] and any(case.counts),
        lambda plan: _along_k((0, 9, 0, 0, plan.BK + 1, 0)),
    ),
    Special(
        "groups along k that begin and end within a block",
        "rows of a neighbour are added",
        _sums_by_group,
        lambda plan, case: any(count % plan.BK for count in case.counts[:-1]),
        lambda plan: _along_k((plan.BK - 1, 5, plan.BK + 1)),
    ),
    Special(
        "parts of k of different lengths",
        "a CTA takes blocks of k of another, or none takes the last",
        lambda plan: _parts(plan) > 1,
        _has_unequal_parts,
        _unequal_parts,
    ),
    Special(
        "a part of k without blocks",
        "what such a CTA adds is not zero",
        lambda plan: _parts(plan) > 1,
        _has_idle_parts,
        lambda _: GemmCase("edges/idle_part", 9, 24, 8, data=COUNTING),
    ),
)
