"""The memory of attention on Hopper: the sizes that follow from its tile, barriers and regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.hopper_model import HopperPlan
from fa4gen.designs.common.rings import End, Ring, freed, loaded, rows_of, tile_ring
from fa4gen.designs.common.roles import WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES, probability_shift
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
    from fa4gen.designs.common.model import Barrier, Ctas, SharedRegion

MIN_BLOCK = 16
MAX_BLOCK = 256
PROBABILITY_REGISTERS = 4
"""The registers of a thread for the probabilities of one wgmma of P.V: 64 x 32 bytes in 128
threads."""
TRANSPOSING_WARPS = 3
"""Warps of the producer that transpose blocks of values; its first warp is the loader's."""
PAGE_SCALE_BYTES = 16
"""The bytes of four float32 for the keys of a block that are in one page."""
ZERO_SCALE_LOG2 = -40
"""The logarithm for scales of 0, those of pages of zeros: below others, so that it sets no maximum;
float32 still holds the probabilities that it leaves next to scales of up to 2^60."""
ROW_REGISTERS = 4
"""The registers of a thread for the maxima and sums of its two rows."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperMemory(HopperPlan):
    """Sizes, barriers and regions."""

    config: HopperAttentionConfig
    num_pv_chunks_in_flight: int
    ping_pong: bool
    overlap_epilogue: bool
    promote_every: int | None = None
    """Blocks after which partial outputs are added to sums in float32; None: never."""

    @property
    @override
    def has_descales(self) -> bool:
        return self.element_bytes == 1

    @property
    def transposes_values(self) -> bool:
        """Whether values are transposed in shared memory: wgmma of 8 bits reads them key by key."""
        return self.element_bytes == 1 and not self.has_lines_of_keys

    @property
    def values_arrive(self) -> str:
        """The arrivals that consumers wait for at a slot of values, in words."""
        return "the transposing warps" if self.transposes_values else "the bytes of V"

    @property
    @override
    def has_lines_of_keys(self) -> bool:
        return self.config.value_major == "keys"

    @property
    @override
    def out_dtype(self) -> str:
        return self.config.resolved_out_dtype

    @property
    @override
    def probability_shift(self) -> int:
        return probability_shift(self.element_bytes, self.rescale_threshold)

    @property
    @override
    def zero_scale_log2(self) -> int | None:
        return ZERO_SCALE_LOG2 if self.has_page_scales else None

    @property
    @override
    def promoted_keys(self) -> int | None:
        return None if self.promote_every is None else self.promote_every * self.BN

    @property
    def chunk_keys(self) -> int:
        """Keys of one wgmma of P.V."""
        return self.mma_k

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
        if self.is_pair or self.leaves_blocks_out:
            return False
        return self.num_consumer_warpgroups == 3 or self.is_ragged

    @property
    def num_chunks(self) -> int:
        """Chunks of a block's keys: P.V is issued in these."""
        return self.BN // self.chunk_keys

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
        """Bytes of a slot of all rings of blocks."""
        return self.key_bytes + self.value_bytes * (1 + self.transposes_values)

    @property
    @override
    def panel_columns(self) -> int:
        widest = PANEL_BYTES // self.element_bytes
        widths = (widest, widest // 2, widest // 4)
        return next(
            width for width in widths if self.depth % width == 0 == self.value_depth % width
        )

    @property
    def value_panel_keys(self) -> int:
        """Keys of a swizzled panel of transposed values, a byte each."""
        return next((width for width in (128, 64) if self.BN % width == 0), 32)

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
    def rings(self) -> tuple[Ring, ...]:
        """The blocks of keys, and those of values: also as they come, where P.V reads others."""
        keys = self._ring("key", "Q.K", self.key_bytes, self.depth)
        if self.transposes_values:
            return keys, self._value_rows, self._transposed_values
        if self.has_lines_of_keys:
            return keys, self._value_lines
        return keys, self._ring("value", "P.V", self.value_bytes, self.value_depth)

    @property
    def _value_rows(self) -> Ring:
        return self.block_ring(
            "value_rows",
            self.value_bytes,
            f"Ring of value blocks as they come: {self.BN} x {self.value_depth} {self.dtype}, "
            f"{self.swizzle}",
            loaded(
                "the loader, then the bytes of the block",
                "every transposing warp",
                "a block of values has landed in its slot",
                self.value_bytes,
            ),
            freed(
                TRANSPOSING_WARPS,
                "every transposing warp, once it has read its keys",
                "a slot of values as they come may be overwritten",
            ),
        )

    @property
    def _value_lines(self) -> Ring:
        return self.block_ring(
            "value",
            self.value_bytes,
            f"Ring of value blocks, keys contiguous: {self.value_depth} x {self.BN} {self.dtype}, "
            f"{self.value_panel_keys}-byte swizzle",
            loaded(
                "the loader, then the bytes of the block",
                "every consumer",
                "a block of values has landed in its slot",
                self.value_bytes,
            ),
            freed(
                self.num_consumer_warps,
                "every consumer warp, once P.V has read the block",
                "a value slot may be overwritten",
            ),
        )

    @property
    def _transposed_values(self) -> Ring:
        keys = self.value_panel_keys
        return self.block_ring(
            "value",
            self.value_bytes,
            f"Ring of transposed value blocks: {self.value_depth} x {self.BN} {self.dtype}, "
            f"{keys}-byte swizzle",
            End(
                arrivals=TRANSPOSING_WARPS,
                arrived_by="every transposing warp",
                waited_by="every consumer",
                meaning="a block of values is in its slot, transposed",
            ),
            replace(
                freed(
                    self.num_consumer_warps,
                    "every consumer warp, once P.V has read the block",
                    "a value slot may be overwritten",
                ),
                waited_by="every transposing warp",
            ),
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

    @property
    def _promoted_sums(self) -> SharedRegion:
        return slots_of(
            "sums",
            self.num_consumer_warpgroups,
            WARPGROUP_ROWS * self.value_depth * 4,
            f"Promoted sums, one slot a consumer warpgroup: {WARPGROUP_ROWS} x {self.value_depth} "
            "fp32, as threads hold them",
        )

    @property
    def _page_scales(self) -> SharedRegion:
        # Keys are released before their softmax. Slot n of twice as many is written again once all
        # warps have released the keys of block n + num_kv_stages: the softmax of n is over then.
        boxes = self.BN // self.key_source.box_rows(self.BN)
        return slots_of(
            "page_scales",
            2 * self.num_kv_stages,
            PAGE_SCALE_BYTES * boxes,
            f"Scales of the pages of a block, in two slots for each of keys: {boxes} x 4 fp32, the "
            "scale of keys, and of that of values the logarithm, the inverse, and a mask that has "
            "no bits where it is 0",
            alignment=PAGE_SCALE_BYTES,
        )

    @cached_property
    def tile_ring(self) -> Ring:
        """The slots that tiles pass through."""
        shared = self.is_pair and self.scheduler == "dynamic"
        known = "first row, head, batch, active warpgroups"
        if self.transposes_values:
            return self._tiles_to_all(known)
        return self.tiles_to_consumers(known, shared=shared)

    def _tiles_to_all(self, known: str) -> Ring:
        """Return the slots that tiles pass through where warps of the producer read them, too."""
        return tile_ring(
            self.config,
            self.num_consumer_warps + TRANSPOSING_WARPS,
            shared=False,
            readers="every consumer and transposing warp",
            reader_warps="every consumer warp, and every transposing one",
            both="",
            holds=f"consumers and the transposing warps: {known}",
        )

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return rows_of((self.query_ring, *self.rings, self.tile_ring))

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        promoted = () if self.promote_every is None else (self._promoted_sums,)
        scales = (self._page_scales,) if self.has_page_scales else ()
        return (
            self.query_ring.region,
            *(ring.region for ring in self.rings),
            *promoted,
            *scales,
            barrier_region(self.barrier_rows),
            self.tile_ring.region,
        )
