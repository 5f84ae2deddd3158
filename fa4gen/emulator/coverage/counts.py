"""The parts of a kernel that a launch exercised, and those that it did not.

A clean verdict says nothing about code that did not run, or a ring that was not used again.

Coverages of runs of one kernel merge with ``a | b``. The merge takes the larger count and the union
of observations, so order and repetition of runs make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

WRAPPED_TWICE: Final = 3
"""Phases that every slot of a ring completes when the ring wraps twice: its first use, one with the
other parity, and one with the first parity again."""


@dataclass(frozen=True, slots=True)
class BarrierCoverage:
    """An mbarrier: ``phases`` that it completed, waits that ``passed``, waits that had to park.

    ``offset`` is that of shared memory, ``name`` what findings call it.

    The counts are the largest of any CTA, and of any run after a merge. A wait that parks passes in
    the end, unless it gives up; so ``passed`` counts it too.
    """

    offset: int
    name: str
    phases: int = 0
    passed: int = 0
    parked: int = 0

    def __or__(self, other: BarrierCoverage) -> BarrierCoverage:
        if (other.offset, other.name) != (self.offset, self.name):
            raise ValueError(f"coverage of {self.name} and of {other.name} do not merge")
        return BarrierCoverage(
            self.offset,
            self.name,
            max(self.phases, other.phases),
            max(self.passed, other.passed),
            max(self.parked, other.parked),
        )


@dataclass(frozen=True, slots=True)
class BranchCoverage:
    """A place where a kernel decides: a conditional branch, a guard, or a choice of a size.

    Guards are those of instructions at which threads synchronise or wait; ``choice`` is the opcode
    of a choice (``min``, ``max``, ``selp``), and "" of the others.

    line     the PTX line
    where    the source line, or the PTX line; ``call`` is where that code was inlined
    taken    a thread for which the condition held came here; ``passed``: one for which it did not;
             of a choice: a thread got the first value, or the second, and the two differed
    roles    of some of the threads that came
    expects  the sides that can be taken in correct code: a side that leads to ``trap`` only is
             left out, and so is the repetition of a wait
    skips    the side that passes by a loop which the other one enters; None where none does
    """

    line: int
    where: str
    call: str = ""
    taken: bool = False
    passed: bool = False
    roles: tuple[str, ...] = ()
    expects: tuple[bool, bool] = (True, True)
    skips: bool | None = None
    choice: str = ""

    @property
    def covered(self) -> bool:
        """Whether every side was taken that can be."""
        return (self.taken or not self.expects[0]) and (self.passed or not self.expects[1])

    @property
    def reached(self) -> bool:
        """Whether any thread came here."""
        return self.taken or self.passed

    @property
    def only_rounds(self) -> bool:
        """Whether all that is missing is a loop without any round."""
        if self.skips is None or self.covered or not self.reached:
            return False
        return self.taken is not self.skips and self.passed is self.skips

    def __or__(self, other: BranchCoverage) -> BranchCoverage:
        if (other.line, other.where) != (self.line, self.where):
            raise ValueError(f"coverage of the branches at {self.where}, {other.where}: no merge")
        return BranchCoverage(
            self.line,
            self.where,
            self.call,
            self.taken or other.taken,
            self.passed or other.passed,
            tuple(sorted({*self.roles, *other.roles})),
            self.expects,
            self.skips,
            self.choice,
        )


@dataclass(frozen=True, slots=True)
class VoteCoverage:
    """A branch that follows from a vote of the warp: work is done or skipped by it.

    taken    warps that did the work that the vote decides on
    skipped  warps whose vote had failed
    """

    line: int
    where: str
    call: str = ""
    taken: int = 0
    skipped: int = 0

    def __or__(self, other: VoteCoverage) -> VoteCoverage:
        if (other.line, other.where) != (self.line, self.where):
            raise ValueError(f"coverage of the votes at {self.where}, {other.where}: no merge")
        return VoteCoverage(
            self.line,
            self.where,
            self.call,
            max(self.taken, other.taken),
            max(self.skipped, other.skipped),
        )


@dataclass(frozen=True, slots=True)
class RingUse:
    """Phases that all slots of a ring completed together in a CTA: the ``least`` and the ``most``.

    Of the CTAs that initialised it.
    """

    name: str
    least: int
    most: int

    def __or__(self, other: RingUse) -> RingUse:
        if other.name != self.name:
            raise ValueError(f"coverage of {self.name} and of {other.name} do not merge")
        return RingUse(self.name, min(self.least, other.least), max(self.most, other.most))


@dataclass(frozen=True, slots=True)
class Unrun:
    """An instruction that no thread executed; its source line has ``of`` instructions in all.

    ``behind``: sides of branches, each a line of PTX and whether the guard holds, by which every
    way to the instruction leads.
    """

    line: int
    where: str
    call: str
    of: int
    behind: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of launches of one kernel.

    barriers      in the order of shared memory
    branches      in the order of the PTX, then the choices of sizes in that order
    lines         of PTX, of its instructions, without jumps and what leads to ``trap`` only
    unrun         those of them that no thread executed
    clusters      started; ``cancelled`` by clusterlaunchcontrol; ``ctas`` started
    named         the ids of the named barriers that were completed
    votes         branches on a vote of the warp, in the order of the PTX
    uses          rings by name, with what single CTAs did

    A merge takes the counts of the run with most.
    """

    kernel: str = ""
    barriers: tuple[BarrierCoverage, ...] = ()
    branches: tuple[BranchCoverage, ...] = ()
    unrun: tuple[Unrun, ...] = ()
    lines: tuple[int, ...] = ()
    clusters: int = 0
    ctas: int = 0
    cancelled: int = 0
    named: tuple[int, ...] = ()
    votes: tuple[VoteCoverage, ...] = ()
    uses: tuple[RingUse, ...] = ()

    def __or__(self, other: Coverage) -> Coverage:
        """Both; ValueError for coverages of different kernels."""
        if other._kernel() != self._kernel():
            raise ValueError(f"coverage of {self.kernel} and of {other.kernel} do not merge")
        barriers = {one.offset: one for one in self.barriers}
        for one in other.barriers:
            barriers[one.offset] = barriers.get(one.offset, one) | one
        never = set(other.unrun)
        uses = {one.name: one for one in self.uses}
        for use in other.uses:
            uses[use.name] = uses.get(use.name, use) | use
        return Coverage(
            self.kernel,
            tuple(barriers[offset] for offset in sorted(barriers)),
            tuple(a | b for a, b in zip(self.branches, other.branches, strict=True)),
            tuple(one for one in self.unrun if one in never),
            self.lines,
            max(self.clusters, other.clusters),
            max(self.ctas, other.ctas),
            max(self.cancelled, other.cancelled),
            tuple(sorted({*self.named, *other.named})),
            tuple(a | b for a, b in zip(self.votes, other.votes, strict=True)),
            tuple(uses[name] for name in sorted(uses)),
        )

    def _kernel(self) -> tuple[str, int, int, int]:
        return self.kernel, len(self.lines), len(self.branches), len(self.votes)

    @property
    def instructions(self) -> int:
        """The number of instructions that can run."""
        return len(self.lines)

    def use_of(self, ring: str) -> RingUse | None:
        """The use of a ring by single CTAs; None where none used it."""
        return next((one for one in self.uses if one.name == ring), None)

    def one_sided(self) -> tuple[BranchCoverage, ...]:
        """Branches that threads reached, always with the same outcome."""
        return tuple(one for one in self.branches if one.reached and not one.covered)

    def lines_never_run(self) -> tuple[str, ...]:
        """Source lines of which no instruction ran, in no copy that was inlined or unrolled."""
        count: dict[str, int] = {}
        total: dict[str, int] = {}
        for one in self.unrun:
            count[one.where] = count.get(one.where, 0) + 1
            total[one.where] = one.of
        return tuple(where for where, number in count.items() if number == total[where])

    def rings(self) -> tuple[BarrierCoverage, ...]:
        """Barriers by name without the slot: of each the slot that saw least."""
        slots: dict[str, list[BarrierCoverage]] = {}
        for one in self.barriers:
            slots.setdefault(one.name.partition("[")[0], []).append(one)
        return tuple(
            BarrierCoverage(
                group[0].offset,
                name,
                min(one.phases for one in group),
                min(one.passed for one in group),
                min(one.parked for one in group),
            )
            for name, group in slots.items()
        )

    @property
    def num_covered(self) -> int:
        """Branches of which every side was taken that can be."""
        return sum(one.covered for one in self.branches)


def merge(coverages: Iterable[Coverage]) -> Coverage | None:
    """All of one kernel's coverages in one; None without any."""
    found = list(coverages)
    return reduce(Coverage.__or__, found) if found else None
