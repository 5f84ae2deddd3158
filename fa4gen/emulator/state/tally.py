"""Counts of the code that one launch exercises, at next to no cost: on also without checks.

The scheduler notes how far a straight run of steps went and on which sides of a branch lanes came
out; the generated code notes which guarded instructions had a lane; barriers count for themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from fa4gen.emulator.coverage.counts import (
    BarrierCoverage,
    BranchCoverage,
    Coverage,
    RingUse,
    Unrun,
    VoteCoverage,
)
from fa4gen.emulator.state.registers import WARP_LANES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.emulator.coverage.points import Points, Vote
    from fa4gen.emulator.names import Names
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.mbarriers import Phases
    from fa4gen.emulator.state.registers import Mask, Registers, Row

YES: Final = 1
NO: Final = 2
BOTH: Final = 3
"""Sides of a branch: the guard holds, or does not."""
COUNTED: Final = 4
"""Added to the sides of a branch on a vote: it is counted each time, not until both were seen."""


class BarrierOwner(Protocol):
    """A CTA, as far as its barriers go."""

    index: int

    @property
    def barriers(self) -> Mapping[int, Phases]:
        """By offset."""

    def place_of(self, offset: int) -> str:
        """The name of a byte of shared memory in every CTA."""


class Tally:
    """The counts so far.

    ``reach[step]``: the last step of the longest straight run from a step, -1 where none began.
    ``held[instruction]``: whether a guarded instruction had a lane. ``sides[step]``: YES | NO,
    and COUNTED at a branch on one of the ``votes``. ``chosen[instruction]``: YES | NO, for the
    first and the second value of a choice between two sizes.
    """

    def __init__(self, instructions: int, steps: int, votes: Sequence[Vote] = ()) -> None:
        self.held = bytearray(instructions)
        self.reach = [-1] * steps
        self.sides = bytearray(steps)
        self.chosen = bytearray(instructions)
        self.clusters = 0
        self.ctas = 0
        self.cancelled = 0
        self.named: set[int] = set()
        self._votes = {vote.step: vote for vote in votes}
        self._voted = {vote.step: [0, 0] for vote in votes}
        for vote in votes:
            self.sides[vote.step] = COUNTED
        self._uses: dict[str, RingUse] = {}
        self._roles: dict[int, set[str]] = {}
        self._choosers: dict[int, set[str]] = {}
        self._barriers: dict[int, list[int]] = {}
        self._names: dict[int, str] = {}
        # for each CTA: phases of barriers that are gone, by their offset
        self._retired: dict[int, dict[int, int]] = {}

    def split(
        self, step: int, wg: Registers, mask: Mask, holds: Row, total: int, names: Names
    ) -> None:
        """Count lanes at a branch: of ``total``, those that it ``holds`` for go to YES."""
        count = int(np.count_nonzero(holds))
        if step in self._votes:
            self._count_vote(self._votes[step], wg, mask, holds)
        sides = (YES if count else 0) | (NO if count < total else 0)
        if sides & ~self.sides[step]:
            self.sides[step] |= sides
            self._note_role(self._roles, step, wg, mask, names)

    def choose(
        self, index: int, wg: Registers, mask: Mask, first: Row, second: Row, names: Names
    ) -> None:
        """Count lanes of ``mask`` at a choice: some take its ``first`` value, some the ``second``.

        Lanes for which the values are equal are in neither row.
        """
        if mask is not None:
            first, second = first & mask, second & mask
        sides = (YES if first.any() else 0) | (NO if second.any() else 0)
        if sides & ~self.chosen[index]:
            self.chosen[index] |= sides
            self._note_role(self._choosers, index, wg, mask, names)

    @staticmethod
    def _note_role(
        roles: dict[int, set[str]], place: int, wg: Registers, mask: Mask, names: Names
    ) -> None:
        lanes = wg.lanes_of(mask)
        role = names.of_threads(wg.thread(int(lanes[0])), wg.thread(int(lanes[-1])))
        if role is not None:
            roles.setdefault(place, set()).add(role)

    def _count_vote(self, vote: Vote, wg: Registers, mask: Mask, holds: Row) -> None:
        """Count the warps that do the work of a vote, and those whose vote failed."""
        here = wg.live if mask is None else mask
        goes = here & ~holds if vote.flips else holds
        voted = self._voted[vote.step]
        for index, lanes in enumerate((goes, here & ~wg.P[vote.outcome])):
            voted[index] += len(np.unique(np.flatnonzero(lanes) // WARP_LANES))

    def started(self, ctas: int) -> None:
        """Count a cluster of ``ctas`` CTAs that starts."""
        self.clusters += 1
        self.ctas += ctas

    def retire(self, cta: BarrierOwner, barrier: Phases) -> None:
        """Keep the counts of a barrier that is invalidated, or initialised again."""
        self._keep(cta, barrier)
        before = self._retired.setdefault(cta.index, {})
        before[barrier.offset] = before.get(barrier.offset, 0) + barrier.phase

    def _keep(self, cta: BarrierOwner, barrier: Phases) -> None:
        seen = self._barriers.setdefault(barrier.offset, [0, 0, 0])
        for index, count in enumerate((barrier.phase, barrier.passes, barrier.parks)):
            seen[index] = max(seen[index], count)
        if barrier.offset not in self._names:
            self._names[barrier.offset] = cta.place_of(barrier.offset)

    def ended(self, ctas: Sequence[BarrierOwner]) -> None:
        """CTAs are over, or the launch is."""
        for cta in ctas:
            phases = dict(self._retired.pop(cta.index, {}))
            for barrier in cta.barriers.values():
                self._keep(cta, barrier)
                phases[barrier.offset] = phases.get(barrier.offset, 0) + barrier.phase
            totals: dict[str, int] = {}
            for offset, count in phases.items():
                ring = self._names[offset].partition("[")[0]
                totals[ring] = totals.get(ring, 0) + count
            for ring, total in totals.items():
                use = RingUse(ring, total, total)
                self._uses[ring] = self._uses.get(ring, use) | use

    def coverage(
        self, name: str, instructions: Sequence[Instruction], points: Points, ran: Sequence[int]
    ) -> Coverage:
        """The coverage of the entry ``name``; ``ran`` marks the executed instructions."""
        return Coverage(
            name,
            tuple(
                BarrierCoverage(offset, self._names[offset], *self._barriers[offset])
                for offset in sorted(self._barriers)
            ),
            (
                *(
                    _decision(
                        branch.guard,
                        self.sides[branch.step],
                        self._roles.get(branch.step, ()),
                        expects=branch.expects,
                        skips=branch.skips,
                    )
                    for branch in points.branches
                ),
                *(
                    _decision(
                        instructions[index],
                        self.chosen[index],
                        self._choosers.get(index, ()),
                        choice=instructions[index].opcode,
                    )
                    for index in points.choices
                ),
            ),
            tuple(
                Unrun(
                    one.line,
                    one.where,
                    one.source.call if one.source else "",
                    points.of_line[one.where],
                    points.behind(index),
                )
                for index in points.instructions
                for one in (instructions[index],)
                if not ran[index]
            ),
            tuple(instructions[index].line for index in points.instructions),
            self.clusters,
            self.ctas,
            self.cancelled,
            tuple(sorted(self.named)),
            tuple(
                VoteCoverage(
                    vote.branch.line,
                    vote.branch.where,
                    vote.branch.source.call if vote.branch.source else "",
                    *self._voted[step],
                )
                for step, vote in self._votes.items()
            ),
            tuple(self._uses[ring] for ring in sorted(self._uses)),
        )


def _decision(
    at: Instruction,
    sides: int,
    roles: Iterable[str],
    *,
    expects: tuple[bool, bool] = (True, True),
    skips: bool | None = None,
    choice: str = "",
) -> BranchCoverage:
    return BranchCoverage(
        at.line,
        at.where,
        at.source.call if at.source else "",
        bool(sides & YES),
        bool(sides & NO),
        tuple(sorted(roles)),
        expects,
        skips,
        choice,
    )
