"""What a matrix product should take, from its tile and the problem: no GPU, no compiler.

The time of a launch is what is always paid, then the largest of four that overlap (the tensor
cores' work, what each multiprocessor reads through L2, what the chip reads and writes in memory,
the latency that the ring's slots do not cover), then what does not overlap: the stores of the last
tile, and with ``split_k`` the exchange of sums. The four are combined by a power mean, since they
do not overlap perfectly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.tune.model.prediction import Prediction

if TYPE_CHECKING:
    from fa4gen.designs.shared.gemm_model import GemmPlan
    from fa4gen.tune.model.chips import Chip, GemmCosts

SECTOR = 32
"""Bytes of a sector of memory: rows that begin inside one cost more to read."""
BLOCK_BYTES = 128
"""Bytes along k of a swizzled panel: what all times of a block are counted for."""
MOST_READS = 3
"""How often weights are read from memory at most, however many row tiles there are."""


@dataclass(frozen=True)
class GemmProblem:
    """Extents of one product, (batch, m, k) times (batch, k, n)."""

    m: int
    n: int
    k: int
    batch: int = 1
    row_elements: int = 0
    """Elements from one row of A and B to the next; k where it is 0."""


@dataclass(frozen=True)
class GemmTile:
    """What the model has to know of a kernel."""

    BM: int
    BN: int
    BK: int
    num_stages: int
    cta_group: int = 1
    split_k: int = 1
    swap_operands: bool = False
    element_bytes: int = 2
    out_bytes: int = 2
    reads_c: bool = False
    """Whether C is a matrix."""
    evict_first: bool = False
    """Whether the weights are the first to be displaced from L2."""
    shares_a: bool = False
    """Two tiles of the same rows share A; with ``cta_group: 2`` two of the same columns share B."""
    overlaps_stores: bool = True
    """Whether a tile's stores overlap the next tile's products."""

    @classmethod
    def of(cls, plan: GemmPlan) -> GemmTile:
        """Return the tile of ``plan``."""
        swaps = bool(getattr(plan, "swap_operands", False))
        return cls(
            BM=plan.BM,
            BN=plan.BN,
            BK=plan.BK,
            num_stages=plan.num_stages,
            cta_group=plan.cta_group,
            split_k=plan.ctas_per_tile,
            swap_operands=swaps,
            element_bytes=plan.element_bytes,
            out_bytes=plan.out_element_bytes,
            reads_c=plan.c.is_matrix,
            evict_first=getattr(plan, "evict_first", "none") != "none",
        )

    @property
    def is_shared(self) -> bool:
        """Whether CTAs of different tiles share what they load."""
        return self.shares_a or self.cta_group > 1

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return self.cta_group * self.split_k * (1 + self.shares_a)

    @property
    def loaded_rows(self) -> float:
        """Rows of A and columns of B that a CTA requests for each block along k."""
        return self.BM / (1 + self.shares_a) + self.BN / self.cta_group


def predict_gemm(tile: GemmTile, problem: GemmProblem, chip: Chip) -> Prediction:
    """Return the time that a launch of ``tile`` should take, with its parts."""
    costs = chip.gemm
    m, n, k = problem.m, problem.n, problem.k
    sharing = 1 + tile.shares_a
    row_tiles = _up(_up(m, tile.BM), tile.cta_group) * tile.cta_group
    column_tiles = _up(_up(n, tile.BN), sharing) * sharing
    tiles = row_tiles * column_tiles * problem.batch
    ctas = tiles * tile.split_k
    resident = chip.resident(tile.cluster)
    waves = _up(ctas, resident)
    block = BLOCK_BYTES // tile.element_bytes
    blocks = _up(_up(k, block), tile.split_k)
    steps = waves * blocks
    multiply = _multiply_us(tile, steps, ctas / max(1, waves * resident), chip)
    odd = (problem.row_elements or k) * tile.element_bytes % SECTOR != 0
    requested = tile.loaded_rows * BLOCK_BYTES
    l2 = steps * requested / (costs.l2_odd if odd else costs.l2) / 1e3
    moved, memory = _memory_us(tile, problem, costs)
    latency = steps * costs.latency * (costs.pair_latency if tile.is_shared else 1)
    latency /= tile.num_stages * tile.BK / block
    p = costs.overlap
    overlapped = (multiply**p + l2**p + memory**p + latency**p) ** (1 / p)
    epilogue, exchange = _after_us(tile, waves, costs)
    if tile.split_k > 1:
        overlapped *= 1 + costs.split_share * tile.BM * tile.BN / 16384
    return Prediction(
        launch_us=costs.launch,
        multiply_us=multiply,
        l2_us=l2,
        memory_us=memory,
        latency_us=latency,
        overlapped_us=overlapped,
        epilogue_us=epilogue,
        exchange_us=exchange,
        waves=waves,
        tiles=tiles,
        ctas=ctas,
        resident=resident,
        l2_bytes=int(blocks * ctas * requested),
        memory_bytes=int(moved),
    )


def _multiply_us(tile: GemmTile, steps: int, filled: float, chip: Chip) -> float:
    """Return the time of the tensor cores of one multiprocessor, for ``steps`` blocks along k."""
    costs = chip.gemm
    wgmma_rows, columns = (tile.BN, tile.BM) if tile.swap_operands else (tile.BM, tile.BN)
    products = wgmma_rows * columns / chip.products
    # every 64 rows read all columns: a wgmma of few columns waits for shared memory
    reads = costs.shared_reads * wgmma_rows * (1 + columns / 64)
    us = steps * (max(products, reads) + costs.block) / 1e3 / costs.ghz
    return us * (1 + costs.droop * filled * min(1.0, us / costs.droop_us))


def _memory_us(tile: GemmTile, problem: GemmProblem, costs: GemmCosts) -> tuple[float, float]:
    """Return the bytes that pass through memory, and how long they take."""
    m, n, k = problem.m, problem.n, problem.k
    reads = min(1 + costs.reread * (_up(m, tile.BM) - 1), MOST_READS)
    inputs = tile.element_bytes * (n * k * reads + m * k)
    outputs = tile.out_bytes * m * n * (1 + tile.reads_c)
    moved = problem.batch * (inputs + outputs)
    rate = costs.memory_evict_first if tile.evict_first else costs.memory
    return moved, costs.memory_first + moved / rate / 1e6


def _after_us(tile: GemmTile, waves: int, costs: GemmCosts) -> tuple[float, float]:
    """Return what stores take beside the products, and what CTAs exchange."""
    sums = 4 * tile.BM * tile.BN / 1e3
    stored = 1 if tile.overlaps_stores else waves
    epilogue = stored * sums / costs.epilogue / tile.split_k + costs.next_tile * max(0, waves - 1)
    exchange = costs.pair if tile.is_shared else 0.0
    if tile.split_k > 1:
        exchange += costs.split + waves * 1.5 * sums / costs.split_bytes
        exchange += costs.split_again * (waves - 1)
    return epilogue, exchange


def _up(count: int, of: int) -> int:
    return -(-count // of)
