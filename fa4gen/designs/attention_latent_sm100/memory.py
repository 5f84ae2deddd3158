"""The memory of the latent kernel on Blackwell: sizes, barriers, shared and tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_model import CHUNK, PARKED_BYTES
from fa4gen.designs.common.latent import LatentPlan
from fa4gen.designs.common.model import Barrier, SharedRegion, TensorMemoryRegion
from fa4gen.designs.common.rings import freed, loaded, rows_of
from fa4gen.designs.common.roles import WARPGROUP, WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent_sm100.config import LatentPairConfig
    from fa4gen.designs.common.rings import Ring

COMBINED_BYTES: Final = 32
"""The bytes of a thread: four columns, a maximum, a sum."""
BUFFERS: Final = ("even", "odd")
"""The buffers of scores: blocks take turns."""
PAIR_ROWS: Final = 128
"""Rows of a product over a pair of CTAs."""
ISSUING_WARPS: Final = 3


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class LatentPairMemory(LatentPlan):
    """Sizes, barriers and regions."""

    config: LatentPairConfig
    cta_group: int = 2
    ctas_per_tile: int = 2
    """Both CTAs, with half of the rows each."""
    packed_rows: int = PAIR_ROWS
    num_parts: int = 1
    part_words: str = "pair"
    exchange_columns: int = 32
    num_qk_stages: int = 3
    """Parts along the depth in which keys arrive: a part's place is free with its scores."""

    @property
    def tile_rows(self) -> int:
        """Packed rows of a tile that a CTA has: half of them."""
        return self.packed_rows // self.cta_group

    @property
    @override
    def num_consumer_warps(self) -> int:
        return WARPGROUP_WARPS  # of the softmax; they also write the output

    @property
    @override
    def threads(self) -> int:
        return 32 * (self.num_consumer_warps + ISSUING_WARPS)

    @property
    @override
    def grid(self) -> str:
        return (
            "two CTAs a pair: as many pairs as multiprocessors have room for, or blocks of keys "
            "where there are fewer"
        )

    @property
    def key_bytes(self) -> int:
        """Bytes of a CTA's keys of a block."""
        return self.num_panels * self.key_rows * PANEL_BYTES

    @property
    def value_bytes(self) -> int:
        """Bytes of a CTA's columns of the values of a block."""
        return self.value_depth // self.cta_group * self.BN * self.element_bytes

    def _ring(self, name: str, size: int, parts: int, holds: str, what: str, product: str) -> Ring:
        return self.block_ring(
            name,
            size,
            f"{holds} {self.dtype}, {self.swizzle}",
            loaded(
                "the leader's loader, then the bytes of both CTAs",
                "the MMA warp",
                f"{what} has landed in each CTA",
                self.cta_group * size // parts,
                cta="leader",
                parts=parts,
            ),
            freed(
                1,
                f"commit of {product}",
                "the slot may be overwritten",
                how="multicast_commit",
                parts=parts,
            ),
        )

    @cached_property
    def rings(self) -> tuple[Ring, Ring]:
        """A CTA's keys, and its columns of the values."""
        columns = self.value_depth // self.cta_group
        return (
            self._ring(
                "key", self.key_bytes, self.num_qk_stages,
                f"Keys of a block that are this CTA's: {self.key_rows} x {self.depth}",
                "a part of the columns of half of a block's keys", "Q.K",
            ),
            self._ring(
                "value", self.value_bytes, 1,
                f"Columns of its values that are this CTA's: {self.BN} x {columns}",
                "half of the value columns of a block", "P.V",
            ),
        )  # fmt: skip

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        # What the leader's MMA warp waits for counts the warps, or bytes, of both CTAs.
        def from_consumers(name: str, meaning: str) -> Barrier:
            arrivals = self.cta_group * WARPGROUP_WARPS
            by = "every consumer warp of both CTAs"
            return Barrier(name, 1, arrivals, "thread", by, "the MMA warp", meaning, cta="leader")

        return (
            *rows_of(self.rings),
            Barrier(
                "scores_full", len(BUFFERS), 1, "multicast_commit", "commit of Q.K",
                "the consumers", "the scores of a block are in tensor memory",
            ),
            from_consumers("query_full", "the rows of both CTAs are in shared memory"),
            from_consumers(
                "probabilities_full",
                "P is stored, its scores have been loaded, and the output rescaled, or read",
            ),
            Barrier(
                "output_full", 1, 1, "multicast_commit", "commit of P.V", "the consumers",
                "P of a block has been read, and P.V added to the output",
            ),
        )  # fmt: skip

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        rows, size, dtype = self.tile_rows, self.element_bytes, self.dtype
        query = (
            f"Query: {rows} x {self.depth} {dtype}, {self.swizzle}; between two of them the output "
            "on its way out"
        )
        query += "; before the first one the line of the sequences" * self.has_tile_lengths
        block = f"Probabilities of a block: {rows} x {self.BN} {dtype}, {self.swizzle}"
        exchange = (
            "Numbers that the two threads of a row exchange; after the last block, what threads "
            "combine together"
        )
        parked = "What each consumer warp knows of the tile that it works on"
        return (
            *(ring.region for ring in self.rings),
            slots_of("query", 1, rows * self.depth * size, query),
            slots_of("probabilities", 1, rows * self.BN * size, block),
            slots_of("exchange", 2, WARPGROUP * COMBINED_BYTES, exchange, alignment=CHUNK),
            self.combining_region,
            slots_of("parked", self.num_consumer_warps, PARKED_BYTES, parked, alignment=CHUNK),
            SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory"),
            barrier_region(self.barrier_rows),
        )

    @property
    @override
    def tensor_memory(self) -> tuple[TensorMemoryRegion, ...]:
        # The output, then the buffers of scores. A product of 128 rows and N columns over a pair
        # takes N / 2 columns: lanes 0 to 63 hold its first half, lanes 64 to 127 its second.
        rows, depth, keys = self.tile_rows, self.value_depth, self.BN
        output = f"output: {rows} x {depth} float32, as two halves of {depth // 2}"
        scores = (
            TensorMemoryRegion(
                f"s_{name}", depth // 2 + i * keys // 2, keys // 2,
                f"scores of {name} blocks: {rows} x {keys} float32, as two halves of {keys // 2}",
            )
            for i, name in enumerate(BUFFERS)
        )  # fmt: skip
        return (TensorMemoryRegion("o", 0, depth // 2, output), *scores)
