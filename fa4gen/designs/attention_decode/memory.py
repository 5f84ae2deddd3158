"""The memory of a decode kernel: the sizes that follow from its tile, barriers and regions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_model import CHUNK, FLOAT_BYTES, WARP, WGMMA_ROWS, SharedKeysPlan
from fa4gen.designs.common.rings import freed, loaded
from fa4gen.designs.common.roles import REGISTER_STEP
from fa4gen.designs.common.shared_memory import barrier_region, slots_of
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.config import DecodeConfig
    from fa4gen.designs.common.model import Barrier, SharedRegion
    from fa4gen.designs.common.rings import Ring

QUARTERS: Final = 4
"""The quarters of a multiprocessor: warps are divided among them."""
BLOCK_UNITS: Final = 4
"""A share is even to a quarter of a block: a block more is 3 % of a share of 32."""
HELD_DEPTH: Final = 256
"""Columns of the query that registers have room for, with as many of the output."""
WGMMA_COMBINED: Final = 16
"""Columns, times WGMMA_ROWS: a place for what each thread of a warpgroup combines."""
EXCHANGE_BYTES: Final = 32 << 10
"""About what the exchange between warps may take: columns pass through it in parts."""
EXCHANGE_PADDING: Final = 4
"""Floats after each row of the exchange, so that no two lanes of a store share a bank."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class DecodeMemory(SharedKeysPlan):
    """Sizes, barriers and regions."""

    config: DecodeConfig

    @property
    @override
    def is_wide(self) -> bool:
        return self.packed_rows == WGMMA_ROWS

    @property
    def query_in_shared(self) -> bool:
        """Whether products read the query from shared memory; else a warp holds it in registers."""
        return self.is_wide or self.depth > HELD_DEPTH

    @property
    def query_bytes(self) -> int:
        """Bytes of the rows of a tile."""
        return self.packed_rows * self.depth * self.element_bytes

    @property
    @override
    def part_words(self) -> str:
        return "warpgroup" if self.is_wide else "warp"

    @property
    @override
    def num_consumer_warps(self) -> int:
        return self.num_parts * (4 if self.is_wide else 1)

    @property
    @override
    def unit_keys(self) -> int:
        return self.part_keys if self.is_wide else self.BN // BLOCK_UNITS

    @property
    @override
    def threads(self) -> int:
        return WARP * (self.num_consumer_warps + 1)

    @property
    def registers(self) -> int:
        """The registers of each thread, from a quarter of them for each quarter of the warps."""
        quarters = -(-self.threads // (QUARTERS * WARP)) * QUARTERS * WARP
        most = self.hardware.registers // quarters // REGISTER_STEP * REGISTER_STEP
        return min(most, self.hardware.max_registers_per_thread)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of keys, or of values."""
        return self.BN * self.depth * self.kv_element_bytes

    @property
    @override
    def has_descales(self) -> bool:
        return self.kv_dtype != self.dtype

    @property
    @override
    def panel_columns(self) -> int:
        return math.gcd(self.depth, PANEL_BYTES // self.kv_element_bytes)

    @property
    @override
    def exchange_columns(self) -> int:
        columns: int = self.depth
        if self.is_wide:  # half of what each of two parts has; of one part, what combining needs
            return columns // 2 if self.num_parts == 2 else WGMMA_COMBINED
        rows = self.num_parts * self.packed_rows
        most = EXCHANGE_BYTES - self.query_in_shared * self.query_bytes
        while columns % 2 == 0 and rows * columns * FLOAT_BYTES > most:
            columns //= 2
        return columns

    @property
    def exchange_bytes(self) -> int:
        """Bytes of the exchange that a part has."""
        padding = 0 if self.is_wide else EXCHANGE_PADDING
        return self.packed_rows * (self.exchange_columns + padding) * FLOAT_BYTES

    @cached_property
    def ring(self) -> Ring:
        """The blocks of keys and values, which take turns."""
        return self.block_ring(
            "kv",
            self.block_bytes,
            "Ring of blocks, keys and values in turn: "
            f"{self.BN} x {self.depth} {self.kv_dtype}, {self.swizzle}",
            loaded(
                "the loader, then the bytes of the block",
                "every consumer",
                "a block of keys, or of values, has landed in its slot",
                self.block_bytes,
            ),
            freed(
                self.num_consumer_warps,
                "every consumer warp, once it has read its keys of the block",
                "a slot may be overwritten",
            ),
        )

    @cached_property
    @override
    def barrier_rows(self) -> tuple[Barrier, ...]:
        return self.ring.rows

    @property
    @override
    def regions(self) -> list[SharedRegion]:
        rows = self.packed_rows
        regions = [self.ring.region]
        if self.query_in_shared:
            holds = f"Query: {rows} x {self.depth} {self.dtype}, {self.swizzle}"
            regions.append(slots_of("query", 1, self.query_bytes, holds))
        holds = (
            f"Output of each {self.part_words}'s keys, {rows} x {self.exchange_columns} float32 at "
            "a time"
        )
        regions.append(
            slots_of("exchange", self.num_parts, self.exchange_bytes, holds, alignment=CHUNK)
        )
        if not self.is_wide or self.num_parts > 1:  # a row that one warpgroup has needs none
            holds = f"Maximum and sum of each row, of each {self.part_words}'s keys"
            size = 2 * FLOAT_BYTES * rows
            regions.append(slots_of("statistics", self.num_parts, size, holds, alignment=CHUNK))
        regions += [self.combining_region, barrier_region(self.barrier_rows)]
        if self.has_tile_lengths:
            holds = "Blocks of a tile of each sequence before this one, and of all"
            regions.append(slots_of("line", 1, self.line_bytes, holds, alignment=CHUNK))
            holds = "Blocks of 32 sequences, added up by a warp"
            regions.append(slots_of("line_sums", 1, self.line_sums_bytes, holds, alignment=CHUNK))
        return regions
