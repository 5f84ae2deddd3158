"""From the config to one value for every key; most are fixed by how the pair divides its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_sm90_depth512.config import HopperPairAttentionConfig
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.roles import RegisterSplit
from fa4gen.designs.common.values import DesignValues, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Choice
    from fa4gen.designs.common.values import Scheduler

DEPTH: Final = 512
ELEMENT_BYTES: Final = 2
CTA_GROUP: Final = 2
WARPGROUP_ROWS: Final = 64
CONSUMER_WARPGROUPS: Final = 2
TILE_ROWS: Final = WARPGROUP_ROWS * CONSUMER_WARPGROUPS
BLOCK_KEYS: Final = 128
OWN_KEYS: Final = BLOCK_KEYS // CTA_GROUP
"""Keys of a block whose scores a CTA computes."""
OWN_COLUMNS: Final = DEPTH // CTA_GROUP
"""Columns of value and output that a CTA holds."""
PANEL_COLUMNS: Final = 64
CHUNK_KEYS: Final = 16
"""Keys of one wgmma of P.V."""
RING_SLOTS: Final = 8
"""A CTA's keys of a block are 8 panels, its values 8 chunks: one trip round the ring each."""
BUFFERS: Final = 2
"""The buffers of everything that crosses: the peer may be one block, or one tile, ahead."""
REGISTERS: Final = RegisterSplit(40, 232)
"""The registers of the loader and of the consumers in the first candidate."""


@dataclass(frozen=True)
class Values(DesignValues[HopperPairAttentionConfig]):
    """A config with every ``auto`` decided."""

    scheduler: Scheduler
    registers: RegisterSplit

    num_consumer_warpgroups: int = CONSUMER_WARPGROUPS

    @property
    def slot_bytes(self) -> int:
        """Bytes of a ring slot: 64 keys x 64 columns of K, or 16 keys x 256 columns of V."""
        return OWN_KEYS * PANEL_COLUMNS * ELEMENT_BYTES

    @property
    def query_panel_bytes(self) -> int:
        """Bytes of one panel of the tile's queries."""
        return TILE_ROWS * PANEL_COLUMNS * ELEMENT_BYTES

    @property
    def num_panels(self) -> int:
        """Panels side by side along the depth."""
        return DEPTH // PANEL_COLUMNS

    @property
    def probability_bytes(self) -> int:
        """Bytes of the peer's probabilities for one warpgroup and block."""
        return WARPGROUP_ROWS * OWN_KEYS * ELEMENT_BYTES

    @property
    def row_message_bytes(self) -> int:
        """Bytes of one float32 for each row of a warpgroup: maxima, or sums."""
        return WARPGROUP_ROWS * 4


def decide(config: HopperPairAttentionConfig) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    paged = config.resolved_keys == "paged"
    scheduler: Scheduler = log.take(
        "scheduler",
        config.scheduler,
        "static" if paged else "dynamic",
        "the warp that looks pages up has no register for claims"
        if paged
        else "tiles go to whichever pair is free",
    )
    if config.registers == "auto":
        registers = REGISTERS
        log.note(
            "registers",
            registers,
            "auto",
            "what the loader leaves of the register file, in equal parts",
        )
    else:
        registers = RegisterSplit(config.registers.producer, config.registers.consumer)
        log.note("registers", registers, "config")
    return Values(config, scheduler, registers), log.rows
