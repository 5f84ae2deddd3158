"""The line of a problem whose CTAs share keys, and its division in a kernel (``line.cuh.j2``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_joins import threads_of_quad
from fa4gen.runtime.schedule import ProblemSize, ceil_div, plan_schedule
from fa4gen.verify.cases import MULTIPROCESSORS

if TYPE_CHECKING:
    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.verify.cases import Case

MOST_IDLE: Final = 16
"""The number of CTAs, for a kernel with this many shares of each tile, of which one may be idle."""


@dataclass(frozen=True)
class KernelLine:
    """The places of each tile, and the CTAs, or pairs of them, of which ``shares`` have a share."""

    tiles: tuple[int, ...]
    launched: int
    shares: int

    @cached_property
    def begins(self) -> tuple[int, ...]:
        """The places that shares begin at, and where the line ends."""
        share, longer = divmod(sum(self.tiles), self.shares)
        return tuple(i * share + min(i, longer) for i in range(self.shares + 1))

    @property
    def idle(self) -> bool:
        """Whether CTAs are launched that have no share."""
        return self.launched > self.shares

    @property
    def uneven(self) -> bool:
        """Whether some shares are a place longer than others."""
        return sum(self.tiles) % self.shares > 0

    @cached_property
    def pieces(self) -> tuple[int, ...]:
        """The number of shares of each tile."""
        found, at = [], 0
        for places in self.tiles:
            found.append(1 + sum(at < begin < at + places for begin in self.begins))
            at += places
        return tuple(found)


def line_of(plan: SharedKeysPlan, case: Case) -> KernelLine:
    """Return the line of a case that has rows."""
    heads = case.query_heads // case.key_heads
    size = ProblemSize(len(case.sequences), case.query_heads, heads, case.query_rows, case.key_rows)
    schedule = plan_schedule(plan, size, case.multiprocessors or MULTIPROCESSORS)
    paired = plan.launch.cluster > plan.cta_group and schedule.tiles_per_head % 2 == 0
    tiles_per_head = schedule.tiles_per_head >> paired
    places = [
        max(1, ceil_div(units_of(plan, rows, keys), plan.split_units or 1))
        for rows, keys in case.sequences
    ]
    tiles = [count for count in places for _ in range(case.key_heads * tiles_per_head)]
    launched = max(1, schedule.grid // plan.cta_group >> paired)
    if plan.split_blocks:
        return KernelLine(tuple(tiles), launched, min(launched, sum(tiles)))
    blocks = ceil_div(sum(tiles), plan.BN // plan.unit_keys)
    shares = min(launched, max(blocks, len(tiles)))
    if plan.values_in_keys:
        as_many = shares // len(tiles) * len(tiles)
        shares = as_many if as_many >= shares - shares // MOST_IDLE else shares
    return KernelLine(tuple(tiles), launched, shares)


def units_of(plan: SharedKeysPlan, rows: int, keys: int) -> int:
    """Return the units of which some row of a sequence sees a key."""
    first = max(0, int(plan.mask.bounds(keys - rows, keys)[0]))
    return ceil_div(keys, plan.unit_keys) - first // plan.unit_keys


def sharing(plan: SharedKeysPlan, rows: int, pieces: int) -> int:
    """Return the number of threads that join a quad of a tile with these packed rows and pieces."""
    quads = rows * plan.value_depth // 4
    items = ceil_div(quads, plan.ctas_per_tile * (1 if plan.split_blocks else pieces))
    return threads_of_quad(items, 1 << plan.log_consumer_threads, pieces)
