"""The division of a block of keys among the parts of a CTA, as it was measured for each depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.decode_model import WGMMA_ROWS

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.config import DecodeConfig


@dataclass(frozen=True)
class Division:
    """The division of a block of keys: the fastest one measured, for each depth."""

    parts: int
    """Warps, or warpgroups, each with keys and a softmax of its own."""
    keys: int
    """The keys of each part."""

    @property
    def block(self) -> int:
        """Keys of a block."""
        return self.parts * self.keys


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


def division_of(config: DecodeConfig) -> Division:
    """Return the division of a block of keys; that of depth 256 for depths without."""
    narrow = DIVISIONS if config.resolved_kv_dtype == config.dtype else FP8_DIVISIONS
    divisions = WIDE_DIVISIONS if config.packed_rows == WGMMA_ROWS else narrow
    return divisions.get(config.depth, divisions[256])
