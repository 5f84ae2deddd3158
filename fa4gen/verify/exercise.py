"""The coverage of a kernel's plan by the emulated cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fa4gen.counts import counted
from fa4gen.emulator.coverage.counts import WRAPPED_TWICE
from fa4gen.verify.excuses import judge_unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.designs.common.unreachable import Unreachable
    from fa4gen.emulator.coverage.counts import BranchCoverage, Coverage
    from fa4gen.toolchain.ptx_places import Place
    from fa4gen.verify.excuses import Judged
    from fa4gen.verify.work_done import Rescales, Tiles


CHOICES: Final = {"min": "min", "max": "max", "selp": "selection"}
"""Words for the choice between two sizes, by opcode."""


@dataclass(frozen=True)
class Ring:
    """A row of the barrier table; ``phases``: of the slot that completed fewest."""

    name: str
    slots: int
    phases: int

    @property
    def wrapped_twice(self) -> bool:
        """Whether every slot was used three times: with both parities, and with the first again."""
        return self.phases >= WRAPPED_TWICE


@dataclass(frozen=True)
class Wanted:
    """The parts of a kernel that the cases did not reach, for choosing further ones."""

    rings: bool = False
    """Some did not wrap twice."""
    branches: bool = False
    """Some went one way only."""
    rescales_taken: bool = False
    rescales_skipped: bool = False
    several_tiles: bool = False
    """No CTA took more than one tile."""
    single_tile: bool = False
    """Every CTA took more than one."""


@dataclass(frozen=True)
class Exercise:
    """The exercised code, by the names of the plan.

    Phases are those of a single launch and CTA, so that they show how often a ring wrapped.
    """

    rings: tuple[Ring, ...]
    coverage: Coverage
    whole: bool = True
    """Whether all cases of the kernel ran, and none was chosen or stopped."""
    score_tiles: Mapping[str, int] = field(default_factory=dict)
    """Attention: blocks of keys by query tile of all cases that the mask leaves "full", "partial"
    or "empty"; {} of other kernels."""
    tiles: Tiles | None = None
    """Tiles that a CTA worked on; None where no case shows it."""
    rescales: Rescales | None = None
    """The rescales of an attention kernel with lazy rescaling."""
    places: Mapping[int, Place] = field(default_factory=dict)
    """Source lines by line of PTX, where they were looked up."""
    unreachable: tuple[Unreachable, ...] = ()
    """The plan's entries of unreachable code; ``places`` are then known of all branches."""

    @property
    def rings_left(self) -> tuple[Ring, ...]:
        """Rings that did not wrap twice."""
        return tuple(ring for ring in self.rings if not ring.wrapped_twice)

    @property
    def num_wrapped(self) -> int:
        """Rings that wrapped twice."""
        return len(self.rings) - len(self.rings_left)

    @property
    def branches_left(self) -> tuple[BranchCoverage, ...]:
        """Branches that no thread reached, or that all threads took the same way."""
        return tuple(one for one in self.coverage.branches if not one.covered)

    @property
    def not_run(self) -> tuple[int, ...]:
        """Lines of PTX of the instructions that no thread executed, without the unreachable."""
        return self.judged.not_run

    @property
    def reasons(self) -> dict[str, int]:
        """Instructions that no problem reaches, by the reason that the plan gives."""
        return dict(self.judged.reasons)

    @cached_property
    def judged(self) -> Judged:
        """The instructions that did not run, by the plan's entries of unreachable code."""
        return judge_unreachable(self.coverage, self.places, self.unreachable)

    @property
    def complete(self) -> bool:
        """Whether every instruction ran, rings wrapped twice, branches and work went both ways."""
        return not (self.not_run or self.rings_left or self.branches_left or list(self.work_gaps()))

    @property
    def wanted(self) -> Wanted:
        """The goals of further cases."""
        tiles, rescales = self.tiles, self.rescales
        return Wanted(
            rings=bool(self.rings_left),
            branches=bool(self.not_run) or not all(one.only_rounds for one in self.branches_left),
            rescales_taken=rescales is not None and not rescales.taken,
            rescales_skipped=rescales is not None and not rescales.skipped,
            several_tiles=tiles is not None and not tiles.several,
            single_tile=tiles is not None and not tiles.single,
        )

    def summary(self) -> str:
        """Summarise it in a line."""
        coverage = self.coverage
        parts = [
            f"rings wrapped twice: {self.num_wrapped} of {len(self.rings)}",
            f"branches both ways: {coverage.num_covered} of {len(coverage.branches)}",
            f"instructions run: {coverage.instructions - len(coverage.unrun)}"
            f" of {coverage.instructions}",
        ]
        if self.score_tiles:
            counts = ", ".join(f"{count} {kind}" for kind, count in self.score_tiles.items())
            parts.append(f"score tiles: {counts}")
        if self.rescales is not None:
            parts.append(f"rescales: {self.rescales.taken} taken, {self.rescales.skipped} skipped")
        if self.tiles is not None:
            several = "" if self.tiles.several else " (none took more than one)"
            parts.append(f"tiles a CTA: {self.tiles.least} to {self.tiles.most}{several}")
        if coverage.cancelled:
            parts.append(f"clusters cancelled: {coverage.cancelled}")
        return "; ".join(parts)

    def ring_gaps(self) -> Iterator[str]:
        """Say which rings did not wrap twice."""
        for ring in self.rings_left:
            slots = f"{ring.slots} slots" if ring.slots > 1 else "1 slot"
            yield (
                f"ring {ring.name} ({slots}) did not wrap twice: a slot completed {ring.phases} "
                f"phases, {WRAPPED_TWICE} are required"
            )

    def work_gaps(self) -> Iterator[str]:
        """Say which kind of work was always, or never, done."""
        yield from self.rescale_gaps()
        yield from self.tile_gaps()

    def rescale_gaps(self) -> Iterator[str]:
        """Say whether lazy rescaling was always done, or never."""
        wanted = self.wanted
        if wanted.rescales_taken and wanted.rescales_skipped:
            yield "no block reached the branch that decides on rescaling"
        elif wanted.rescales_taken:
            yield "rescaling was never taken: errors in it would not show"
        elif wanted.rescales_skipped:
            yield "rescaling was never skipped: it was taken at every block"

    def tile_gaps(self) -> Iterator[str]:
        """Say whether CTAs took one tile each, or all of them more."""
        wanted = self.wanted
        if wanted.several_tiles:
            yield "no CTA took more than one tile: errors between tiles would not show"
        if wanted.single_tile:
            yield "every CTA took more than one tile"

    def instruction_gaps(self) -> Iterator[str]:
        """Say which instructions did not run, those of one place together."""
        for place, count in Counter(map(self.place_of, self.not_run)).items():
            yield f"{counted(count, 'instruction')} not run: {place}"

    def branch_gaps(self) -> Iterator[str]:
        """Say which branches did not go both ways, copies of one place together."""
        places: dict[tuple[str, str], list[BranchCoverage]] = {}
        for one in self.branches_left:
            if one.choice:
                always = "always gave the same value" if one.reached else "decided nothing"
                how = f"{CHOICES[one.choice]} that {always}"
            elif one.only_rounds:
                how = "loop that was always entered"
            elif one.reached:
                how = "branch always the same way"
            else:
                how = "branch that was not reached"
            places.setdefault((how, self.place_of(one.line, one.where)), []).append(one)
        for (how, place), found in places.items():
            roles = sorted({role for one in found for role in one.roles})
            who = f" [{', '.join(roles)}]" if roles else ""
            copies = f" ({len(found)} copies)" if len(found) > 1 else ""
            yield f"{how}{copies}{who}: {place}"

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        coverage = self.coverage
        return {
            "summary": self.summary(),
            "whole": self.whole,
            "rings": [
                {
                    "name": ring.name,
                    "slots": ring.slots,
                    "phases": ring.phases,
                    "wrapped_twice": ring.wrapped_twice,
                }
                for ring in self.rings
            ],
            "branches": len(coverage.branches),
            "branches_both_ways": coverage.num_covered,
            "instructions": coverage.instructions,
            "instructions_run": coverage.instructions - len(coverage.unrun),
            "instructions_unreachable": self.reasons,
            "clusters_cancelled": coverage.cancelled,
            "named_barriers": list(coverage.named),
            "score_tiles": dict(self.score_tiles),
            "rescales": None if self.rescales is None else asdict(self.rescales),
            "tiles_a_cta": None
            if self.tiles is None
            else {**asdict(self.tiles), "several": self.tiles.several},
            "work_not_seen": list(self.work_gaps()),
            "rings_not_wrapped": list(self.ring_gaps()),
            "instructions_not_run": list(self.instruction_gaps()),
            "not_reached": list(self.branch_gaps()),
        }

    def place_of(self, line: int, where: str = "") -> str:
        """Write the source of a line of PTX; ``where`` it is not known."""
        place = self.places.get(line)
        return where or f"PTX line {line}" if place is None else str(place)


def rings_of(plan: KernelPlan, coverage: Coverage) -> tuple[Ring, ...]:
    """Return the rows of the plan's barrier table with the phases that their slots completed."""
    phases = {one.name: one.phases for one in coverage.barriers}
    return tuple(
        Ring(
            row.name,
            row.slots,
            min(phases.get(f"{row.name}[{slot}]", 0) for slot in range(row.slots)),
        )
        for row in plan.barriers
    )


def add_counts(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums by key."""
    total: dict[str, int] = {}
    for one in counts:
        for kind, count in one.items():
            total[kind] = total.get(kind, 0) + count
    return total
