"""The plan of a matrix product on Hopper, in addition to that of any."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fa4gen.designs.common.gemm_model import GemmPlan, costly_calls
from fa4gen.designs.gemm_sm90.values import DEFAULT_REGISTERS, STORED_ROWS

SINGLE_CALL = re.compile(r"\w+\(x\)")
"""An activation that is one function of x."""


@dataclass(frozen=True, kw_only=True)
class HopperGemmPlan(GemmPlan):
    """A matrix product by wgmma, accumulators in registers (sm_90a)."""

    RECORDED = (
        *GemmPlan.RECORDED, "swap_operands", "split_k", "cluster_rows", "cluster_columns",
        "shares_in_turns", "evict_first", "short_ends", "output_in_ring",
        "num_consumer_warpgroups", "ping_pong", "warpgroup_rows", "last_panel_columns",
        "producer_registers", "consumer_registers",
    )  # fmt: skip

    swap_operands: bool
    """Whether the rows of the sums are columns of the output, and their columns its rows."""
    split_k: int
    """CTAs that divide k of a tile; they take turns in writing the tiles."""
    cluster_rows: int
    """CTAs of a cluster whose tiles are one below the other: they share B."""
    cluster_columns: int
    """CTAs of a cluster whose tiles are side by side: they share A."""
    shares_in_turns: bool
    """Whether each CTA of a cluster brings whole blocks of what they share, in turn."""
    evict_first: Literal["none", "b", "both"]
    """Operands whose lines are the first to leave L2."""
    short_ends: bool
    """Whether clusters share from their first block on, and last stores wait for no other."""
    output_in_ring: bool
    """Whether panels of the output lie in the ring of A and B, which has no block meanwhile."""
    num_consumer_warpgroups: int
    ping_pong: bool
    warpgroup_rows: int
    """Rows of wgmma that one consumer warpgroup computes, 64 or 128: rows of the tile, or columns
    with ``swap_operands``."""
    last_panel_columns: int
    """Columns of the output in the last panel of a tile: ``out_panel_columns`` or fewer."""
    producer_registers: int
    consumer_registers: int

    @property
    def orders_pieces(self) -> bool:
        """Whether a thread begins a piece of the output, 8 elements, when the last one is done.

        Measured: ptxas computes activations of many pieces at once and spills. A single function of
        x and C it does not, nor what takes few registers, unless a thread has few in addition to
        its sums.
        """
        text = self.activation or "x"
        single = SINGLE_CALL.fullmatch(text) is not None and self.c.exists
        simple = costly_calls(text) == 0 or single
        few = self.consumer_registers < DEFAULT_REGISTERS[self.num_consumer_warpgroups].consumer
        crowded = few or self.swap_operands or self.ping_pong or self.num_consumer_warpgroups > 2
        crowded = crowded or self.launch.cluster > 1
        return self.activation is not None and (crowded or not simple)

    @property
    def pads_panels(self) -> bool:
        """Whether slots of the output have 8 rows more than are stored: see ``STORED_ROWS``."""
        return self.swap_operands and self.BM % STORED_ROWS != 0

    @property
    def shares_a(self) -> bool:
        """Whether CTAs of a cluster load parts of A for one another."""
        return self.cluster_columns > 1

    @property
    def shares_b(self) -> bool:
        """Whether CTAs of a cluster load parts of B for one another."""
        return self.cluster_rows > 1

    @property
    def shares_both(self) -> bool:
        """Whether the tiles of a cluster are a grid: its rows share A, its columns B."""
        return self.shares_a and self.shares_b

    @property
    def tile_rows(self) -> int:
        """Rows of the output that a cluster works on at once."""
        return self.cluster_rows * self.BM

    @property
    def tile_columns(self) -> int:
        """Columns of the output that a cluster works on at once."""
        return self.cluster_columns * self.BN

    @property
    def output_rings(self) -> tuple[str, ...]:
        """One ring of each consumer warpgroup, to its transfer warp."""
        return tuple(f"epi{i}_ready" for i in range(self.num_consumer_warpgroups))

    @property
    def panels_per_ring(self) -> int:
        """Panels of one consumer warpgroup: of 64 rows, or of all rows with ``swap_operands``."""
        if self.swap_operands:
            return self.warpgroup_rows // self.out_panel_columns
        return self.warpgroup_rows // 64 * -(-self.BN // self.out_panel_columns)

    @property
    def has_narrow_panel(self) -> bool:
        """Whether a tile's last panel has fewer columns than a line has room for."""
        return self.last_panel_columns < self.out_panel_columns

    @property
    def has_last_maps(self) -> bool:
        """Whether the last panel has tensor maps of its own, next to whole panels."""
        return self.has_narrow_panel and self.out_panel_columns < self.BN

    @property
    def tile_per_ring(self) -> bool:
        """See ``ping_pong``."""
        return self.ping_pong

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma."""
        return (self.BM if self.swap_operands else self.BN,)
