"""The predicted time of attention forward, from the plan and the problem: no GPU, no compiler.

A block of keys takes the tensor cores' time for both products plus the exposed part of its softmax:
the fewer consumer warpgroups, the less of it is under the others' products. A tile has its blocks,
and a beginning whose loads slots of the ring hide. Tiles go to multiprocessors in order; bytes from
L2 and memory overlap with that work, by a power mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.runtime.schedule import least_padding
from fa4gen.tune.model.prediction import Prediction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.masks.mask import Mask
    from fa4gen.tune.model.chips import AttentionCosts, Chip

    Counts = NDArray[np.int64]
    Numbers = NDArray[np.float64]

WARPGROUP_ROWS = 64
"""Rows of a consumer warpgroup."""
SHARED_KEYS = 64
"""The keys per which the wait of a pair is counted."""


@dataclass(frozen=True)
class AttentionProblem:
    """Extents of one launch: sequences of one length each, query and key heads."""

    batch: int
    heads: int
    key_heads: int
    rows: int
    keys: int


@dataclass(frozen=True)
class AttentionTile:
    """The model's view of a kernel."""

    BM: int
    BN: int
    depth: int
    value_depth: int
    mask: Mask
    num_kv_stages: int
    warpgroups: int
    tile_heads: int = 1
    cta_group: int = 1
    ctas_per_tile: int = 1
    element_bytes: int = 2
    out_bytes: int = 2
    dynamic: bool = True
    mixed_heights: bool = False
    overlaps_epilogue: bool = False

    @classmethod
    def of(cls, plan: AttentionPlan) -> AttentionTile:
        """Return the tile of ``plan``."""
        return cls(
            BM=plan.BM,
            BN=plan.BN,
            depth=plan.depth,
            value_depth=plan.value_depth,
            mask=plan.mask,
            num_kv_stages=plan.num_kv_stages,
            warpgroups=getattr(plan, "num_consumer_warpgroups", 2),
            tile_heads=plan.tile_heads,
            cta_group=plan.cta_group,
            ctas_per_tile=plan.ctas_per_tile,
            element_bytes=plan.element_bytes,
            out_bytes=plan.out_element_bytes,
            dynamic=plan.scheduler == "dynamic",
            mixed_heights=plan.mixed_tile_heights and plan.BM > WARPGROUP_ROWS,
            overlaps_epilogue=bool(getattr(plan, "overlap_epilogue", False)),
        )

    @property
    def is_shared(self) -> bool:
        """Whether the two CTAs of a pair work on tiles of their own and share keys and values."""
        return self.cta_group == 2 and self.ctas_per_tile == 1

    @property
    def columns(self) -> int:
        """Columns of keys and values together."""
        return self.depth + self.value_depth


