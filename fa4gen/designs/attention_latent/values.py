"""From the config to one value for every key of a latent kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_latent.config import LatentConfig
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_model import WGMMA_ROWS
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.latent_values import BLOCK_KEYS, LatentBlocks
from fa4gen.designs.common.roles import (
    WARPGROUP,
    WARPGROUP_WARPS,
    RegisterSplit,
)
from fa4gen.designs.common.values import PANEL_BYTES, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Choice

PARTS: Final = 2
"""Warpgroups, each with half of the output's columns, and with every other block."""
STAGES: Final = PARTS
"""A slot for each warpgroup's block: no more fit with the query."""
PART_PANELS: Final = 2
"""Panels that arrive together: the products begin with the first ones."""


@dataclass(frozen=True)
class LatentValues(LatentBlocks[LatentConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    packed_rows: int

    @property
    def BM(self) -> int:  # noqa: N802
        """Packed rows of a tile."""
        return self.packed_rows

    @property
    def num_parts(self) -> int:
        """Warpgroups that compute."""
        return PARTS

    @property
    def part_words(self) -> str:
        """The name of a part, which computes on blocks of its own."""
        return "warpgroup"

    @property
    def num_consumer_warps(self) -> int:
        """Warps of both parts."""
        return PARTS * WARPGROUP_WARPS

    @property
    def cluster(self) -> int:
        """CTAs of a cluster: two tiles of a key head are a pair's, and its keys are loaded once."""
        return 1 if self.split_blocks else 2

    @property
    def threads(self) -> int:
        """The threads of the consumers and of the loader's warpgroup, which lends its registers."""
        return WARPGROUP * (PARTS + 1)

    @property
    def registers(self) -> RegisterSplit:
        """After setmaxnreg."""
        return RegisterSplit(40, 232)

    @property
    def half_panels(self) -> int:
        """Panels of the values of one warpgroup: the left columns of a block, or the right ones."""
        return self.config.resolved_value_depth // self.panel_columns // PARTS

    @property
    def half_parts(self) -> int:
        """The parts of a half, which arrive on barriers of their own: two panels each."""
        return self.half_panels // PART_PANELS

    @property
    def half_bytes(self) -> int:
        """The bytes of a half of the values."""
        return self.half_panels * BLOCK_KEYS * PANEL_BYTES

    @property
    def tail_bytes(self) -> int:
        """The bytes of the columns of a block that are not values."""
        return self.block_bytes - PARTS * self.half_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of keys."""
        return self.num_panels * BLOCK_KEYS * PANEL_BYTES

    @property
    def exchange_columns(self) -> int:
        """Float32 columns of a tile that the exchange has room for."""
        return BLOCK_KEYS * self.element_bytes // 4


def decide(config: LatentConfig) -> tuple[LatentValues, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    values = LatentValues(config, STAGES, config.rescale_threshold, WGMMA_ROWS)
    log.note("BM", values.BM, "derived", "packed_rows")
    log.note("BN", values.BN, "derived", "blocks are the warpgroups' in turn")
    note_shares(config, log)
    return values, log.rows
