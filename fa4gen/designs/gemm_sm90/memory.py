"""The memory of a matrix product on Hopper: barriers and regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.grouped import group_regions
from fa4gen.designs.common.model import Barrier
from fa4gen.designs.common.rings import End, Ring, freed, loaded, rows_of
from fa4gen.designs.common.roles import WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region, lay_out, slots_of
from fa4gen.designs.gemm_sm90.tile import WGMMA_ROWS, HopperGemmTile
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Ctas, SharedRegion

RESIDUAL_ALIGNMENT = 128
"""Bytes, as TMA requires."""
GATHERING_LANES = 64
"""Two warps copy gathered rows; each lane arrives once its own copies are written."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperGemmMemory(HopperGemmTile):
    """Barriers and regions."""

    @property
    def residual_rows(self) -> int:
        """Rows whose elements of a C with one axis are loaded: slots are 128 bytes apart."""
        return -(-self.panel_rows // WGMMA_ROWS) * WGMMA_ROWS

    @property
    def residual_bytes(self) -> int:
        """Bytes of C that come with one panel of the output, at most."""
        columns, rows = self.out_panel_columns, self.residual_rows
        if self.c.is_matrix:
            columns, rows = min(columns, self.out_columns), self.panel_rows
        elif "n" in self.c.axes:
            columns = self.columns_of_b(columns)
        return self.c.elements(rows, columns) * self.c_element_bytes

    @property
    def _ctas(self) -> Ctas:
        """The CTAs with copies of a barrier that count, where CTAs share an operand."""
        if not self.is_shared:
            return "own"
        return "pair" if self.is_pair else "cluster"

    @cached_property
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
                f"the loader, then the bytes of {'B' if self.gathers_rows else 'A and B'}"
                + f", {part} of {self.shared_operands}'s by {others}" * self.is_shared
                + ", and every lane whose copies of A have landed" * self.gathers_rows,
                "the consumers of the tile",
                "a block of A and of B has landed in its slot",
                self.b_bytes if self.gathers_rows else self.stage_bytes,
                arrivals=1 + GATHERING_LANES * self.gathers_rows,
                cta=self._ctas,
            ),
            empty=freed(
                warps * (self.cluster_rows + self.cluster_columns - 1),
                f"{every}{of_all}, once wgmma has read the slot",
                "a slot of A and B may be overwritten",
                cta=self._ctas,
            ),
        )

    @cached_property
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

    @cached_property
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

    @cached_property
    @override
    def barrier_rows(self) -> list[Barrier]:
        rows = [*rows_of((self.ring, *self.epi_rings))]
        if self.is_split:
            rows += self.sums_ring.rows
        if self.output_in_ring:
            of_all = {1: "", 2: " of both CTAs"}.get(self.cta_group, " of all CTAs")
            rows.append(
                Barrier(
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
        if self.c.exists and not self.c.is_matrix:
            elements = self.residual_bytes // self.c_element_bytes
            holds = f"The residual's {self.c.name} beside each panel: {elements} {self.c_dtype}"
            size = self.residual_bytes
            regions.append(slots_of("residual", panels, size, holds, alignment=RESIDUAL_ALIGNMENT))
        if self.is_split:
            regions.append(self.sums_ring.region)
        return [*regions, *group_regions(self), barrier_region(self.barrier_rows)]

    @cached_property
    @override
    def shared(self) -> tuple[SharedRegion, ...]:
        if not self.output_in_ring:
            return super().shared
        # The output is where the ring of A and B begins.
        placed = {row.name: row for row in lay_out([r for r in self.regions if r.name != "epi"])}
        return tuple(placed.get(row.name, row) for row in self.regions)
