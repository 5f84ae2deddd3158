"""The predicted time of a matrix product, from its tile and the problem: no GPU, no compiler.

The time of a launch is its fixed cost, then the largest of four parts that overlap (the tensor
cores' work, reads through L2, the chip's reads and writes of memory, the latency that the ring's
slots do not cover), then parts that do not overlap: the consumers' stores between tiles and after
the last one, their reads of C, and with ``split_k`` the exchange of sums. The four are combined by
a power mean, since they do not overlap perfectly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.tune.model.prediction import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.bench.gemm_workload import GemmWorkload
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.tune.model.chips import Chip, GemmCosts

Begin = Literal["with a line", "in a line", "in a sector"]
SECTOR, LINE = 32, 128
"""Bytes of a sector and of a line of L2: rows that begin inside one cost more to read."""
BLOCK_BYTES = 128
"""The bytes along k of a swizzled panel: the unit of all times of a block."""
FEW_ROWS = (16, 32, 64)
"""BM with swapped operands where all rows are one tile."""
HALF_ROWS = 64
"""Rows of a wgmma: the most with swapped operands."""
DEEP = 5
"""The blocks in the ring above which rows that begin inside a line take longer, because the next
block needs the rest of the line; not seen with exchanged operands."""
MOST_DIVIDED = 66
"""The most tiles with k divided between two CTAs, where operands are exchanged for more than 64
rows."""
SCALED_FEW_ROWS = 128
"""With scales of blocks: rows up to which weights are read once."""
FEWEST_SLOTS = 0.3
MOST_READS = 3
"""The most times that weights are read from memory, however many row tiles there are."""


@dataclass(frozen=True)
class GemmTile:
    """The model's view of a kernel."""

    BM: int
    BN: int
    BK: int
    num_stages: int
    cta_group: int = 1
    split_k: int = 1
    swap_operands: bool = False
    element_bytes: float = 2
    """Bytes of an element of A and B; a half where two share a byte."""
    out_bytes: float = 2
    reads_c: bool = False
    """Whether C is a matrix."""
    evict_first: bool = False
    """Whether the weights are the first to be displaced from L2."""
    warpgroups: int = 2
    """Those that multiply and store."""
    ping_pong: bool = False
    """Whether each warpgroup has tiles of its own: one stores while another multiplies."""
    side_by_side: bool = False
    """Whether the tiles of a cluster's CTAs are side by side though no operands are exchanged."""
    grid_rows: int = 0
    """Rows of tiles of a cluster with CTAs that share both A and B; 0 where they share one of
    them."""
    output_slots: int = 3
    """Slots of a warpgroup for panels of the output."""
    output_in_ring: bool = False
    """Whether these are in the ring of A and B, which is filled again once a tile is stored."""
    scales: Literal["none", "block", "blocks", "lines"] = "none"
    """Scales of columns, where products of 128 of k are scaled and added: one for all of them, one
    for each of two blocks, or one for each column."""
    multiply_ahead: bool = False
    """Whether a warpgroup multiplies on while it adds."""

    @classmethod
    def of(cls, plan: GemmPlan) -> GemmTile:
        """Return the tile of ``plan``."""
        swaps = bool(getattr(plan, "swap_operands", False))
        shares_both = bool(getattr(plan, "shares_both", False))
        return cls(
            BM=plan.BM,
            BN=plan.BN,
            BK=plan.BK,
            num_stages=plan.num_stages,
            cta_group=plan.cta_group,
            split_k=plan.ctas_per_tile,
            swap_operands=swaps,
            element_bytes=plan.element_bytes / plan.elements_per_byte,
            out_bytes=plan.out_element_bytes / plan.out_elements_per_byte,
            reads_c=plan.c.is_matrix,
            evict_first=getattr(plan, "evict_first", "none") != "none",
            warpgroups=getattr(plan, "num_consumer_warpgroups", 1),
            ping_pong=bool(getattr(plan, "ping_pong", False)),
            side_by_side=bool(getattr(plan, "shares_a", False)) and not swaps and not shares_both,
            grid_rows=getattr(plan, "cluster_rows", 0) if shares_both else 0,
            output_slots=max(1, getattr(plan, "num_epi_stages", 1)),
            output_in_ring=bool(getattr(plan, "output_in_ring", False)),
            scales=_column_scales(plan, swaps),
            multiply_ahead=bool(getattr(plan, "multiply_ahead", False)),
        )

    @property
    def is_shared(self) -> bool:
        """Whether CTAs of different tiles share loads."""
        return self.cta_group > 1

    @property
    def cluster_rows(self) -> int:
        """The CTAs of a cluster with tiles one below the other: they share B."""
        return self.grid_rows or (1 if self.swap_operands or self.side_by_side else self.cta_group)

    @property
    def cluster_columns(self) -> int:
        """The CTAs of a cluster with tiles side by side: they share A."""
        return self.cta_group // self.cluster_rows

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return self.cta_group * self.split_k

    @property
    def loaded_rows(self) -> float:
        """Rows of A and columns of B that a CTA requests for each block along k."""
        return self.BM / self.cluster_columns + self.BN / self.cluster_rows

    def suits(self, problem: GemmWorkload) -> bool:
        """Whether to choose it for such a problem; its results are right for any.

        Tiles that were the fastest in none of the measured shapes, and are predicted worse than the
        rest, are not chosen: pairs of tiles of 64 rows, pairs of which one has no rows, a divided k
        where operands are not swapped (1.6 to 3 % faster in one of 13, up to half slower). For up
        to 64 rows swapped operands read the weights once; tiles that read both operands evict-first
        were 3 to 8 % behind these. Tiles of 64 rows took 1.23 to 1.31 times as long as predicted
        with 16 rows on an H200 (1.0 to 1.2 on an H100), with 32 rows 1.03: at most half of a tile's
        rows are empty, or it has 16 or 32.
        """
        if self.scales != "none":
            return self._suits_scales(problem)
        if self.swap_operands:
            if problem.m > HALF_ROWS:
                if self.split_k > 1:
                    tiles = _up(problem.m, self.BM) * _up(problem.n, self.BN) * problem.batch
                    return tiles <= MOST_DIVIDED
                return self._is_filled(problem)
            fits = problem.m <= self.BM <= 2 * max(problem.m, FEW_ROWS[0])
            return fits and self.BM in FEW_ROWS and not self.is_shared
        if self.split_k > 1 or not self._is_filled(problem):
            return False
        if self.cta_group == 2 and self.BM <= HALF_ROWS:
            return False
        return problem.m > HALF_ROWS or not self.evict_first

    def _suits_scales(self, problem: GemmWorkload) -> bool:
        """Whether to choose a tile with scales of blocks: as ``suits``.

        Measured: exchanged operands, whose columns have a scale each, were 25 % and more behind. A
        divided k and weights that leave L2 first are for few rows.
        """
        few = problem.m <= SCALED_FEW_ROWS
        fits = self.BM <= HALF_ROWS or problem.m > HALF_ROWS
        for_few = self.split_k > 1 or self.evict_first
        return not self.swap_operands and fits and (few or not for_few) and self._is_filled(problem)

    def _is_filled(self, problem: GemmWorkload) -> bool:
        """Whether a cluster has tiles for more than one row and more than one column of CTAs."""
        rows, columns = _up(problem.m, self.BM), _up(problem.n, self.BN)
        return min(2, self.cluster_rows) <= rows and min(2, self.cluster_columns) <= columns


