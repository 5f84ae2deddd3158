"""The memory of a matrix product on Hopper: the sizes of its tile, barriers and regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.common.gemm_maps import SCALE_BYTES, SCALE_LINE_BYTES
from fa4gen.designs.common.gemm_model import GemmPlan
from fa4gen.designs.common.rings import End, Ring, freed, loaded, rows_of
from fa4gen.designs.common.roles import WARPGROUP, WARPGROUP_WARPS, RegisterSplit
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.designs.common.model import Barrier, SharedRegion
    from fa4gen.designs.common.rings import Ctas
    from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

WGMMA_ROWS = 64
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
    1: RegisterSplit(56, 256),
    2: RegisterSplit(40, 232),
    3: RegisterSplit(32, 160),
}
"""By consumer warpgroups. The loaders divide to find their tiles: attention's need fewer."""
RESIDUAL_ALIGNMENT = 128
"""Bytes, as TMA requires."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperGemmMemory(GemmPlan):
    """Sizes, barriers and regions."""

    config: HopperGemmConfig
    scheduler: str = "static"
    evict_first: Literal["none", "b", "both"]
    """Operands whose lines are the first to leave L2."""
    num_consumer_warpgroups: int
    ping_pong: bool
    registers: RegisterSplit

    @property
    def swap_operands(self) -> bool:
        """Whether the rows of the sums are columns of the output, and their columns its rows."""
        return self.config.swap_operands

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
    def last_panel_columns(self) -> int:
        """Columns of the last panel of a tile: ``out_panel_columns``, or fewer."""
        return (self.BN - 1) % self.out_panel_columns + 1

    @property
    def has_last_maps(self) -> bool:
        """Whether the last panel has tensor maps of its own: it is narrower than others."""
        return self.last_panel_columns < min(self.BN, self.out_panel_columns)

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
            return max(1, self.warpgroup_rows // self.out_panel_columns)
        return max(1, self.warpgroup_rows // WGMMA_ROWS) * -(-self.BN // self.out_panel_columns)

    @property
    def accumulators(self) -> int:
        """Registers of a consumer thread that hold its part of the tile."""
        return self.warpgroup_rows * self.sum_columns // 128

    @property
    def products(self) -> int:
        """Registers that hold the products of a block, before they are scaled and added."""
        return WGMMA_ROWS * self.sum_columns // 128 if self.scales else 0

    @property
    def scale_blocks(self) -> int:
        """Blocks along k of a stage that have scales of their own."""
        return max(1, self.BK // SCALED_K)

    def scale_bytes(self, scales: OperandScales) -> int:
        """Bytes of a stage's scales that TMA brings: a line of each row, or a line of all."""
        rows = self.BM if scales.operand == "a" else self.BN
        if scales.major == "k":
            return rows * SCALE_LINE_BYTES
        return rows * self.scale_blocks * SCALE_BYTES[scales.dtype]

    @property
    def stage_bytes(self) -> int:
        """Bytes that complete a stage."""
        loaded = sum(self.scale_bytes(row) for row in self.scales if row.is_tensor_map)
        return self.a_bytes + self.b_bytes + loaded

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
        """Bytes of one panel of the output."""
        return -(-self.panel_rows // STORED_ROWS) * STORED_ROWS * PANEL_BYTES

    @property
    def residual_rows(self) -> int:
        """Rows whose elements of a C with one axis are loaded: slots are 128 bytes apart."""
        return -(-self.panel_rows // WGMMA_ROWS) * WGMMA_ROWS

    @property
    def residual_bytes(self) -> int:
        """Bytes of C that come with one panel of the output, at most."""
        columns, rows = self.out_panel_columns, self.residual_rows
        if self.c.is_matrix:
            columns, rows = min(columns, self.BN), self.panel_rows
        return self.c.elements(rows, columns) * self.out_element_bytes

    @property
    def _ctas(self) -> Ctas:
        """The CTAs with copies of a barrier that count, where CTAs share an operand."""
        if not self.is_shared:
            return "own"
        return "pair" if self.is_pair else "cluster"

    @property
    def ring(self) -> Ring:
        """The blocks of A and B, which have a region each.

        In a cluster, each CTA fills its part of what is shared in all that share it.
        """
        part, others = ("half", "the peer") if self.is_pair else ("parts", "the others")
        all_ctas = "both CTAs" if self.is_pair else "all CTAs"
        if self.shares_both:
            all_ctas = "all CTAs with tiles in its row or column"
        warps = WARPGROUP_WARPS * (1 if self.ping_pong else self.num_consumer_warpgroups)
        every = "every warp of the tile's warpgroup" if self.ping_pong else "every consumer warp"
        of_all = f" of {all_ctas}" * self.is_shared
        return Ring(
            name="input",
            key="num_stages",
            slots=self.num_stages,
            full=loaded(
                "the loader, then the bytes of A and B"
                + " and of scales" * bool(self.scales)
                + f", {part} of {self.shared_operands}'s by {others}" * self.is_shared,
                "the consumers of the tile",
                "a block of A and of B has landed in its slot",
                self.stage_bytes,
                cta=self._ctas,
            ),
            empty=freed(
                warps * (self.cluster_rows + self.cluster_columns - 1),
                f"{every}{of_all}, once wgmma has read the slot",
                "a slot of A and B may be overwritten",
                cta=self._ctas,
            ),
        )

    @property
    def epi_rings(self) -> tuple[Ring, ...]:
        """The panels of each consumer, ready for its output, then written."""
        return tuple(self._epi_ring(i) for i in range(self.num_consumer_warpgroups))

    def _epi_ring(self, consumer: int) -> Ring:
        loads = self.c.exists
        meaning = "the output's slot is free"
        if self.c.is_matrix:
            meaning = "the residual is in its slot, which may be overwritten with the output"
        elif loads:
            meaning = "the residual has landed, and the output's slot is free"
        return Ring(
            name=f"epi{consumer}",
            key="num_epi_stages",
            slots=self.num_epi_stages,
            full=End(
                how="tma_bytes" if loads else "thread",
                arrived_by="the transfer warp" + ", then the bytes of C" * loads,
                waited_by=f"consumer {consumer}",
                meaning=meaning,
                bytes=self.residual_bytes,
                name=f"epi{consumer}_ready",
            ),
            empty=End(
                arrivals=WARPGROUP_WARPS,
                arrived_by=f"each warp of consumer {consumer}",
                waited_by="the transfer warp",
                meaning="a panel of the output is in its slot, and may be stored",
                name=f"epi{consumer}_written",
            ),
        )

    @property
    def sums_ring(self) -> Ring:
        """The sums that a consumer gets from its like in the peer, where two CTAs divide k."""
        return Ring(
            name="sums",
            slots=self.num_consumer_warpgroups,
            slot_bytes=self.sums_bytes,
            holds="The peer's sums over its part of k, in float32, thread by thread",
            full=End(
                how="store_bytes",
                arrived_by="the consumer itself, then the bytes of the peer's sums",
                waited_by="the consumer",
                meaning="the sums over the peer's part of k have arrived",
                bytes=self.sums_bytes,
                cta="pair",
            ),
            empty=End(
                arrivals=WARPGROUP_WARPS,
                arrived_by="every warp of the peer's consumer, once it has read the sums",
                waited_by="the consumer",
                meaning="the sums of the next tile that the peer writes may be sent",
                cta="pair",
            ),
        )

    @property
    @override
    def barrier_rows(self) -> list[Barrier]:
        rows = [*rows_of((self.ring, *self.epi_rings))]
        if self.is_split:
            rows += self.sums_ring.rows
        if self.output_in_ring:
            of_all = {1: "", 2: " of both CTAs"}.get(self.cta_group, " of all CTAs")
            rows.append(
                barrier_row(
                    "ring_free",
                    1,
                    self.num_consumer_warpgroups * self.cta_group,
                    "thread",
                    f"each transfer warp{of_all}, once its stores have read the tile's panels",
                    "the loader",
                    "the output has left the ring, which may be filled for the next tile",
                    cta=self._ctas,
                )
            )
        return rows

    @property
    @override
    def regions(self) -> list[SharedRegion]:
        stages, dtype, out = self.num_stages, self.dtype, self.out_dtype
        panels = self.num_consumer_warpgroups * self.num_epi_stages
        a = f"Ring of A: {self.BM} x {self.BK} {dtype}, {self.a_major}-major, 128-byte swizzle"
        b = f"Ring of B: {self.BK} x {self.BN} {dtype}, {self.b_major}-major, 128-byte swizzle"
        residual = "the residual, then " * self.c.is_matrix
        over = ", over the ring of A and B" * self.output_in_ring
        epi = (
            f"Panels of {residual}the output, {self.num_epi_stages} a consumer warpgroup{over}: "
            f"{self.panel_rows} x {self.out_panel_columns} {out}, 128-byte swizzle"
        )
        regions = [
            slots_of("a", stages, self.a_bytes, a),
            slots_of("b", stages, self.b_bytes, b),
            slots_of("epi", panels, self.epi_bytes, epi),
        ]
        for scales in self.scales:
            if scales.is_tensor_map:
                size, holds = self.scale_bytes(scales), f"Ring of the scales of {scales.words}"
                regions.append(
                    slots_of(scales.name, stages, size, holds, alignment=RESIDUAL_ALIGNMENT)
                )
        if self.c.exists and not self.c.is_matrix:
            elements = self.c.elements(self.residual_rows, self.out_panel_columns)
            holds = f"The residual's {self.c.name} beside each panel: {elements} {out}"
            size = self.residual_bytes
            regions.append(slots_of("residual", panels, size, holds, alignment=RESIDUAL_ALIGNMENT))
        if self.is_split:
            regions.append(self.sums_ring.region)
        return [*regions, barrier_region(self.barrier_rows)]

    @cached_property
    @override
    def shared(self) -> tuple[SharedRegion, ...]:
        if not self.output_in_ring:
            return super().shared
        # The output is where the ring of A and B begins.
        placed = {row.name: row for row in lay_out([r for r in self.regions if r.name != "epi"])}
        return tuple(placed.get(row.name, row) for row in self.regions)
