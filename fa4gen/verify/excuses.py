"""The instructions that did not run because the plan has their branches go one way only."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.designs.common.unreachable import Unreachable
    from fa4gen.emulator.coverage.counts import BranchCoverage, Coverage
    from fa4gen.toolchain.ptx_places import Place


@dataclass(frozen=True)
class Judged:
    """Instructions that did not run, sorted by the plan's entries.

    ``not_run`` are lines of PTX of those that it does not name; ``reasons`` counts the others.
    ``refuted`` says which of its entries are wrong, ``idle`` which name no branch of the kernel.
    """

    not_run: tuple[int, ...]
    reasons: Mapping[str, int]
    refuted: tuple[str, ...]
    idle: tuple[str, ...]


def judge_unreachable(
    coverage: Coverage, places: Mapping[int, Place], unreachable: Sequence[Unreachable]
) -> Judged:
    """Compare the plan's unreachable code with the instructions that did not run."""
    excuses: dict[tuple[int, bool], str] = {}
    refuted = []
    without_branch = []
    for entry in unreachable:
        meant = _by_place(coverage.branches, places, entry)
        if places and not meant:
            without_branch.append(
                f"the plan calls a branch unreachable that the kernel does not have "
                f"({entry.reason}): {entry}"
            )
        for place, copies in meant.items():
            share = entry.share_of(len(copies))
            one_way = [one for one in copies if not (one.taken and one.passed)]
            if len(one_way) < share:
                refuted.append(
                    f"the plan says that {share} of {len(copies)} copies of a branch of "
                    f"{entry.function} always go one way ({entry.reason}), and "
                    f"{share - len(one_way)} of them went both ways: {place}"
                )
            for one in one_way[-share:] if share else ():
                excuses |= {
                    (one.line, side): entry.reason
                    for side, seen in ((True, one.taken), (False, one.passed))
                    if not seen
                }
    reasons = Counter[str]()
    not_run = []
    for idle in coverage.unrun:
        reason = next((excuses[side] for side in idle.behind if side in excuses), None)
        if reason is None:
            not_run.append(idle.line)
        else:
            reasons[reason] += 1
    return Judged(tuple(not_run), dict(reasons), tuple(refuted), tuple(without_branch))


def _by_place(
    branches: Sequence[BranchCoverage], places: Mapping[int, Place], entry: Unreachable
) -> dict[Place, list[BranchCoverage]]:
    """Return the branches that an entry means, copies of one source line together."""
    found: dict[Place, list[BranchCoverage]] = defaultdict(list)
    for one in branches:
        place = None if one.choice else places.get(one.line)
        if place is not None and entry.means(place.lines):
            found[place].append(one)
    return found
