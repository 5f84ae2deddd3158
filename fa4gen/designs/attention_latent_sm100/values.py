"""From the config to one value for every key of a latent kernel on Blackwell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_latent_sm100.config import LatentPairConfig
from fa4gen.designs.common.blackwell_values import take_rescale_threshold
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.latent_values import BLOCK_KEYS, LatentBlocks
from fa4gen.designs.common.roles import WARPGROUP_WARPS
from fa4gen.designs.common.values import PANEL_BYTES, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Choice

PAIR: Final = 2
TILE_ROWS: Final = 64
"""Packed rows of a CTA: half of a product of 128 rows."""
PAIR_ROWS: Final = PAIR * TILE_ROWS
STAGES: Final = 2
PARTS: Final = 3
"""Along the depth, in which keys arrive: a part's place is free once its scores are there."""
ISSUING_WARPS: Final = 3


@dataclass(frozen=True)
class LatentPairValues(LatentBlocks[LatentPairConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    @property
    def BM(self) -> int:  # noqa: N802
        """Packed rows of a tile, which both CTAs share."""
        return PAIR_ROWS

    @property
    def packed_rows(self) -> int:
        """The packed rows of a pair, by the config's key."""
        return PAIR_ROWS

    @property
    def tile_rows(self) -> int:
        """The packed rows of one CTA."""
        return TILE_ROWS

    @property
    def num_parts(self) -> int:
        """Warpgroups of a CTA that compute."""
        return 1

    @property
    def part_words(self) -> str:
        """The name of a part, which computes on blocks of its own."""
        return "pair"

    @property
    def num_consumer_warps(self) -> int:
        """Warps of the softmax, which also write the output."""
        return WARPGROUP_WARPS

    @property
    def threads(self) -> int:
        """The threads of the consumers, and of the warps that multiply and load."""
        return 32 * (WARPGROUP_WARPS + ISSUING_WARPS)

    @property
    def key_rows(self) -> int:
        """Keys of a block that a CTA brings in for the scores."""
        return BLOCK_KEYS // PAIR

    @property
    def num_qk_stages(self) -> int:
        """Parts along the depth in which keys arrive."""
        return PARTS

    @property
    def key_bytes(self) -> int:
        """Bytes of a CTA's keys of a block."""
        return self.num_panels * self.key_rows * PANEL_BYTES

    @property
    def value_bytes(self) -> int:
        """Bytes of a CTA's columns of the values of a block."""
        return self.config.resolved_value_depth // PAIR * BLOCK_KEYS * self.element_bytes

    @property
    def exchange_columns(self) -> int:
        """Float32 columns of a tile that the exchange has room for."""
        return 32


def decide(config: LatentPairConfig) -> tuple[LatentPairValues, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.note("packed_rows", PAIR_ROWS, "derived", "a product of 128 rows over a pair of CTAs")
    log.note("BM", PAIR_ROWS, "derived", "packed_rows")
    log.note("BN", BLOCK_KEYS, "derived", "two blocks fit shared memory beside the query")
    values = LatentPairValues(config, STAGES, take_rescale_threshold(config, log))
    note_shares(config, log, "pair")
    return values, log.rows