def predict_gemm(tile: GemmTile, problem: GemmWorkload, chip: Chip) -> Prediction:
    """Return the time that a launch of ``tile`` should take, with its parts."""
    costs = chip.gemm
    n, k = problem.n, problem.k
    column_tiles = _up(_up(n, tile.BN), tile.cluster_columns) * tile.cluster_columns
    row_tiles = sum(
        number * _up(_up(rows, tile.BM), tile.cluster_rows) * tile.cluster_rows
        for rows, number in problem.heights.items()
    )
    tiles = row_tiles * column_tiles
    ctas = tiles * tile.split_k
    resident = chip.resident(tile.cluster)
    waves = _up(ctas, resident)
    block = int(BLOCK_BYTES / tile.element_bytes)
    blocks = _up(_up(k, block), tile.split_k)
    steps = waves * blocks
    filled = ctas / max(1, waves * resident)
    multiply = _multiply_us(tile, steps, filled, chip)
    requested = tile.loaded_rows * BLOCK_BYTES
    p = costs.overlap
    l2 = ctas / resident * blocks * requested / _l2_rate(tile, problem, costs) / 1e3
    latency = steps * costs.latency
    if rows_begin(tile, problem) == "in a sector":
        l2 = _mean((l2, steps * requested / costs.odd_alone / 1e3), p)
        latency *= costs.latency_odd
    moved, memory = _memory_us(tile, problem, filled, costs)
    slots = max(tile.num_stages - costs.held, FEWEST_SLOTS)
    latency /= slots * tile.BK / block
    overlapped = _mean((multiply, l2, memory, latency), p) * _scaled_share(tile, costs)
    exchange = costs.pair if tile.is_shared else 0.0
    if tile.grid_rows:
        exchange = costs.grid
    if tile.split_k > 1:
        overlapped *= 1 + costs.split_share * tile.BM * tile.BN / 16384
        exchange += costs.split
    return Prediction(
        launch_us=costs.launch,
        multiply_us=multiply,
        l2_us=l2,
        memory_us=memory,
        latency_us=latency,
        overlapped_us=overlapped,
        epilogue_us=_stores_us(tile, waves, costs),
        exchange_us=exchange,
        waves=waves,
        tiles=tiles,
        ctas=ctas,
        resident=resident,
        l2_bytes=int(blocks * ctas * requested),
        memory_bytes=int(moved),
    )


def _column_scales(plan: GemmPlan, swaps: bool) -> Literal["none", "block", "blocks", "lines"]:
    """Return the scales that a lane needs of a product's columns; Blackwell's cores apply them."""
    of_columns = plan.scales_of("a" if swaps else "b")
    if of_columns is None or of_columns.in_tensor_cores:
        return "none"
    if of_columns.rows == 1:
        return "lines"
    return "blocks" if of_columns.rows % plan.BN else "block"


