"""A coverage in words, and as data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from fa4gen.emulator.coverage.counts import WRAPPED_TWICE

if TYPE_CHECKING:
    from fa4gen.emulator.coverage.counts import BranchCoverage, Coverage

SHOWN: Final = 6
"""The number of names and lines of a kind that the text has; JSON has all."""


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """The figures in a line, then a line for each kind of point that was not exercised."""
    rings = coverage.rings()
    behind = [one for one in rings if one.phases < WRAPPED_TWICE]
    ran = coverage.instructions - len(coverage.unrun)
    parts = [f"{ran} of {coverage.instructions} instructions ran"]
    if coverage.branches:
        parts.append(f"{coverage.num_covered} of {len(coverage.branches)} branches both ways")
    if rings:
        parts.append(
            f"{len(rings) - len(behind)} of {len(rings)} mbarriers completed "
            f"{WRAPPED_TWICE} phases in every slot"
        )
    if coverage.named:
        parts.append(f"named barriers used: {', '.join(map(str, coverage.named))}")
    if coverage.votes:
        taken = sum(one.taken for one in coverage.votes)
        skipped = sum(one.skipped for one in coverage.votes)
        parts.append(f"work that warps vote on: {taken} times done, {skipped} times left out")
    if coverage.cancelled:
        parts.append(f"{coverage.cancelled} of the clusters cancelled")
    yield f"covered: {', '.join(parts)}"
    if behind:
        fewer = _some(f"{one.name} ({one.phases})" for one in behind)
        yield f"not covered: fewer phases in {fewer}"
    never = coverage.lines_never_run()
    if never:
        yield f"not covered: never ran: {_some(never)}"
    lines = set(never)
    one_way = [one for one in coverage.one_sided() if one.where not in lines]
    entered = [one for one in one_way if one.only_rounds]
    others = [one for one in one_way if not one.only_rounds]
    if others:
        yield f"not covered: always the same way: {_some(map(_branch, others))}"
    if entered:
        yield f"not covered: loops that were always entered: {_some(map(_branch, entered))}"


def coverage_data(coverage: Coverage) -> dict[str, Any]:
    """All of it as JSON data."""
    return {
        "instructions": coverage.instructions,
        "instructions_run": coverage.instructions - len(coverage.unrun),
        "lines_never_run": list(coverage.lines_never_run()),
        "clusters": coverage.clusters,
        "clusters_cancelled": coverage.cancelled,
        "ctas": coverage.ctas,
        "named_barriers": list(coverage.named),
        "mbarriers": [
            {
                "name": one.name,
                "offset": one.offset,
                "phases": one.phases,
                "waits_passed": one.passed,
                "waits_parked": one.parked,
            }
            for one in coverage.barriers
        ],
        "phases_of_a_cta": {
            one.name: {"least": one.least, "most": one.most} for one in coverage.uses
        },
        "votes": [
            {
                "line": one.line,
                "where": one.where,
                "inlined_at": one.call,
                "taken": one.taken,
                "skipped": one.skipped,
            }
            for one in coverage.votes
        ],
        "branches": [
            {
                "line": one.line,
                "where": one.where,
                "inlined_at": one.call,
                "taken": one.taken,
                "passed": one.passed,
                "expected": {"taken": one.expects[0], "passed": one.expects[1]},
                "covered": one.covered,
                "loop_always_entered": one.only_rounds,
                "roles": list(one.roles),
            }
            for one in coverage.branches
        ],
        "instructions_never_run": [
            {"line": one.line, "where": one.where, "inlined_at": one.call} for one in coverage.unrun
        ],
    }


def _branch(one: BranchCoverage) -> str:
    return f"{one.where} [{', '.join(one.roles)}]" if one.roles else one.where


def _some(texts: Iterable[str]) -> str:
    """The first few of them, each once, and how many more there are."""
    found = list(dict.fromkeys(texts))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