def predict_attention(tile: AttentionTile, problem: AttentionProblem, chip: Chip) -> Prediction:
    """Return the time that a launch of ``tile`` should take, with its parts."""
    costs = chip.attention
    # Heads that share tiles are one here, which has the rows of them all.
    heads, rows = problem.batch * problem.heads // tile.tile_heads, tile.tile_heads * problem.rows
    blocks = tile_blocks(tile.mask, tile.BM, tile.BN, problem.rows, problem.keys, tile.tile_heads)
    if tile.is_shared:  # both work until the longer one is done
        blocks = blocks.of_pairs()
    tiles = heads * len(blocks)
    ctas = tiles * tile.ctas_per_tile
    cluster = tile.cta_group
    resident = chip.resident(cluster)
    times = _tile_cycles(tile, blocks, chip)
    short = least_padding(rows, tile.BM) if tile.mixed_heights else 0
    cycles = _makespan(tile, times, heads, resident, short, costs)
    filled = min(1.0, ctas / resident)
    us = cycles / costs.ghz / 1e3
    multiply = us * (1 + costs.droop * filled * min(1.0, us / costs.droop_us))
    loaded = int(blocks.loaded.sum()) * tile.BN
    requested = loaded / (1 + tile.is_shared) + rows
    read = heads * tile.columns * tile.element_bytes * requested
    l2 = read / min(ctas, resident) / costs.l2 / 1e3 if ctas else 0.0
    moved = problem.batch * problem.key_heads * problem.keys * tile.columns * tile.element_bytes
    moved += heads * rows * (tile.depth * tile.element_bytes + tile.value_depth * tile.out_bytes)
    memory = moved / costs.memory / 1e6
    p = costs.overlap
    return Prediction(
        launch_us=costs.launch,
        multiply_us=multiply,
        l2_us=l2,
        memory_us=memory,
        overlapped_us=(multiply**p + l2**p + memory**p) ** (1 / p),
        epilogue_us=0.0,
        waves=-(-ctas // resident),
        tiles=tiles,
        ctas=ctas,
        resident=resident,
        l2_bytes=int(read),
        memory_bytes=moved,
    )


@dataclass(frozen=True)
class Blocks:
    """Blocks of keys of each tile of a head: loaded ones, and those that its warpgroups compute."""

    loaded: Counts
    whole: Numbers
    """Blocks that all rows of a warpgroup see: the mean over the tile's warpgroups."""
    partly: Numbers
    """Blocks that some rows of a warpgroup do not see."""

    def __len__(self) -> int:
        return len(self.loaded)

    def of_pairs(self) -> Blocks:
        """Return both tiles of each pair as the one that loads more; a last one alone is paired."""
        first = np.arange(0, len(self), 2)
        second = np.minimum(first + 1, len(self) - 1)
        longer = np.where(self.loaded[second] > self.loaded[first], second, first).repeat(2)
        return Blocks(self.loaded[longer], self.whole[longer], self.partly[longer])


@lru_cache(maxsize=256)
def tile_blocks(
    mask: Mask,
    BM: int,  # noqa: N803
    BN: int,  # noqa: N803
    rows: int,
    keys: int,
    heads: int = 1,
) -> Blocks:
    """Return the blocks of each tile of a head, or of ``heads`` heads that share tiles.

    A warpgroup of 64 rows computes the blocks between the ends of its first and of its last row;
    tests within them are not counted.
    """
    shift, queries, per_warpgroup = keys - rows, BM // heads, WARPGROUP_ROWS // heads
    starts = np.arange(0, rows, queries)[:, None]
    steps = np.arange(0, queries, per_warpgroup)
    last_steps = (np.minimum(queries, rows - starts) - 1) // per_warpgroup * per_warpgroup
    groups = starts + np.minimum(steps, last_steps)
    last_rows = np.minimum(groups + per_warpgroup, rows) - 1
    begin, end, whole = _seen(mask, BN, shift, groups, last_rows, keys)
    loaded = np.maximum(0, end.max(axis=1) - begin.min(axis=1))
    has_rows = steps <= last_steps  # a warpgroup without rows computes nothing
    warpgroups = BM / WARPGROUP_ROWS
    wholes = (whole * has_rows).sum(axis=1) / warpgroups
    seen = ((end - begin) * has_rows).sum(axis=1) / warpgroups
    return Blocks(loaded, wholes, seen - wholes)


def _seen(
    mask: Mask,
    BN: int,  # noqa: N803
    shift: int,
    first_rows: Counts,
    last_rows: Counts,
    keys: int,
) -> tuple[Counts, Counts, Counts]:
    """Return the first block that rows see and one past the last, and how many all rows see."""
    first, end = (np.clip(bound, 0, keys) for bound in mask.bounds(first_rows + shift, keys))
    last_first, last_end = (
        np.clip(bound, 0, keys) for bound in mask.bounds(last_rows + shift, keys)
    )
    low, high = np.minimum(first, last_first), np.maximum(end, last_end)
    inner_end = np.minimum(end, last_end)
    inner_high = np.where(inner_end == keys, -(-inner_end // BN), inner_end // BN)
    whole = np.maximum(0, inner_high - -(-np.maximum(first, last_first) // BN))
    sees = high > low
    return np.where(sees, low // BN, 0), np.where(sees, -(-high // BN), 0), np.where(sees, whole, 0)


def _tile_cycles(tile: AttentionTile, blocks: Blocks, chip: Chip) -> Numbers:
    """Return the cycles of each tile of a head."""
    costs = chip.attention
    elements = tile.BM * tile.BN
    products = elements * tile.columns * tile.element_bytes / chip.products / 128
    products /= tile.ctas_per_tile
    softmax = elements * costs.softmax / tile.ctas_per_tile
    block = products + costs.exposed * softmax / _power(tile.warpgroups, costs.hiding) + costs.block
    if tile.num_kv_stages == 1:  # nothing is loaded ahead
        block += costs.unbuffered
    late = costs.late / tile.num_kv_stages**2
    alike = costs.tile * (costs.overlapped_tile if tile.overlaps_epilogue else 1.0)
    alike += costs.row * tile.BM * tile.columns / tile.warpgroups
    begin = alike + costs.counter * tile.dynamic + costs.loaded * blocks.loaded
    if tile.is_shared:
        begin += costs.pair * blocks.loaded * tile.BN / SHARED_KEYS
        begin += costs.pair_masked * (blocks.loaded - blocks.whole)
    return begin + late + (blocks.whole + blocks.partly * costs.partly) * block


def _makespan(
    tile: AttentionTile,
    times: Numbers,
    heads: int,
    resident: int,
    short: int,
    costs: AttentionCosts,
) -> float:
    """Return the cycles until the last multiprocessor is done with the tiles of all heads.

    The first ``short`` tiles of a head are lower than the others, and come after those of all.
    """
    ctas = heads * len(times) * tile.ctas_per_tile
    if not ctas:
        return 0.0
    longest, shortest = float(times.max()), float(times.min())
    even = float(times.sum()) * heads * tile.ctas_per_tile / min(ctas, resident)
    if longest - shortest < 0.05 * longest:  # equal tiles: whole waves
        waves = -(-ctas // resident)
        step = 1 / 3 if tile.mixed_heights and waves > 1 else 1.0
        return max(longest, -(-(ctas / resident) // step) * step * longest)
    if tile.dynamic and ctas <= resident:  # all begin at once
        return longest
    if tile.dynamic:
        return max(longest, even + costs.tail * shortest)
    units = times[::2] if tile.is_shared else times
    clusters = resident // tile.cta_group
    first = busiest_cluster(units[short:], heads, clusters)
    return first + float(units[:short].sum()) * heads / clusters


def busiest_cluster(times: Numbers, heads: int, clusters: int) -> float:
    """Return the cycles of the cluster with the most work, where tiles come in a fixed order.

    Tiles go head by head to one cluster after the other: cluster c has the tiles c, c + clusters, c
    + 2 * clusters and so on, so that some may always get the long ones of a head. Within a head,
    ``times`` being those of its tiles, a cluster's tiles recur after ``len(times) / gcd`` of them.
    """
    length = len(times)
    count = heads * length
    if not count:
        return 0.0
    kinds = math.gcd(length, clusters)
    period = length // kinds
    # cycles[kind, step]: the tile of a head after step turns of the cluster that begins with kind
    cycles = (np.arange(kinds)[:, None] + np.arange(period) * (clusters % length)) % length
    turn = np.empty(length, np.int64)
    turn[cycles] = np.arange(period)
    ordered = times[cycles]
    sums = np.cumsum(np.concatenate([ordered, ordered], axis=1), axis=1)
    sums = np.concatenate([np.zeros((kinds, 1)), sums], axis=1)
    first = np.arange(min(clusters, count))
    has = -(-(count - first) // clusters)
    rounds, rest = has // period, has % period
    kind, begin = first % length % kinds, turn[first % length]
    work = rounds * sums[kind, period] + sums[kind, begin + rest] - sums[kind, begin]
    return float(work.max())


def _power(base: float, exponent: float) -> float:
    return float(base**exponent)
