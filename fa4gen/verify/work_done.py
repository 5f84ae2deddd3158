"""Counts of the work of launches: tiles that CTAs took, rescales done and skipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.emulator.coverage.counts import Coverage


@dataclass(frozen=True)
class Tiles:
    """Tiles that a CTA worked on: the ``least`` and the ``most`` that any CTA of a launch did."""

    least: int
    most: int

    @property
    def several(self) -> bool:
        """Whether a CTA took more than one."""
        return self.most > 1

    @property
    def single(self) -> bool:
        """Whether a CTA took no more than one."""
        return self.least <= 1

    def __or__(self, other: Tiles) -> Tiles:
        return Tiles(min(self.least, other.least), max(self.most, other.most))


@dataclass(frozen=True)
class Rescales:
    """Lazy rescaling: blocks at which a warp rescaled its rows, ``taken``, and at which it did not.

    Sums over cases, for each the run with the most.
    """

    taken: int
    skipped: int


def attention_tiles(coverage: Coverage) -> Tiles | None:
    """Return the tiles that passed through their ring; None where no launch had it.

    The last message marks the end.
    """
    use = coverage.use_of("tile_full")
    return None if use is None else Tiles(max(use.least - 1, 0), max(use.most - 1, 0))


def gemm_tiles(plan: GemmPlan, coverage: Coverage, k: int) -> Tiles | None:
    """Return the tiles that CTAs worked on; None where no barrier shows it.

    The rings of the output's panels show it, if the kernel has them. Else tiles are passed through
    a ring, except for the first, and the last message marks the end; without that ring each tile
    has its accumulator, unless ``k``, the depth, is 0.
    """
    if plan.output_rings:
        panels = plan.panels_per_ring
        uses = [coverage.use_of(name) for name in plan.output_rings]
        found = [Tiles(use.least // panels, use.most // panels) for use in uses if use is not None]
        if plan.tile_per_ring and found:
            return Tiles(sum(one.least for one in found), sum(one.most for one in found))
        return reduce(Tiles.__or__, found) if found else None
    use = coverage.use_of("tile_full")
    if use is None and k > 0:
        use = coverage.use_of("accum_full")
    return None if use is None else Tiles(use.least, use.most)


def rescales_of(plan: AttentionPlan, coverages: Iterable[Coverage]) -> Rescales | None:
    """Return how often warps rescaled; None for a kernel that rescales at every block."""
    if not plan.votes_on_rescaling:
        return None
    votes = [vote for one in coverages for vote in one.votes]
    return Rescales(sum(vote.taken for vote in votes), sum(vote.skipped for vote in votes))
