"""The memory of attention on Hopper: the sizes that follow from its tile, barriers and regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.hopper_model import HopperPlan
from fa4gen.designs.common.rings import Ring, freed, loaded, rows_of
from fa4gen.designs.common.roles import WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
    from fa4gen.designs.common.model import Barrier, Ctas, SharedRegion

CHUNK_KEYS = 16
"""Keys of one wgmma of P.V."""
MIN_BLOCK = 16
MAX_BLOCK = 256
PROBABILITY_REGISTERS = 4
"""The registers of a thread for the probabilities of such a chunk: 64 x 16 of 16 bits in 128
threads."""
ROW_REGISTERS = 4
"""The registers of a thread for the maxima and sums of its two rows."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperMemory(HopperPlan):
    """Sizes, barriers and regions."""

    config: HopperAttentionConfig
    num_pv_chunks_in_flight: int
    ping_pong: bool
    overlap_epilogue: bool

    @property
    def overlap(self) -> bool:
        """Whether P.V is issued in chunks during the exponentials, and the next Q.K before."""
        return self.config.overlap

    @property
    @override
    def tile_heads(self) -> int:
        return self.config.tile_heads

    @property
    @override
    def mixed_tile_heights(self) -> bool:
        if self.is_pair or self.lists_blocks:
            return False
        return self.num_consumer_warpgroups == 3 or self.is_ragged

    @property
    def num_chunks(self) -> int:
        """Chunks of 16 keys in a block: P.V is issued in these."""
        return self.BN // CHUNK_KEYS

    @property
    def query_bytes(self) -> int:
        """Bytes of the query rows of one warpgroup."""
        return WARPGROUP_ROWS * self.depth * self.element_bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of a block of keys."""
        return self.BN * self.depth * self.element_bytes

    @property
    def value_bytes(self) -> int:
        """Bytes of a block of values."""
        return self.BN * self.value_depth * self.element_bytes

    @property
    def stage_bytes(self) -> int:
        """Bytes of a slot of both rings."""
        return self.key_bytes + self.value_bytes

    @property
    @override
    def panel_columns(self) -> int:
        return 64 if self.depth % 64 == 0 == self.value_depth % 64 else 32

    @property
    def num_value_panels(self) -> int:
        """Panels of values and output side by side."""
        return self.value_depth // self.panel_columns

    @cached_property
    def query_ring(self) -> Ring:
        """The query rows of each consumer warpgroup, and what stages its output."""
        staged = self.epilogue == "tma_store"
        holds = f"Queries, one slot a consumer warpgroup: {WARPGROUP_ROWS} x {self.depth} "
        holds += f"{self.dtype}, {self.swizzle}"
        return Ring(
            name="query",
            slots=self.num_consumer_warpgroups,
            slot_bytes=self.query_bytes,
            holds=holds + "; then the output on its way to global memory" * staged,
            full=loaded(
                "the loader, then the bytes of Q",
                "the warpgroup",
                "a warpgroup's query rows have landed",
                self.query_bytes,
            ),
            empty=freed(
                1 if staged else WARPGROUP_WARPS,
                "the thread whose TMA store has read the slot"
                if staged
                else "each warp of the warpgroup, after its last Q.K",
                "a warpgroup's query slot may be overwritten",
            ),
        )

    @cached_property
    def rings(self) -> tuple[Ring, Ring]:
        """The blocks of keys, and those of values."""
        return (
            self._ring("key", "Q.K", self.key_bytes, self.depth),
            self._ring("value", "P.V", self.value_bytes, self.value_depth),
        )

    def _ring(self, name: str, product: str, block_bytes: int, columns: int) -> Ring:
        """Return a ring; in a pair, each CTA fills half of both CTAs' slots."""
        half = ", half of them from the peer" * self.is_pair
        both = " of both CTAs" * self.is_pair
        cta: Ctas = "pair" if self.is_pair else "own"
        return self.block_ring(
            name,
            block_bytes,
            f"Ring of {name} blocks: {self.BN} x {columns} {self.dtype}, {self.swizzle}",
            loaded(
                f"the loader, then the bytes of the block{half}",
                "every consumer",
                f"a block of {name}s has landed in its slot",
                block_bytes,
                cta=cta,
            ),
            freed(
                self.num_consumer_warps * self.cta_group,
                f"every consumer warp{both}, once {product} has read the block",
                f"a {name} slot may be overwritten",
                cta=cta,
            ),
        )

    @cached_property
    def tile_ring(self) -> Ring:
        """The slots that tiles pass through."""
        shared = self.is_pair and self.scheduler == "dynamic"
        known = "first row, head, batch, active warpgroups"
        return self.tiles_to_consumers(known, shared=shared)

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return rows_of((self.query_ring, *self.rings, self.tile_ring))

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        return (
            self.query_ring.region,
            *(ring.region for ring in self.rings),
            barrier_region(self.barrier_rows),
            self.tile_ring.region,
        )
