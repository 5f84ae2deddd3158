"""The memory of the latent kernel: the sizes that follow from its tile, barriers and regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_model import CHUNK, FLOAT_BYTES, PARKED_BYTES, WGMMA_ROWS
from fa4gen.designs.common.latent import LatentPlan
from fa4gen.designs.common.model import Barrier
from fa4gen.designs.common.rings import freed, loaded, rows_of
from fa4gen.designs.common.roles import WARPGROUP, WARPGROUP_WARPS
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent.config import LatentConfig
    from fa4gen.designs.common.model import SharedRegion
    from fa4gen.designs.common.rings import Ring

PART_PANELS: Final = 2
"""Panels that arrive together: the products begin with the first ones."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class LatentMemory(LatentPlan):
    """Sizes, barriers and regions."""

    config: LatentConfig
    packed_rows: int = WGMMA_ROWS
    num_parts: int = 2
    """Warpgroups, each with half of the output's columns, and with every other block."""
    producer_registers: int = 40
    """Registers per thread after setmaxnreg."""
    consumer_registers: int = 232
    part_words: str = "warpgroup"

    @property
    @override
    def num_consumer_warps(self) -> int:
        return self.num_parts * WARPGROUP_WARPS

    @property
    @override
    def cluster(self) -> int:
        # Two tiles of a key head are a pair's, and its keys are loaded once.
        return 1 if self.split_blocks else 2

    @property
    @override
    def threads(self) -> int:
        # The consumers, and the loader's warpgroup, which lends its registers.
        return WARPGROUP * (self.num_parts + 1)

    @property
    def half_panels(self) -> int:
        """Panels of the left values of a block, or of the right ones: a warpgroup's."""
        return self.value_depth // self.panel_columns // self.num_parts

    @property
    def half_parts(self) -> int:
        """Barriers that they arrive on, each for two panels."""
        return self.half_panels // PART_PANELS

    @property
    def half_bytes(self) -> int:
        """The bytes of a half of the values."""
        return self.half_panels * self.BN * PANEL_BYTES

    @property
    def tail_bytes(self) -> int:
        """The bytes of the columns of a block that are not values."""
        return self.block_bytes - self.num_parts * self.half_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of keys."""
        return self.num_panels * self.BN * PANEL_BYTES

    @property
    @override
    def exchange_columns(self) -> int:
        return self.BN * self.element_bytes // 4

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """The columns of a block, which share its slot, by when they arrive and are free.

        The rows of the right half are as far apart as those of the left, which the kernel relies
        on.
        """
        both = " of both CTAs" if self.cluster == 2 else ""
        arrivals = WARPGROUP_WARPS * self.cluster
        filled = "the loader, then the bytes of these columns"
        halves = (
            self.block_ring(
                half,
                0,
                "",
                loaded(
                    filled,
                    f"the warpgroup whose block it is, then warpgroup {number}",
                    f"two panels of the {half} columns of a block are in its slot",
                    self.half_bytes // self.half_parts,
                    parts=self.half_parts,
                ),
                freed(
                    arrivals,
                    f"every warp of warpgroup {number}{both}, once it has multiplied by these "
                    "columns as values",
                    f"two panels of the {half} columns of a slot may be overwritten",
                    parts=self.half_parts,
                ),
            )
            for number, half in enumerate(("left", "right"))
        )
        tail = self.block_ring(
            "tail",
            0,
            "",
            loaded(
                filled,
                "the warpgroup whose block it is",
                "the columns of a block that are no values are in its slot",
                self.tail_bytes,
            ),
            freed(
                arrivals,
                f"every warp of warpgroup 0{both}, once it has the scores of its block, or has "
                "multiplied by the probabilities of the other's, which are in their place",
                "these columns of a slot may be overwritten",
            ),
        )
        return (*halves, tail)

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        probabilities = Barrier(
            "probabilities_full",
            self.num_parts,
            WARPGROUP_WARPS,
            "thread",
            "every warp of the warpgroup that computed them",
            "the other warpgroup",
            "the probabilities of its block, and maxima, are in shared memory",
        )
        return (*rows_of(self.rings), probabilities)

    @property
    @override
    def regions(self) -> tuple[SharedRegion, ...]:
        rows, block, dtype = self.packed_rows, self.block_bytes, self.dtype
        query_bytes = rows * self.depth * self.element_bytes
        row_bytes = FLOAT_BYTES * rows
        keys = (
            f"Blocks of keys, whose first {self.value_depth} columns are the values: "
            f"{self.BN} x {self.depth} {dtype}, {self.swizzle}"
        )
        query = f"Query: {rows} x {self.depth} {dtype}, {self.swizzle}"
        query += "; before the first one the line of the sequences" * self.has_tile_lengths
        exchange = (
            f"Probabilities of a block: {rows} x {self.BN} {dtype}, {self.swizzle}; after the last "
            "one, what threads combine together"
        )
        maxima = "Maximum of each row that the probabilities of a warpgroup's block belong to"
        sums = "Sum of each row, of each warpgroup's keys"
        parked = "What each warp knows of the tile that it works on, the loader last"
        warps = self.num_consumer_warps + 1
        return (
            slots_of("kv", self.num_parts, block, keys),
            slots_of("query", 1, query_bytes, query),
            slots_of("exchange", 1, rows * self.BN * self.element_bytes, exchange),
            slots_of("maxima", self.num_parts, row_bytes, maxima, alignment=CHUNK),
            slots_of("statistics", self.num_parts, row_bytes, sums, alignment=CHUNK),
            self.combining_region,
            slots_of("parked", warps, PARKED_BYTES, parked, alignment=CHUNK),
            barrier_region(self.barrier_rows),
        )
