"""The division of a problem's query rows into tiles for CTAs: integer arithmetic only.

The kernel accepts any split that covers the rows; the choice here only decides the speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import GROUP_L2_BYTES
from fa4gen.designs.common.rings import given_tile_bytes

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

WARPGROUP_ROWS = 64
FULL_TILE_COST = 4
SHORT_TILE_COST = 3
"""A tile of two warpgroups takes about three quarters of the time of one of three: measured."""
MAX_SHORT_TILES = 256
"""More short tiles per head than this do not improve the balance, and cost host time to try."""
INT32_MAX = 2**31 - 1
BLOCKS_OF_WORD = 32
WORD_BYTES = 16
"""The bits of 32 blocks of keys: a word for each of up to three warpgroups, and one for all."""


@dataclass(frozen=True)
class ProblemSize:
    """Extents of one attention problem; all heads are query heads unless named otherwise."""

    batch: int
    query_heads: int
    heads_per_key_head: int
    query_rows: int
    key_rows: int

    def in_tiles_of(self, heads: int) -> ProblemSize:
        """Return the problem with ``heads`` query heads of a key head joined to one longer head."""
        if heads == 1:
            return self
        return ProblemSize(
            self.batch,
            self.query_heads // heads,
            max(1, self.heads_per_key_head // heads),
            self.query_rows * heads,
            self.key_rows,
        )

    @property
    def all_heads(self) -> int:
        """Query heads of all batches."""
        return self.batch * self.query_heads


@dataclass(frozen=True)
class Schedule:
    """The kernel's parameters that describe its tiles, and the number of CTAs."""

    num_short_tiles: int
    """Tiles at the front of a head that leave the last warpgroup out."""
    tiles_per_head: int
    heads_per_group: int
    """Query heads that are processed before the next group begins."""
    num_tiles: int
    """The tiles of all heads."""
    grid: int
    """CTAs; 0 when there is nothing to do."""
    largest_count: int
    """The largest number that the kernel counts to in 32 bits, the multiprocessors left out."""
    group_keys: int = 0
    """Keys of all heads of a group together, where sequences have groups of their own."""


NOTHING = Schedule(0, 0, 1, 0, 0, 0)
"""The schedule of a problem without a query row."""


def plan_schedule(plan: AttentionPlan, size: ProblemSize, multiprocessors: int) -> Schedule:
    """Divide and order the tiles of a problem for a GPU with that number of multiprocessors."""
    if plan.splits_keys:
        return _line_schedule(plan, size, multiprocessors)
    if plan.takes_blocks:
        return _given_schedule(plan, size, multiprocessors)
    if plan.tile_list is not None:
        return _ragged_schedule(plan, plan.tile_list.tile_rows, size, multiprocessors)
    return _schedule(
        size.in_tiles_of(plan.tile_heads),
        multiprocessors,
        BM=plan.BM,
        mixed_tile_heights=plan.mixed_tile_heights,
        cta_group=plan.cta_group,
        ctas_per_tile=plan.ctas_per_tile,
        in_order=plan.mask.IN_ORDER,
        grouped=in_groups(plan),
        key_head_row_bytes=(plan.depth + plan.value_depth) * plan.element_bytes,
    )


def _ragged_schedule(
    plan: AttentionPlan, tile_rows: int, size: ProblemSize, multiprocessors: int
) -> Schedule:
    """Return the most tiles that the sequences can have: only the GPU knows their lengths.

    ``size`` has the rows of all sequences; ``tiles_per_head`` are entries of the list.
    """
    if not size.all_heads or not size.query_rows:
        return NOTHING
    entries = ceil_div(size.query_rows, tile_rows) + size.batch
    tiles = entries * size.query_heads * plan.tiles_per_cluster
    grid = min(resident_ctas(multiprocessors, plan.cta_group), tiles * plan.ctas_per_tile)
    return Schedule(0, entries, 1, tiles, grid, tiles, plan.group_keys)


