"""From the config to one value for every key of a decode kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_decode.config import DecodeConfig
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_model import FLOAT_BYTES, WARP, WGMMA_ROWS
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.roles import REGISTER_STEP
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES, DesignValues, take_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.model import Choice

QUARTERS: Final = 4
"""The quarters of a multiprocessor: warps are divided among them."""
MMA_ROWS: Final = 8
"""Query rows of one mma: its narrow side."""
MMA_KEYS: Final = 16
WGMMA_COMBINED: Final = 16
"""Columns, times WGMMA_ROWS: a place for what each thread of a warpgroup combines."""
PACKED_ROWS: Final = 8
EXCHANGE_BYTES: Final = 32 << 10
"""About what the exchange between warps may take: columns pass through it in parts."""
EXCHANGE_PADDING: Final = 4
"""Floats after each row of the exchange, so that no two lanes of a store share a bank."""
BLOCK_UNITS: Final = 4
"""A share is even to a quarter of a block: a block more is 3 % of a share of 32."""
MAX_STAGES: Final = 16
"""The schema's limit on Hopper; no more fit on any."""
RESCALE_THRESHOLD: Final = 8.0
"""In powers of two."""


@dataclass(frozen=True)
class Division:
    """The division of a block of keys: the fastest one measured, for each depth."""

    parts: int
    """Warps, or warpgroups, each with keys and a softmax of its own."""
    keys: int
    """The keys of each part."""


DIVISIONS = {
    64: Division(8, 32),
    96: Division(8, 16),
    128: Division(8, 16),
    192: Division(4, 16),
    256: Division(4, 16),
    512: Division(4, 16),
}
"""Blocks of 24 or 32 KB: the rings of smaller ones cost more barriers, larger ones fill later. At
depth 512 they have 64 KB: fewer keys would leave a warp without work."""
HELD_DEPTH: Final = 256
"""Columns of the query that registers have room for, with as many of the output."""
WIDE_DIVISIONS = {
    64: Division(2, 64),
    128: Division(2, 64),
    192: Division(1, 64),
    256: Division(1, 64),
}
"""The divisions for warpgroups, in tiles of 64 rows: one of them has registers for 256 columns."""
FP8_DIVISIONS = {
    64: Division(8, 64),
    96: Division(8, 16),
    128: Division(8, 32),
    192: Division(4, 32),
    256: Division(4, 32),
}
"""The divisions for keys of 8 bits: as many bytes. At depth 96 half of them: three panels of pages
of 16 would be more boxes than a warp has lanes."""


