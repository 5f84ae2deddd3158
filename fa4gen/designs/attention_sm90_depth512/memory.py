"""The memory at depth 512 on Hopper: the sizes that follow from its tile, barriers and regions.

There is no room to align a base within shared memory: it starts where dynamic shared memory starts,
which is a multiple of 1024 because the kernel asks for that alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.hopper_model import HopperPlan
from fa4gen.designs.common.model import Barrier
from fa4gen.designs.common.rings import freed, loaded
from fa4gen.designs.common.roles import WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.config import HopperPairAttentionConfig
    from fa4gen.designs.common.model import SharedRegion
    from fa4gen.designs.common.rings import Ring

BUFFERS: Final = 2
"""The buffers of everything that crosses: the peer may be one block, or one tile, ahead."""
QUERY_BARRIERS: Final = 4
"""Queries land in four parts, so that the first Q.K begins before all are there."""
CHUNK_KEYS: Final = 16
"""Keys of one wgmma of P.V."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperPairMemory(HopperPlan):
    """Sizes, barriers and regions."""

    config: HopperPairAttentionConfig
    cta_group: int = 2
    ctas_per_tile: int = 2
    num_consumer_warpgroups: int = 2
    BN: int = 128
    num_kv_stages: int = 8
    """A CTA's keys of a block are 8 panels, its values 8 chunks: one trip round the ring each."""
    epilogue: str = "direct"
    aligns_base: bool = False
    """There is no room: the declaration asks for the alignment."""
    panel_columns: int = 64

    @property
    @override
    def grid(self) -> str:
        return "two CTAs a tile, at most as many as multiprocessors"

    @property
    def own_keys(self) -> int:
        """Keys of a block whose scores a CTA computes."""
        return self.BN // self.cta_group

    @property
    def own_columns(self) -> int:
        """Columns of value and output that a CTA holds."""
        return self.value_depth // self.cta_group

    @property
    def own_chunks(self) -> int:
        """Chunks of P.V, 16 keys each, whose probabilities a CTA computes itself."""
        return self.own_keys // CHUNK_KEYS

    @property
    def slot_bytes(self) -> int:
        """Bytes of a ring slot: 64 keys x 64 columns of K, or 16 keys x 256 columns of V."""
        return self.own_keys * self.panel_columns * self.element_bytes

    @property
    def query_panel_bytes(self) -> int:
        """Bytes of one panel of the tile's queries."""
        return self.BM * self.panel_columns * self.element_bytes

    @property
    def probability_bytes(self) -> int:
        """Bytes of the peer's probabilities for one warpgroup and block."""
        return WARPGROUP_ROWS * self.own_keys * self.element_bytes

    @property
    def row_message_bytes(self) -> int:
        """Bytes of one float32 for each row of a warpgroup: maxima, or sums."""
        return WARPGROUP_ROWS * 4

    @cached_property
    def ring(self) -> Ring:
        """The panels of keys and chunks of values."""
        return self.block_ring(
            "ring",
            self.slot_bytes,
            f"Ring of keys and values, {self.swizzle}: a panel of {self.own_keys} keys x "
            f"{self.panel_columns} columns, or {CHUNK_KEYS} keys x {self.own_columns} columns of "
            "values",
            loaded(
                "the loader, then the bytes of the slot",
                "both warpgroups",
                "a panel of keys, or a chunk of values, has landed in its slot",
                self.slot_bytes,
            ),
            freed(
                self.num_consumer_warps,
                "every consumer warp, once its product has read the slot",
                "a slot may be overwritten, and the panel of Q that it was multiplied by",
            ),
        )

    @cached_property
    def tile_ring(self) -> Ring:
        """The slots that tiles pass through."""
        return self.tiles_to_consumers(
            "first row, head, batch",
            shared=self.scheduler == "dynamic",
            loader="the loader; in the peer, then the bytes from the leader's loader",
        )

    @property
    def _crossing(self) -> int:
        """Buffers of what a warpgroup gets from its like in the peer."""
        return BUFFERS * self.num_consumer_warpgroups

    def _from_peer(self, name: str, what: str, size: int) -> Barrier:
        return Barrier(
            f"{name}_full",
            self._crossing,
            1,
            "store_bytes",
            f"the warpgroup itself, then the bytes of the peer's {what}",
            "the warpgroup",
            f"the peer's {what} have arrived",
            transaction_bytes=size,
            cta="pair",
        )

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return (
            Barrier(
                "query_full",
                QUERY_BARRIERS,
                1,
                "tma_bytes",
                "the loader, then the bytes of two panels of Q",
                "both warpgroups",
                "two panels of the tile's queries have landed",
                transaction_bytes=self.num_panels // QUERY_BARRIERS * self.query_panel_bytes,
            ),
            *self.ring.rows,
            self._from_peer("maximum", "row maxima of a block", self.row_message_bytes),
            self._from_peer("probability", "probabilities of a block", self.probability_bytes),
            Barrier(
                "buffers_free",
                self._crossing,
                WARPGROUP_WARPS,
                "thread",
                "every warp of the peer's warpgroup, once it has read the maxima of a block "
                "and multiplied the probabilities of the one before",
                "the warpgroup",
                "probabilities of the next block, and maxima of the one after it, may cross",
                cta="pair",
            ),
            self._from_peer("sum", "row sums of a tile", self.row_message_bytes),
            *self.tile_ring.rows,
        )

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        crossing, message = self._crossing, self.row_message_bytes
        queries = (
            f"Queries of the tile, one slot a panel of {self.BM} x {self.panel_columns} "
            f"{self.dtype}, {self.swizzle}"
        )
        probabilities = (
            "Probabilities of the peer's keys, written by the peer, for each of two blocks and "
            f"warpgroup: {WARPGROUP_ROWS} x {self.own_keys} {self.dtype}, {self.swizzle}"
        )
        maxima = "Row maxima of the peer's scores, for each of two blocks and warpgroup"
        sums = "Row sums of the peer's probabilities, for each of two tiles and warpgroup"
        return (
            slots_of("query", self.num_panels, self.query_panel_bytes, queries),
            slots_of("probability", crossing, self.probability_bytes, probabilities),
            self.ring.region,
            slots_of("maximum", crossing, message, maxima, alignment=16),
            slots_of("sum", crossing, message, sums, alignment=16),
            self.tile_ring.region,
            barrier_region(self.barrier_rows),
        )