def _most_given_tiles(plan: AttentionPlan, size: ProblemSize) -> int:
    """Return the most tiles of a key head: each has 64 rows of one head for each warpgroup."""
    units, warpgroups = ceil_div(size.query_rows, WARPGROUP_ROWS), plan.BM // WARPGROUP_ROWS
    if plan.is_ragged:  # a sequence may end within 64 rows, and within a tile
        units = size.heads_per_key_head * (units + size.batch)
        return ceil_div(units, warpgroups) + size.batch
    return size.batch * ceil_div(size.heads_per_key_head * units, warpgroups)


def _given_schedule(plan: AttentionPlan, size: ProblemSize, multiprocessors: int) -> Schedule:
    """Return the most tiles of a call that names its blocks."""
    if not size.all_heads or not size.query_rows:
        return NOTHING
    tiles = _most_given_tiles(plan, size)
    num_tiles = tiles * (size.query_heads // size.heads_per_key_head)
    grid = min(multiprocessors, num_tiles)
    count = given_list_bytes(plan, size) // 4
    return Schedule(0, tiles, 1, num_tiles, grid, count)


def given_list_bytes(plan: AttentionPlan, size: ProblemSize) -> int:
    """Return the bytes of the list of a call that names its blocks: tiles, then their bits."""
    if not size.all_heads or not size.query_rows:
        return 0
    key_heads = size.query_heads // size.heads_per_key_head
    words = ceil_div(ceil_div(size.key_rows, plan.BN), BLOCKS_OF_WORD)
    tile_bytes = given_tile_bytes(plan.config) + WORD_BYTES * words
    return key_heads * _most_given_tiles(plan, size) * tile_bytes


def _line_schedule(plan: AttentionPlan, size: ProblemSize, multiprocessors: int) -> Schedule:
    """Return the shares of the line of all blocks, for a kernel whose CTAs share a tile's keys.

    ``tiles_per_head`` are the tiles of a key head; ``num_tiles`` is the most blocks of the line, or
    splits of several. The kernel counts the line in units of fewer keys than a block.
    """
    if not size.all_heads or not size.query_rows:
        return NOTHING
    packed_rows = size.heads_per_key_head * size.query_rows
    tiles = ceil_div(packed_rows, plan.BM)
    first, _ = plan.mask.bounds(size.key_rows - size.query_rows, size.key_rows)
    first = 0 if plan.key_lengths else max(0, first)
    blocks = max(1, ceil_div(size.key_rows, plan.BN) - first // plan.BN)
    splits = ceil_div(blocks, plan.line_step)
    all_tiles = size.all_heads // size.heads_per_key_head * tiles
    line = all_tiles * splits
    places = max(1, ceil_div(size.key_rows, plan.line_keys) - first // plan.line_keys)
    count = max(all_tiles * places + plan.BN // plan.line_keys, packed_rows + 4 * plan.BM)
    cluster = plan.launch.cluster
    resident = resident_ctas(multiprocessors, cluster)
    shares = ceil_div(line * plan.ctas_per_tile, cluster) * cluster
    grid = min(resident, plan.most_ctas, shares)
    return Schedule(0, tiles, 1, line, grid, count)


def in_groups(plan: AttentionPlan) -> bool:
    """Whether heads are processed in groups whose keys and values fit L2 together."""
    return plan.longest_first


@lru_cache(maxsize=1024)
def _schedule(
    size: ProblemSize,
    multiprocessors: int,
    *,
    BM: int,  # noqa: N803 (the config's word)
    mixed_tile_heights: bool,
    cta_group: int,
    ctas_per_tile: int,
    in_order: bool,
    grouped: bool,
    key_head_row_bytes: int,
) -> Schedule:
    if not size.all_heads or not size.query_rows:
        return NOTHING
    short = 0
    if mixed_tile_heights:
        short = (
            least_padding(size.query_rows, BM)
            if in_order
            else least_makespan(size.query_rows, BM, size.all_heads, multiprocessors)
        )
    covered = short * (BM - WARPGROUP_ROWS)
    tiles = short + ceil_div(max(0, size.query_rows - covered), BM)
    tiles_at_once = cta_group // ctas_per_tile
    tiles = ceil_div(tiles, tiles_at_once) * tiles_at_once
    num_tiles = tiles * size.all_heads
    group = 1
    if grouped:
        bytes_per_head = key_head_row_bytes * size.key_rows // size.heads_per_key_head
        group = heads_per_group(size.all_heads, bytes_per_head)
    return Schedule(
        num_short_tiles=short,
        tiles_per_head=tiles,
        heads_per_group=group,
        num_tiles=num_tiles,
        grid=min(resident_ctas(multiprocessors, cta_group), num_tiles * ctas_per_tile),
        largest_count=num_tiles,
    )


def resident_ctas(multiprocessors: int, cta_group: int) -> int:
    """CTAs that run at once: whole clusters, and one also where no multiprocessor pair is left."""
    clusters = multiprocessors // cta_group
    if cta_group > 2:  # the hardware's groups of multiprocessors are not multiples of four
        clusters -= clusters // 11
    return max(1, clusters) * cta_group


def ceil_div(a: int, b: int) -> int:
    """Divide, rounding up."""
    return -(-a // b)


def full_tiles(rows: int, tile_rows: int, short: int) -> int:
    """Full tiles that a head needs in addition to ``short`` short ones."""
    return ceil_div(max(0, rows - short * (tile_rows - WARPGROUP_ROWS)), tile_rows)


def short_tile_candidates(rows: int, tile_rows: int) -> range:
    """Numbers of short tiles that are worth a try: none of them may be entirely past the end."""
    return range(min(ceil_div(rows, tile_rows - WARPGROUP_ROWS), MAX_SHORT_TILES) + 1)


def least_padding(rows: int, tile_rows: int) -> int:
    """Short tiles that leave the fewest rows of the last tile empty; the fewest of them.

    Where later rows see more keys the tiles differ in length anyway, and longest-first order evens
    them out.
    """

    def padded_rows(short: int) -> int:
        short_rows = short * (tile_rows - WARPGROUP_ROWS)
        return short_rows + full_tiles(rows, tile_rows, short) * tile_rows

    return min(
        short_tile_candidates(rows, tile_rows), key=lambda short: (padded_rows(short), short)
    )


def least_makespan(rows: int, tile_rows: int, heads: int, workers: int) -> int:
    """Return how many short tiles let the last CTA end first, if all tiles see the same keys."""

    def cost(short: int) -> tuple[int, int]:
        full = full_tiles(rows, tile_rows, short)
        return makespan(full * heads, short * heads, workers), short

    return min(short_tile_candidates(rows, tile_rows), key=cost)


def makespan(full: int, short: int, workers: int) -> int:
    """Time until the last worker ends; each takes the next tile once free, full ones first."""
    rounds, ahead = divmod(full, workers)
    done = rounds * FULL_TILE_COST + (FULL_TILE_COST if ahead else 0)
    if not short:
        return done
    # `ahead` workers start on the short tiles one full tile later than the rest. Find the least
    # time after the full rounds in which all of them together finish `short` tiles.
    on_time = workers - ahead
    if short <= on_time:
        return max(done, rounds * FULL_TILE_COST + SHORT_TILE_COST)
    # Without rounding this would be the time; with it, a few steps more.
    extra = ceil_div(SHORT_TILE_COST * short + FULL_TILE_COST * ahead, workers)
    extra = max(extra, FULL_TILE_COST)
    while (
        on_time * (extra // SHORT_TILE_COST)
        + ahead * (max(0, extra - FULL_TILE_COST) // SHORT_TILE_COST)
        < short
    ):
        extra += 1
    return max(done, rounds * FULL_TILE_COST + extra)


def heads_per_group(all_heads: int, bytes_per_head: int) -> int:
    """Query heads whose keys and values fit L2 together: a power of two, or all heads."""
    group = 1
    while group < all_heads and 2 * group * bytes_per_head <= GROUP_L2_BYTES:
        group *= 2
    return min(group, all_heads)
