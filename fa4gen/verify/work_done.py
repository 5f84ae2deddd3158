"""Counts of the work of launches: tiles that CTAs took, rescales done and skipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from fa4gen.designs.shared.gemm_model import GemmPlan, HopperGemmPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.emulator.coverage.counts import Coverage

MMA_ROWS = 64
"""Rows of a wgmma: a warpgroup writes its rows of a tile in groups of so many."""


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
    """Return the tiles that passed through the ring for them; None where no launch had it.

    The last message says that there are no more.
    """
    use = coverage.use_of("tile_full")
    return None if use is None else Tiles(max(use.least - 1, 0), max(use.most - 1, 0))


def gemm_tiles(plan: GemmPlan, coverage: Coverage, k: int) -> Tiles | None:
    """Return the tiles that CTAs worked on; None where no barrier shows it.

    On Hopper panels of a tile pass through the rings to the transfer warps. On Blackwell tiles are
    passed through a ring, except for the first, and the last message says that there are no more;
    without that ring each tile has its accumulator, unless ``k``, the depth, is 0.
    """
    if isinstance(plan, HopperGemmPlan):
        panels = plan.warpgroup_rows // MMA_ROWS * (plan.BN // plan.out_panel_columns)
        uses = [coverage.use_of(f"epi{i}_ready") for i in range(plan.num_consumer_warpgroups)]
        found = [Tiles(use.least // panels, use.most // panels) for use in uses if use is not None]
        if plan.ping_pong and found:  # each warpgroup has tiles of its own
            return Tiles(sum(one.least for one in found), sum(one.most for one in found))
        return reduce(Tiles.__or__, found) if found else None
    use = coverage.use_of("tile_full")
    if use is None and k > 0:
        use = coverage.use_of("accum_full")
    return None if use is None else Tiles(use.least, use.most)


def rescales_of(plan: AttentionPlan, coverages: Iterable[Coverage]) -> Rescales | None:
    """Return how often warps rescaled; None for a kernel that rescales at every block."""
    if not rescales_lazily(plan):
        return None
    votes = [vote for one in coverages for vote in one.votes]
    return Rescales(sum(vote.taken for vote in votes), sum(vote.skipped for vote in votes))


def rescales_lazily(plan: AttentionPlan) -> bool:
    """Whether warps vote on rescaling: on Blackwell all do, on Hopper above a threshold."""
    return plan.rescale_threshold > 0 or not plan.arch.startswith("sm_90")
