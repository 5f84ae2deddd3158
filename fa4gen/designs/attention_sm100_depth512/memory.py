"""The memory at depth 512 on Blackwell: sizes, barriers, shared and tensor memory.

The barrier table has the rows of Depth512MBars at its offsets, then the kernel's own. One CTA
contributes 256 arrivals to PO_lo and 128 to PO_hi and to the S consumers; the leader's copy, which
the MMA warp waits for, counts both CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.blackwell_model import BlackwellAttentionPlan
from fa4gen.designs.common.model import Barrier, SharedRegion, TensorMemoryRegion
from fa4gen.designs.common.rings import End, Ring
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig

BLOCKS = ("even", "odd")
"""The buffers of scores: blocks take turns."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class Depth512Memory(BlackwellAttentionPlan):
    """Sizes, barriers and regions."""

    config: BlackwellPairAttentionConfig
    cta_group: int = 2
    BN: int = 256
    num_qk_stages: int = 4
    num_pv_stages: int = 2
    BM: int = 64
    """Half of a product of 128 rows."""
    out_panel_columns: int = 64
    threads: int = 384

    @property
    @override
    def BK1(self) -> int:  # noqa: N802
        return self.BN // self.num_pv_stages

    @property
    @override
    def panel_columns(self) -> int:
        return PANEL_BYTES // self.element_bytes

    @property
    def query_bytes(self) -> int:
        """Bytes of this CTA's queries."""
        return self.BM * self.depth * self.element_bytes

    @property
    def probability_bytes(self) -> int:
        """Bytes of this CTA's probabilities of a block."""
        return self.BM * self.BN * self.element_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot: a part of K or V in one CTA."""
        return self.BK0 * self.BK1 * self.element_bytes

    @property
    def staging_step(self) -> int:
        """Bytes from the staging space of O_lo to that of O_hi; 0 where they take turns."""
        half = self.BM * self.half_columns * self.out_element_bytes
        return half if self.query_bytes >= 2 * half else 0

    @property
    def half_columns(self) -> int:
        """Columns of each half of the output."""
        return self.value_depth // 2

    @property
    def lane_columns(self) -> int:
        """Columns of a half of the output in one lane: half a row of it."""
        return self.value_depth // 4

    @cached_property
    def ring(self) -> Ring:
        """The parts of keys and values; the first time with the queries."""
        return self.block_ring(
            "kv",
            self.slot_bytes,
            f"Ring of parts of keys and values: {self.BK1} x {self.BK0} {self.dtype}, "
            "128-byte swizzle",
            End(
                how="tma_bytes",
                arrived_by="the leader's loader, then the bytes of both CTAs, the first time with "
                "those of Q",
                waited_by="the MMA warp",
                meaning="a part of K or V has landed",
                bytes=self.cta_group * self.slot_bytes,
                cta="leader",
                name="kv_producer",
            ),
            End(
                how="multicast_commit",
                arrived_by="commit of the product that reads the part",
                waited_by="the loader",
                meaning="the slot of a part may be overwritten",
                name="kv_consumer",
            ),
        )

    @cached_property
    def scale_ring(self) -> Ring:
        """The factors of rows, from the softmax to the correction."""
        return self.scales("every softmax thread", 1, names=("c_producer", "c_consumer"))

    @cached_property
    def tile_ring(self) -> Ring:
        """The slots that tiles pass through."""
        return self.tiles_to(4 + 4 + 1, shared=self.scheduler == "dynamic")

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        query_empty = Barrier(
            "query_empty", 1, 1, "thread", "the thread whose TMA store has read the space",
            "the loader", "the queries' space may be overwritten", first_wait_parity=1,
        )  # fmt: skip
        return (
            *self._output_rows,
            *(self._scores_loaded(name) for name in BLOCKS),
            *self.scale_ring.rows,
            *(self._scores_there(name) for name in BLOCKS),
            self._product("lo", "the correction"),
            self._product("hi", "the correction; the softmax, before it stores P"),
            *self.ring.rows,
            query_empty,
            *self.tile_ring.rows,
        )

    @property
    def _output_rows(self) -> tuple[Barrier, Barrier]:
        both = self.cta_group * WARPGROUP
        return (
            Barrier(
                "po_lo", 1, 2 * both, "thread",
                "every thread of softmax and correction in both CTAs", "the MMA warp",
                "P is stored, and O_lo has been rescaled, or read", cta="leader",
            ),
            Barrier(
                "po_hi", 1, both, "thread", "every thread of the correction in both CTAs",
                "the MMA warp", "O_hi has been rescaled, or read", cta="leader",
            ),
        )  # fmt: skip

    def _scores_loaded(self, name: str) -> Barrier:
        return Barrier(
            f"s_{name}_consumer", 1, self.cta_group * WARPGROUP, "thread",
            "every softmax thread in both CTAs", "the MMA warp",
            f"the scores of an {name} block have been loaded", first_wait_parity=1, cta="leader",
        )  # fmt: skip

    def _scores_there(self, name: str) -> Barrier:
        return Barrier(
            f"s_{name}_producer", 1, 1, "multicast_commit", "commit of Q.K", "the softmax",
            f"the scores of an {name} block are in tensor memory",
        )  # fmt: skip

    def _product(self, half: str, waited_by: str) -> Barrier:
        return Barrier(
            f"o_mma_{half}", 1, 1, "multicast_commit", f"commit of P.V_{half}", waited_by,
            f"a block's P.V_{half} has been added to O_{half}",
        )  # fmt: skip

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        rows, dtype = self.BM, self.dtype
        queries = f"Queries: {rows} x {self.depth} {dtype}; then the output on its way out"
        block = f"Probabilities of a block: {rows} x {self.BN} {dtype}, 128-byte swizzle"
        exchange = "Numbers that the two threads of a row exchange"
        return (
            slots_of("query", 1, self.query_bytes, queries),
            slots_of("probabilities", 1, self.probability_bytes, block),
            self.ring.region,
            barrier_region(self.barrier_rows),
            self.scale_ring.region,
            slots_of("exchange", 2, 4 * WARPGROUP, exchange, alignment=16),
            self.tile_ring.region,
            self.address_region,
        )

    @property
    @override
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        # The halves of the output, then the buffers of scores. A product of 128 rows and N columns
        # over a pair takes N / 2 columns: lanes 0 to 63 hold its first half, 64 to 127 its second.
        output, scores = self.lane_columns, self.BN // 2
        half = f"{self.BM} x {self.half_columns} float32, as two halves of {output} columns"
        return (
            TensorMemoryRegion("o_lo", 0, output, f"output, first half: {half}"),
            TensorMemoryRegion("o_hi", output, output, f"output, second half: {half}"),
            *(
                TensorMemoryRegion(
                    f"s_{name}", 2 * output + i * scores, scores,
                    f"scores of {name} blocks: {self.BM} x {self.BN} float32, as two halves of "
                    f"{scores} columns",
                )
                for i, name in enumerate(BLOCKS)
            ),
        )  # fmt: skip