def _scaled_share(tile: GemmTile, costs: GemmCosts) -> float:
    """Return how many times as long products take that are scaled and added by warpgroups.

    Three warpgroups hide most of that with the scale of one block: two multiply meanwhile.
    """
    if tile.scales == "none":
        return 1.0
    share = {
        "block": costs.scaled_block,
        "blocks": costs.scaled_blocks,
        "lines": costs.scaled_lines,
    }[tile.scales]
    if tile.warpgroups > 2:
        return costs.scaled_three * share / costs.scaled_block
    if tile.BM // tile.warpgroups > HALF_ROWS:
        return share
    return share * (costs.scaled_low if tile.multiply_ahead else costs.scaled_in_turn)


def _multiply_us(tile: GemmTile, steps: int, filled: float, chip: Chip) -> float:
    """Return the time of the tensor cores of one multiprocessor, for ``steps`` blocks along k."""
    costs = chip.gemm
    is_fp8 = tile.element_bytes <= 1
    wgmma_rows, columns = (tile.BN, tile.BM) if tile.swap_operands else (tile.BM, tile.BN)
    products = wgmma_rows * columns / chip.products
    # every 64 rows read all columns: a wgmma of few columns waits for shared memory
    reads = costs.shared_reads * wgmma_rows * (1 + columns / 64)
    reads *= costs.shared_reads_fp8 if is_fp8 else 1.0
    us = steps * _mean((products, reads), costs.reads_overlap) / 1e3 / costs.ghz
    droop = costs.droop * (costs.droop_fp8 if is_fp8 else 1.0)
    return us * (1 + droop * filled * min(1.0, us / costs.droop_us))


def rows_begin(tile: GemmTile, problem: GemmWorkload) -> Begin:
    """Return the beginnings of rows of A and B in L2."""
    row_bytes = (problem.row_elements or problem.k) * tile.element_bytes
    if row_bytes % SECTOR:
        return "in a sector"
    return "in a line" if row_bytes % LINE else "with a line"


def _l2_rate(tile: GemmTile, problem: GemmWorkload, costs: GemmCosts) -> float:
    """Return how many bytes a multiprocessor reads in a ns, by where rows begin."""
    begin = rows_begin(tile, problem)
    ring = tile.num_stages * tile.BK * tile.element_bytes
    deep = ring > DEEP * BLOCK_BYTES and not tile.swap_operands
    alone, shared = {
        "with a line": (costs.l2, costs.l2_shared),
        "in a line": (costs.l2_skew_deep if deep else costs.l2_skew, costs.l2_skew_shared),
        "in a sector": (costs.l2_odd, costs.l2_odd_shared),
    }[begin]
    rate = shared if tile.is_shared else alone
    if tile.grid_rows:
        rate *= costs.grid_rate
    return rate * costs.evicted if tile.evict_first and begin != "with a line" else rate


def _memory_us(
    tile: GemmTile, problem: GemmWorkload, filled: float, costs: GemmCosts
) -> tuple[float, float]:
    """Return the bytes that pass through memory, and how long they take."""
    n, k = problem.n, problem.k
    moved = 0.0
    for rows, number in problem.heights.items():
        again = 0.0 if tile.evict_first else costs.reread * (_up(rows, tile.BM) - 1)
        weights = n * k * min(1 + again, MOST_READS) if rows else 0.0
        outputs = tile.out_bytes * rows * n * (1 + tile.reads_c)
        moved += number * (tile.element_bytes * (weights + rows * k) + outputs)
    rate = costs.memory_evict_first if tile.evict_first else costs.memory
    return moved, moved / rate / 1e6 * (1 + costs.unfilled * (1 - filled))


def _stores_us(tile: GemmTile, waves: int, costs: GemmCosts) -> float:
    """Return the time of stores, and reads of C, in addition to the products.

    A warpgroup does not multiply while it hands its sums to the slots of the output: the more sums
    it has and the fewer slots, the longer. C comes into the same slots. With ``ping_pong`` another
    one multiplies meanwhile, and one alone stores the last tile. With ``output_in_ring`` the next
    tile's loads start once the output has left.
    """
    sums = tile.BM * tile.BN / 1e3
    own = sums / tile.warpgroups
    between = own * costs.store * (1 + costs.store_slots / tile.output_slots)
    if tile.ping_pong:
        between = 0.0
    last = 4 * sums / costs.epilogue / tile.split_k * (1 + costs.turns * tile.ping_pong)
    if tile.output_in_ring:
        between += last + costs.latency
    us = last + between * max(0, waves - 1)
    if tile.reads_c:
        us += waves * own * costs.read_c * (1 + costs.read_c_slots / tile.output_slots)
    return us


def _mean(times: Iterable[float], exponent: float) -> float:
    """Return the power mean of times that overlap: the larger the exponent, the better they do."""
    return float(sum(time**exponent for time in times) ** (1 / exponent))


def _up(count: int, of: int) -> int:
    return -(-count // of)
