"""Between the problems that a table measured: whether its kernel is still the one to take.

A region's kernel was compared with others at one problem. At others of the region the model decides
whether it is still good: it is taken unless another is predicted to be faster by more than the
model's order can be trusted with.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from fa4gen.config.set_file import Region
from fa4gen.tune.candidates import rank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.candidates import Candidate, Ranked
    from fa4gen.tune.family import Family
    from fa4gen.tune.model.chips import Chip

STEP = 8
"""Rows that heights of tiles are multiples of: within them predictions hardly change."""


def still_good(
    family: Family, region: Region, plan: Plan, first: Ranked, problem: Any, chip: Chip
) -> bool:
    """Return whether the kernel of a region, with ``plan``, is the one to take for a problem."""
    chosen_at = family.parse_problem(region.problem) if region.problem else None
    return problem == chosen_at or is_good(family, plan, first, problem, chip, chosen_at)


def is_good(
    family: Family,
    plan: Plan,
    first: Ranked,
    problem: Any,
    chip: Chip,
    chosen_at: Any = None,
) -> bool:
    """Return whether a kernel may be taken in place of the model's first.

    It may take ``alike`` times as long by the model. Where it was ``chosen_at`` a problem at which
    the model prefers this other one, the model is wrong about the two by that factor at least. A
    kernel that the model never chooses for such a problem has to be the faster one.
    """
    other = first.candidate.plan

    def ratio(at: Any) -> float:
        return family.predict(plan, at, chip).us / family.predict(other, at, chip).us

    if not family.suits(plan, problem):
        return ratio(problem) * family.alike <= 1
    limit = family.alike
    if chosen_at is not None and family.suits(other, chosen_at):
        limit *= max(1.0, ratio(chosen_at))
    return ratio(problem) <= limit


def between(
    family: Family, regions: Sequence[Region], candidates: Mapping[str, Candidate], chip: Chip
) -> list[Region]:
    """Return the parts of ``regions`` where another of the candidates is the one to take.

    They are parts along the family's axis: regions of which several extents are ranges have none.
    From the measured problem to both ends a kernel is kept as long as it is good.
    """
    found = []
    for region in regions:
        axis = _single_axis(family, region)
        if axis and region.problem:
            found += list(_parts(family, region, axis, candidates, chip))
    return found


def _single_axis(family: Family, region: Region) -> str:
    ranges = [name for name, (low, high) in region.where.items() if low < high]
    return ranges[0] if ranges == [family.axes[0]] else ""


def _parts(
    family: Family,
    region: Region,
    axis: str,
    candidates: Mapping[str, Candidate],
    chip: Chip,
) -> Iterator[Region]:
    low, high = region.where[axis]
    chosen = family.parse_problem(region.problem)
    extents = family.extents(chosen)
    measured = extents[axis]
    blocks = [
        (max(low, start + 1), min(high, start + STEP))
        for start in range((low - 1) // STEP * STEP, high, STEP)
    ]
    own = next(number for number, (_, last) in enumerate(blocks) if measured <= last)
    kernels = [region.kernel] * len(blocks)
    for numbers in (range(own + 1, len(blocks)), range(own - 1, -1, -1)):
        kept = region.kernel
        for number in numbers:
            problem = family.problem({**extents, axis: blocks[number][1]})
            first = rank(candidates.values(), problem, chip)[0]
            chosen_at = chosen if kept == region.kernel else None
            if not is_good(family, candidates[kept].plan, first, problem, chip, chosen_at):
                kept = first.candidate.name
            kernels[number] = kept
    place = 0
    for kernel, group in groupby(kernels):
        size = len(list(group))
        if kernel != region.kernel:
            ends = blocks[place][0], blocks[place + size - 1][1]
            yield Region(where={**region.where, axis: ends}, kernel=kernel)
        place += size
