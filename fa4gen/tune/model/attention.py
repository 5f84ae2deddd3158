"""What attention forward should take, from the plan and the problem: no GPU, no compiler.

A block of keys takes the tensor cores' time for both products, and what its softmax adds to that:
the fewer consumer warpgroups, the less of it is under the others' products. A tile has its blocks,
and a beginning whose loads slots of the ring hide. Tiles go to multiprocessors in order; bytes from
L2 and memory overlap with that work, by a power mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fa4gen.runtime.schedule import least_padding
from fa4gen.tune.model.prediction import Prediction

if TYPE_CHECKING:
    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.masks.mask import Mask
    from fa4gen.tune.model.chips import AttentionCosts, Chip

WARPGROUP_ROWS = 64
"""Rows of a consumer warpgroup."""
SHARED_KEYS = 64
"""Keys that what a pair waits for is counted for."""


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
    """What the model has to know of a kernel."""

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
            mixed_heights=plan.mixed_tile_heights,
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
        pairs = [blocks[i : i + 2] for i in range(0, len(blocks), 2)]
        longer = (max(pair, key=lambda one: one.loaded) for pair in pairs)
        blocks = tuple(one for one in longer for _ in range(2))
    tiles = heads * len(blocks)
    ctas = tiles * tile.ctas_per_tile
    cluster = tile.cta_group
    resident = chip.resident(cluster)
    times = [_tile_cycles(tile, one, chip) for one in blocks]
    total = sum(times) * heads * tile.ctas_per_tile
    short = least_padding(rows, tile.BM) if tile.mixed_heights else 0
    cycles = _makespan(tile, times, total, ctas, resident, short, costs)
    filled = min(1.0, ctas / resident)
    us = cycles / costs.ghz / 1e3
    multiply = us * (1 + costs.droop * filled * min(1.0, us / costs.droop_us))
    loaded = sum(one.loaded for one in blocks) * tile.BN
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
    """Blocks of keys of a tile: those that are loaded, and what its warpgroups compute of them."""

    loaded: int
    whole: float
    """That all rows of a warpgroup see: the mean over its warpgroups."""
    partly: float
    """That some rows of a warpgroup do not see."""


@lru_cache(maxsize=256)
def tile_blocks(
    mask: Mask,
    BM: int,  # noqa: N803
    BN: int,  # noqa: N803
    rows: int,
    keys: int,
    heads: int = 1,
) -> tuple[Blocks, ...]:
    """Return the blocks of each tile of a head, or of so many that share tiles.

    A warpgroup of 64 rows computes the blocks between the ends of its first and of its last row;
    tests within them are not counted.
    """
    found = []
    shift, queries, per_warpgroup = keys - rows, BM // heads, WARPGROUP_ROWS // heads
    for start in range(0, rows, queries):
        groups = [
            _seen(mask, BN, shift, group, min(group + per_warpgroup, rows) - 1, keys)
            for group in range(start, min(start + queries, rows), per_warpgroup)
        ]
        begin, end = min(one[0] for one in groups), max(one[1] for one in groups)
        warpgroups = BM / WARPGROUP_ROWS  # those without rows compute nothing
        whole = sum(one[2] for one in groups) / warpgroups
        seen = sum(one[1] - one[0] for one in groups) / warpgroups
        found.append(Blocks(max(0, end - begin), whole, seen - whole))
    return tuple(found)


def _seen(
    mask: Mask,
    BN: int,  # noqa: N803
    shift: int,
    first_row: int,
    last_row: int,
    keys: int,
) -> tuple[int, int, int]:
    """Return the first block that rows see and one past the last, and how many all rows see."""
    first, end = (_clip(bound, keys) for bound in mask.bounds(first_row + shift, keys))
    last_first, last_end = (_clip(bound, keys) for bound in mask.bounds(last_row + shift, keys))
    low, high = min(first, last_first), max(end, last_end)
    if high <= low:
        return 0, 0, 0
    inner_high = (
        -(-min(end, last_end) // BN) if min(end, last_end) == keys else min(end, last_end) // BN
    )
    whole = max(0, inner_high - -(-max(first, last_first) // BN))
    return low // BN, -(-high // BN), whole


def _tile_cycles(tile: AttentionTile, blocks: Blocks, chip: Chip) -> float:
    """Return the cycles of a tile."""
    costs = chip.attention
    elements = tile.BM * tile.BN
    products = elements * tile.columns * tile.element_bytes / chip.products / 128
    products /= tile.ctas_per_tile
    softmax = elements * costs.softmax / tile.ctas_per_tile
    block = products + costs.exposed * softmax / _power(tile.warpgroups, costs.hiding) + costs.block
    if tile.num_kv_stages == 1:  # nothing is loaded ahead
        block += costs.unbuffered
    late = costs.late / tile.num_kv_stages**2
    begin = costs.tile * (costs.overlapped_tile if tile.overlaps_epilogue else 1.0)
    begin += costs.row * tile.BM * tile.columns / tile.warpgroups
    begin += costs.counter * tile.dynamic + costs.loaded * blocks.loaded
    if tile.is_shared:
        begin += costs.pair * blocks.loaded * tile.BN / SHARED_KEYS
        begin += costs.pair_masked * (blocks.loaded - blocks.whole)
    return begin + late + (blocks.whole + blocks.partly * costs.partly) * block


def _makespan(
    tile: AttentionTile,
    times: list[float],
    total: float,
    ctas: int,
    resident: int,
    short: int,
    costs: AttentionCosts,
) -> float:
    """Return the cycles until the last multiprocessor is done.

    The first ``short`` tiles of a head are lower than the others, and come after those of all.
    """
    if not ctas:
        return 0.0
    longest, shortest = max(times), min(times)
    even = total / min(ctas, resident)
    if longest - shortest < 0.05 * longest:  # equal tiles: whole waves
        waves = -(-ctas // resident)
        step = 1 / 3 if tile.mixed_heights and waves > 1 else 1.0
        return max(longest, -(-(ctas / resident) // step) * step * longest)
    if tile.dynamic:
        return max(longest, even + costs.tail * shortest)
    heads = round(total / sum(times) / tile.ctas_per_tile)
    units = tuple(times[::2] if tile.is_shared else times)
    clusters = resident // tile.cta_group
    first = _fixed_order(units[short:], heads, clusters)
    return first + sum(units[:short]) * heads / clusters


@lru_cache(maxsize=256)
def _fixed_order(times: tuple[float, ...], heads: int, clusters: int) -> float:
    """Return the cycles of the cluster with the most work.

    Tiles go head by head to one cluster after the other, so that some may always get the long ones
    of a head.
    """
    count = heads * len(times)
    return max(
        (
            sum(times[place % len(times)] for place in range(first, count, clusters))
            for first in range(min(clusters, count))
        ),
        default=0.0,
    )


def _power(base: float, exponent: float) -> float:
    return float(base**exponent)


def _clip(bound: int, keys: int) -> int:
    return min(max(int(bound), 0), keys)
