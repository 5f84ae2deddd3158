"""The tile of a matrix product on Hopper: what is decided of it, and the sizes that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.consumers import ConsumerPlan
from fa4gen.designs.common.gemm_model import GemmPlan
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

WGMMA_ROWS = 64
GATED_ROWS = 2 * WGMMA_ROWS
"""With exchanged operands, columns of B of a warpgroup: a wgmma's rows for gate, others for up."""
SCALED_K = 128
"""Elements along k that have one scale."""
GRID = 8
"""CTAs of a cluster that share A and B."""
GRID_ROWS = 2
"""Rows of tiles that such a cluster works on."""
STORED_ROWS = 16
"""The rows that a warp writes into a panel together: the last 8 may go past the panel's end."""
WARPGROUP_ROWS = (64, 128)
"""One wgmma's rows, or two's."""
DEFAULT_REGISTERS = {
    1: RegisterBudget(producer=56, consumer=256),
    2: RegisterBudget(producer=40, consumer=232),
    3: RegisterBudget(producer=32, consumer=160),
}
"""By consumer warpgroups. The loaders divide to find their tiles: attention's need fewer."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperGemmTile(ConsumerPlan, GemmPlan):
    """The tile and its sizes."""

    config: HopperGemmConfig
    scheduler: str = "static"
    evict_first: Literal["none", "b", "both"]
    """Operands whose lines are the first to leave L2."""
    ping_pong: bool
    multiply_ahead: bool = False
    """With scales: whether products have two sets of registers, one under way, one being added."""

    @property
    def multiplies_halves(self) -> bool:
        """Whether products are those of gate's columns, then of up's: of 256 with scales."""
        wide = self.gated and not self.swap_operands and self.BN == 2 * SCALED_K
        single = self.warpgroup_rows == WGMMA_ROWS and self.BK == SCALED_K
        return bool(self.scales) and wide and single

    @property
    def product_columns(self) -> int:
        """Columns of the products of a wgmma."""
        return SCALED_K if self.multiplies_halves else self.sum_columns

    @property
    def prefetches_scales(self) -> bool:
        """Whether scales are asked for before A and B: streamed weights fill the memory's queue."""
        dense = not self.gated and self.groups is None and not self.gathers_rows
        return bool(self.scales) and self.evict_first != "none" and dense

    @property
    def swap_operands(self) -> bool:
        """Whether the rows of the sums are columns of the output, and their columns its rows."""
        return self.config.swap_operands

    @property
    @override
    def gathers_rows(self) -> bool:
        return self.config.rows == "gathered"

    @property
    @override
    def scatters_rows(self) -> bool:
        return self.config.out_rows == "scattered"

    @property
    def output_in_ring(self) -> bool:
        """Whether panels of the output lie in the ring of A and B, which has no block meanwhile."""
        return self.config.output_in_ring

    @property
    @override
    def cluster(self) -> int:
        return 2 if self.is_split else self.cta_group

    @property
    @override
    def out_panel_columns(self) -> int:
        return PANEL_BYTES // self.out_element_bytes

    @property
    @override
    def c_panel_columns(self) -> int:
        return PANEL_BYTES // self.c_element_bytes

    @property
    def c_panels(self) -> int:
        """Panels of a matrix C for one of the output, side by side: two if it is quantised."""
        return max(1, self.out_panel_columns // self.c_panel_columns) if self.c.is_matrix else 1

    @property
    def last_panel_columns(self) -> int:
        """Columns of the last panel of a tile: ``out_panel_columns``, or fewer."""
        return (self.out_columns - 1) % self.out_panel_columns + 1

    @property
    def has_last_maps(self) -> bool:
        """Whether the last panel has tensor maps of its own: it is narrower than others."""
        return self.last_panel_columns < min(self.out_columns, self.out_panel_columns)

    @property
    def warpgroup_rows(self) -> int:
        """Rows of wgmma that a consumer computes, 64 or 128: of the tile, or columns if swapped."""
        rows = self.BN if self.swap_operands else self.BM
        return rows if self.ping_pong else rows // self.num_consumer_warpgroups

    @property
    def is_shared(self) -> bool:
        """Whether the CTAs of a cluster load parts of A or B for one another."""
        return self.cta_group > 1

    @property
    def shares_both(self) -> bool:
        """Whether they do of A and of B: their tiles are a grid of ``GRID_ROWS`` rows."""
        return self.config.share == "both" or self.cta_group == GRID

    @property
    def cluster_rows(self) -> int:
        """CTAs of a cluster whose tiles are one below the other: they share B."""
        return min(GRID_ROWS, self.cta_group) if self.shares_both else self._in_line("b")

    @property
    def cluster_columns(self) -> int:
        """CTAs of a cluster whose tiles are side by side: they share A."""
        return max(1, self.cta_group // GRID_ROWS) if self.shares_both else self._in_line("a")

    def _in_line(self, operand: Literal["a", "b"]) -> int:
        """Return how many CTAs share one operand where the other is not shared."""
        shared = "a" if self.swap_operands or self.config.share == "a" else "b"
        return self.cta_group if operand == shared else 1

    @property
    def b_lines(self) -> int:
        """Lines of a block of B in shared memory."""
        return self.BN if self.b_major == "k" else self.BK

    @property
    def shares_in_turns(self) -> bool:
        """Whether each CTA brings whole blocks: their parts would not be groups of 8 lines.

        Of A in fours, such parts were measured: 2 to 7 % faster than turns.
        """
        if self.shares_both or self.cluster_columns == 4:
            return False
        lines = self.BM if self.cluster_columns > 1 else self.b_lines
        return self.is_shared and lines % (8 * self.cta_group) != 0

    @property
    def brought_a_lines(self) -> int | None:
        """Lines of A that one CTA brings at a time; None where A is not shared."""
        if self.cluster_columns == 1:
            return None
        return self.BM // (1 if self.shares_in_turns else self.cluster_columns)

    @property
    def brought_b_lines(self) -> int:
        """Lines of B that one CTA brings at a time."""
        return self.b_lines // (1 if self.shares_in_turns else self.cluster_rows)

    @property
    def loads_parts(self) -> bool:
        """Whether the loader finds parts of both operands, or of one in blocks of two panels."""
        return self.shares_both or (self.is_shared and self.panel_columns < self.BK)

    @property
    def shared_operands(self) -> str:
        """The operands that CTAs of a cluster load for one another, if there are several."""
        if self.shares_both:
            return "A and B"
        return "A" if self.cluster_columns > 1 else "B"

    @property
    def is_split(self) -> bool:
        """Whether two CTAs divide k of a tile."""
        return self.config.split_k == 2

    @property
    def sums_bytes(self) -> int:
        """Bytes of the sums of one consumer warpgroup, in float32."""
        return 4 * WARPGROUP * self.accumulators

    @property
    def sum_columns(self) -> int:
        """Columns of the sums of a wgmma."""
        return self.BM if self.swap_operands else self.BN

    @property
    def panel_rows(self) -> int:
        """Rows of the output in a panel."""
        return self.BM if self.swap_operands else WGMMA_ROWS

    @property
    @override
    def panels_per_ring(self) -> int:
        # The panels of a consumer warpgroup: of 64 rows, or of all rows with swap_operands.
        if self.swap_operands:
            columns = self.out_columns * self.warpgroup_rows // self.BN
            return max(1, columns // self.out_panel_columns)
        panels = -(-self.out_columns // self.out_panel_columns)
        return max(1, self.warpgroup_rows // WGMMA_ROWS) * panels

    @property
    def accumulators(self) -> int:
        """Registers of a consumer thread that hold its part of the tile."""
        return self.warpgroup_rows * self.sum_columns // 128

    @property
    def products(self) -> int:
        """Registers that hold the products of a block, before they are scaled and added."""
        if not self.scales:
            return 0
        return (1 + self.multiply_ahead) * WGMMA_ROWS * self.product_columns // 128

    @property
    def stage_bytes(self) -> int:
        """Bytes that complete a stage."""
        return self.a_bytes + self.b_bytes

    @property
    def ring_bytes(self) -> int:
        """Bytes of the ring of A and B."""
        return self.num_stages * (self.a_bytes + self.b_bytes)

    @property
    def output_bytes(self) -> int:
        """Bytes of the slots of the output."""
        return self.num_consumer_warpgroups * self.num_epi_stages * self.epi_bytes

    @property
    def b_bytes(self) -> int:
        """Bytes of B in a stage."""
        return self.BN * self.BK * self.element_bytes

    @property
    def epi_bytes(self) -> int:
        """Bytes of one panel of the output, or of what is a matrix C for it."""
        return -(-self.panel_rows // STORED_ROWS) * STORED_ROWS * PANEL_BYTES * self.c_panels