@dataclass(frozen=True)
class Values(DesignValues[DecodeConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    packed_rows: int
    num_parts: int
    part_keys: int
    num_kv_stages: int
    rescale_threshold: float

    @property
    def BM(self) -> int:  # noqa: N802
        """Packed rows of a tile."""
        return self.packed_rows

    @property
    def is_wide(self) -> bool:
        """Whether the rows of a tile are those of a wgmma, and the parts warpgroups."""
        return self.packed_rows == WGMMA_ROWS

    @property
    def query_in_shared(self) -> bool:
        """Whether products read the query from shared memory; else a warp holds it in registers."""
        return self.is_wide or self.config.depth > HELD_DEPTH

    @property
    def query_bytes(self) -> int:
        """Bytes of the rows of a tile."""
        return self.packed_rows * self.config.depth * self.element_bytes

    @property
    def part_words(self) -> str:
        """The name of a part, which computes on keys of its own."""
        return "warpgroup" if self.is_wide else "warp"

    @property
    def num_consumer_warps(self) -> int:
        """Warps of all parts."""
        return self.num_parts * (4 if self.is_wide else 1)

    @property
    def BN(self) -> int:  # noqa: N802
        """Keys of a block."""
        return self.num_parts * self.part_keys

    @property
    def unit_keys(self) -> int:
        """Keys of a unit: what shares of CTAs are counted in, and what one box brings in."""
        return self.part_keys if self.is_wide else self.BN // BLOCK_UNITS

    @property
    def split_blocks(self) -> int:
        """Blocks of a split of a fixed number of keys; 0 for even shares."""
        split = self.config.split_keys
        return 0 if split == "auto" else split.keys // self.BN

    @property
    def threads(self) -> int:
        """The threads of the consumers and the warp that loads."""
        return WARP * (self.num_consumer_warps + 1)

    @property
    def registers(self) -> int:
        """The registers of each thread, from a quarter of them for each quarter of the warps."""
        quarters = -(-self.threads // (QUARTERS * WARP)) * QUARTERS * WARP
        most = self.arch.registers // quarters // REGISTER_STEP * REGISTER_STEP
        return min(most, self.arch.max_registers_per_thread)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of keys, or of values."""
        return self.BN * self.config.depth * self.kv_element_bytes

    @property
    def has_descales(self) -> bool:
        """Whether keys and values are of 8 bits and come with scales, and the query is of 16."""
        return self.config.resolved_kv_dtype != self.config.dtype

    @property
    def has_page_scales(self) -> bool:
        """Whether the scales are those of pages."""
        return self.has_descales and self.config.resolved_kv_scale == "page"

    @property
    def kv_element_bytes(self) -> int:
        """Bytes of an element of key and value."""
        return ELEMENT_BYTES[self.config.resolved_kv_dtype]

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel of keys: as many as tile the depth."""
        widest = PANEL_BYTES // self.kv_element_bytes
        return math.gcd(self.config.depth, widest)

    @property
    def num_panels(self) -> int:
        """Panels side by side along the depth."""
        return self.config.depth // self.panel_columns

    @property
    def exchange_columns(self) -> int:
        """Columns of the output that pass through the exchange at once."""
        columns: int = self.config.depth
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


def division_of(config: DecodeConfig) -> Division:
    """Return the division of a block of keys; that of depth 256 for depths without."""
    narrow = DIVISIONS if config.resolved_kv_dtype == config.dtype else FP8_DIVISIONS
    divisions = WIDE_DIVISIONS if config.packed_rows == WGMMA_ROWS else narrow
    return divisions.get(config.depth, divisions[256])


def decide(
    config: DecodeConfig, most_stages: Callable[[Values], int]
) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here.

    ``most_stages`` says how many slots of the ring fit shared memory with the rest.
    """
    log = ChoiceLog(config)
    take_keys(config, log)
    log.take("kv_dtype", config.kv_dtype, config.dtype, "as dtype")
    if config.resolved_kv_dtype != config.dtype:
        reason = "each sequence has a scale for every key head"
        log.take("kv_scale", config.kv_scale, config.resolved_kv_scale, reason)
    rows = log.take(
        "packed_rows",
        config.packed_rows,
        PACKED_ROWS,
        "one mma takes 8 rows; 16 or 64 pay off where more heads, times rows, share a key head",
    )
    division = division_of(config)
    values = Values(config, rows, division.parts, division.keys, 1, _rescale_threshold(config, log))
    log.note("BM", values.BM, "derived", "packed_rows")
    log.note("BN", values.BN, "auto", f"{division.parts} parts take {division.keys} keys each")
    fit = max(1, most_stages(values))
    stages = log.take(
        "num_kv_stages",
        config.num_kv_stages,
        fit,
        f"as many blocks of {values.block_bytes} bytes as fit shared memory",
    )
    note_shares(config, log)
    return replace(values, num_kv_stages=stages), log.rows


def _rescale_threshold(config: DecodeConfig, log: ChoiceLog) -> float:
    """Return by how much a maximum may grow before the output is rescaled."""
    given = config.rescale_threshold
    if given != "auto":
        return given
    reason = "probabilities up to 2^8 are exact enough in 16 bits"
    return log.take("rescale_threshold", given, RESCALE_THRESHOLD, reason)
