"""The memory of a matrix product on Blackwell: barriers, shared and tensor memory.

Full and empty rows of a ring follow each other, as its struct expects. In a pair the leader's
MMA warp issues for both CTAs: what it waits for counts the arrivals of both, and its commits
arrive on the rows of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.grouped import group_regions
from fa4gen.designs.common.model import Barrier, SharedRegion, TensorMemoryRegion
from fa4gen.designs.common.rings import TILE_SLOTS, End, Ring, freed, loaded, rows_of
from fa4gen.designs.common.shared_memory import SWIZZLE_ALIGNMENT, barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm100.tile import LANES, BlackwellGemmTile
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import ArriveHow, Ctas

ORDER_SLOTS = 2
"""Tiles by which the loads of A and B may be ahead of those of the residual."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class BlackwellGemmMemory(BlackwellGemmTile):
    """Barriers and regions."""

    @property
    def _commit(self) -> ArriveHow:
        return "multicast_commit" if self.is_pair else "mma_commit"

    @property
    def _both(self) -> str:
        return " in both CTAs" if self.is_pair else ""

    @property
    def _waited(self) -> Ctas:
        """The CTA with the barrier that the leader waits for."""
        return "leader" if self.is_pair else "own"

    @property
    def _copied(self) -> Ctas:
        """The CTAs with a barrier that the leader arrives on."""
        return "pair" if self.is_pair else "own"

    @cached_property
    def ring(self) -> Ring:
        """The blocks of A and B, which have a region each."""
        scaled, arranges = bool(self.scaled_kind), self.arranges_scales
        what = "A, B and scales" if scaled else "A and B"
        loaded_what = "A and B, and each warp that arranges scales" if arranges else what
        return Ring(
            name="input",
            key="num_stages",
            slots=self.num_stages,
            full=loaded(
                f"the loader, then the bytes of {loaded_what}{self._both}",
                "the MMA warp",
                f"a block of {what} has landed",
                self.cta_group * self.loaded_bytes,
                arrivals=1 + self.cta_group * self.arrange_warps,
                cta=self._waited,
            ),
            empty=End(
                how=self._commit,
                arrived_by="commit of the products that read the block",
                waited_by="the loader"
                + ", the warps that arrange scales" * arranges
                + ", and the MMA warp before it copies scales" * scaled,
                meaning=f"a slot of {what} may be overwritten",
                cta=self._copied,
            ),
        )

    @cached_property
    def accumulator_ring(self) -> Ring:
        """The accumulators, from the MMA warp to the epilogue and back."""
        read = "the sums have been read, and may be overwritten"
        if self.overlap_columns:
            read = "the sums that both accumulators have room for have been read"
        return Ring(
            name="accum",
            key="num_accum_stages",
            slots=self.num_accum_slots,
            full=End(
                how=self._commit,
                arrived_by="commit of the tile's last product",
                waited_by="the epilogue",
                meaning="a tile's sums are in tensor memory",
                cta=self._copied,
            ),
            empty=End(
                arrivals=LANES * self.cta_group,
                arrived_by=f"every thread of the epilogue{self._both}",
                waited_by="the MMA warp",
                meaning=read,
                cta=self._waited,
            ),
        )

    @cached_property
    def residual_ring(self) -> Ring:
        """The parts of C, ahead of the epilogue."""
        panels, alignment = self._panels, SWIZZLE_ALIGNMENT
        if self.c_panels > 1:
            panels = f"{self.c_panels} panels of {self.BM} x {self.c_panel_columns} {self.c_dtype}"
            panels += ", 128-byte swizzle"
        if not self.c.is_matrix:
            elements = self.c.elements(self.BM, self.out_panel_columns)
            panels = f"{self.residual_copies} x {elements} of one {self.c.name}"
            alignment = PANEL_BYTES  # of 128 bytes, as TMA writes to multiples of those
        return Ring(
            name="residual",
            slots=self.num_epi_stages,
            slot_bytes=self.residual_bytes,
            holds=f"Ring of C: {panels}",
            alignment=alignment,
            full=loaded(
                "the residual's loader, then the bytes of its part of C",
                "the epilogue",
                "a part of C has landed",
                self.residual_copy_bytes,
            ),
            empty=End(
                arrivals=LANES,
                arrived_by="every thread of the epilogue",
                waited_by="the residual's loader",
                meaning="a slot of C may be overwritten",
            ),
        )

    @cached_property
    def order_ring(self) -> Ring:
        """The tiles that the residual's loader follows the loader in."""
        return Ring(
            name="order",
            slots=ORDER_SLOTS,
            full=End(
                arrived_by="the loader, after the first blocks of a tile",
                waited_by="the residual's loader",
                meaning="a tile's C may be loaded: its A and B were asked for first",
            ),
            empty=freed(
                1,
                "the residual's loader",
                "the residual's loader is at most one tile behind: no phase is missed",
            ),
        )

    @cached_property
    def tile_ring(self) -> Ring:
        """The hardware's answers: in a pair that to the leader goes to both CTAs."""
        leader = "the leader's scheduler" if self.is_pair else "the scheduler"
        # Four warps of the epilogue, the loader, the residual's and those that arrange scales in
        # each CTA, and the one MMA warp that issues.
        readers = self.cta_group * (5 + self.c.exists + self.arrange_warps) + 1
        return Ring(
            name="tile",
            slots=TILE_SLOTS,
            slot_bytes=16,
            holds="Answers of the hardware: the CTA whose tile is ours now, or that there is none",
            alignment=16,
            full=loaded(
                f"{leader}, then the hardware's answer",
                "every other role, and the scheduler",
                "the answer is there: the next tile, or that there is none",
                16,
                cta=self._copied,
            ),
            empty=End(
                arrivals=readers,
                arrived_by=f"every warp of the other roles{self._both}",
                waited_by="the scheduler",
                meaning="the answer has been read",
                cta=self._waited,
            ),
        )

    @cached_property
    @override
    def barrier_rows(self) -> list[Barrier]:
        rows = [*rows_of((self.ring, self.accumulator_ring))]
        if self.c.exists:
            rows += rows_of((self.residual_ring, self.order_ring))
        if self.scheduler == "dynamic":
            wanted = Barrier(
                "tile_wanted",
                1,
                1,
                "thread",
                "the loader, when it begins with a tile",
                "the scheduler",
                "the tile after it may be asked for, no sooner",
                cta=self._waited,
            )
            rows += [*self.tile_ring.rows, wanted]
        return rows

    @property
    def _panels(self) -> str:
        """The panels of a slot of the output or of C, in words."""
        columns = self.out_panel_columns
        several = f"{self.slot_panels} panels of " * (self.slot_panels > 1)
        swizzle = f"{self.out_line_bytes(columns)}-byte swizzle"
        return f"{several}{self.BM} x {columns} {self.out_dtype}, {swizzle}"

    @property
    @override
    def regions(self) -> list[SharedRegion]:
        stages, dtype = self.num_stages, self.dtype
        share = " (this CTA's half of the columns)" * self.is_pair
        a = f"{self.BM} x {self.BK} {dtype}, {self.a_major}-major"
        b = f"{self.b_columns} x {self.BK} {dtype}{share}, {self.b_major}-major"
        a, b = f"{a}, {self.a_panel_bytes}-byte swizzle", f"{b}, {self.b_panel_bytes}-byte swizzle"
        output = f"Output on its way out: {self._panels}"
        regions = [
            slots_of("a", stages, self.a_bytes, f"Ring of A: {a}"),
            slots_of("b", stages, self.b_bytes, f"Ring of B: {b}"),
            slots_of("output", self.num_out_stages, self.out_bytes, output),
        ]
        if self.c.exists:
            regions.append(self.residual_ring.region)
        scales = self.block_scales
        if scales.kind:
            atoms = f"{scales.k_atoms} atoms of 128 rows by 4 scales"
            a = f"Ring of A's scales: {atoms}, along k"
            b = f"Ring of B's scales, for all columns: {scales.b_atoms} x {atoms}"
            regions += [
                slots_of("scale_a", stages, scales.a_bytes, a, alignment=PANEL_BYTES),
                slots_of("scale_b", stages, scales.b_bytes, b, alignment=PANEL_BYTES),
            ]
        regions += [*group_regions(self), barrier_region(self.barrier_rows)]
        if self.scheduler == "dynamic":
            regions.append(self.tile_ring.region)
        address = "Address of the allocated tensor memory"
        return [*regions, SharedRegion("tensor_memory", 0, 4, 4, 1, address)]

    @property
    def columns_needed(self) -> int:
        """Columns of tensor memory that the stages take."""
        scales = self.num_scale_stages * self.block_scales.tensor_columns
        return self.accumulators_end + scales

    @property
    @override
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        # The accumulators, ``stage_stride_cols`` columns apart, then the slots of scales.
        where = {
            "rows": "",
            "quarters": ", 16 rows in each quarter of the lanes",
            "halves": ", the second half of the columns in lanes 64 to 127",
        }[self.accumulator_layout]
        scales = self.block_scales
        columns, of_a = scales.tensor_columns, scales.a_columns
        of_both = f"{of_a} columns for A, then {columns - of_a} for B"
        return (
            *(
                TensorMemoryRegion(
                    f"accumulator_{i}",
                    i * self.stage_stride_cols,
                    self.accumulator_columns,
                    f"accumulator {i}: {self.BM} x {self.BN} float32{where}",
                )
                for i in range(self.num_accum_stages)
            ),
            *(
                TensorMemoryRegion(
                    f"scales_{i}",
                    self.accumulators_end + i * columns,
                    columns,
                    f"scales {i}: of a block of k, {of_both}",
                )
                for i in range(self.num_scale_stages)
            ),
        )
