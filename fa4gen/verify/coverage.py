"""The coverage by cases that were run, and further cases for code that they did not reach."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.coverage.counts import merge
from fa4gen.verify.exercise import Exercise, add_counts, rings_of
from fa4gen.verify.family import family_of
from fa4gen.verify.work_done import Tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fa4gen.designs.common.plans import Plan
    from fa4gen.designs.common.unreachable import Unreachable
    from fa4gen.toolchain.ptx_places import Place
    from fa4gen.verify.verdict import CaseVerdict, NamedCase

MAX_FURTHER: Final = 5
"""The most cases added: code that they do not reach either is reported."""


def exercise_of(
    plan: Plan, verdicts: Iterable[CaseVerdict | None], *, whole: bool
) -> Exercise | None:
    """Return the coverage by the cases of ``verdicts``; None where nothing was recorded."""
    done = [verdict for verdict in verdicts if verdict is not None]
    watched = [(one.case, one.coverage) for one in done if one.coverage is not None]
    coverage = merge(seen for _, seen in watched)
    if coverage is None:
        return None
    family = family_of(plan)
    tiles = [found for case, seen in watched if (found := family.tiles(case, seen)) is not None]
    return Exercise(
        rings_of(plan, coverage),
        coverage,
        whole,
        add_counts([family.score_tiles(one.case) for one in done]),
        tiles=reduce(Tiles.__or__, tiles) if tiles else None,
        rescales=family.rescales(seen for _, seen in watched),
    )


def run_further(
    plan: Plan,
    verdicts: Sequence[CaseVerdict | None],
    check: Callable[[NamedCase], CaseVerdict | None],
) -> list[CaseVerdict | None]:
    """Run cases for code that ``verdicts`` did not reach, one by one; return their verdicts.

    None is run after a failure: the coverage of an aborted launch means little.
    """
    more: list[CaseVerdict | None] = []
    tried = {one.case.name for one in verdicts if one is not None}
    while len(more) < MAX_FURTHER:
        everything = [*verdicts, *more]
        if not all(one is not None and one.passed for one in everything):
            break
        found = exercise_of(plan, everything, whole=True)
        if found is None or found.complete:
            break
        cases = family_of(plan).further_cases(found.wanted)
        case = next((case for case in cases if case.name not in tried), None)
        if case is None:
            break
        tried.add(case.name)
        more.append(check(case))
    return more


def with_places(
    found: Exercise,
    unreachable: tuple[Unreachable, ...],
    look_up: Callable[[Sequence[int]], Mapping[int, Place]],
) -> Exercise:
    """Return ``found`` with the source lines of unreached code, and the unreachable code."""
    coverage = found.coverage
    lines = [one.line for one in found.branches_left] + [one.line for one in coverage.unrun]
    if unreachable:  # those that it names must have gone one way
        lines += [one.line for one in coverage.branches]
    if not lines:
        return found
    return replace(found, places=look_up(lines), unreachable=unreachable)
