"""From a config of depth 512 to one value for every key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
from fa4gen.designs.common.blackwell_values import (
    OUT_BYTES,
    BlackwellAttentionValues,
    RoleSplit,
    take_rescale_threshold,
    take_role_registers,
)
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.values import take_keys, take_out_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.model import Choice

DEPTH = 512
CTA_ROWS = 64
"""Query rows of a CTA: half of a product of 128 rows."""
BLOCK_KEYS = 256
PART = 128
"""Columns of a part of Q and K, keys of a part of P and V."""
PANEL_BYTES = 128
NUM_THREADS = 384
ROW_REGISTERS = 2
"""The registers of a softmax thread for the maximum and the sum of its half of a row."""
SPLIT = RoleSplit(216, 128, 64)
MAX_STAGES = 11
"""One warp initialises 10 + 2 * stages barriers, each lane one of them."""


@dataclass(frozen=True)
class Values(BlackwellAttentionValues[BlackwellPairAttentionConfig]):
    """A config with every ``auto`` decided, and the sizes that follow directly."""

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel, 128 bytes wide."""
        return PANEL_BYTES // self.element_bytes

    @property
    def query_bytes(self) -> int:
        """Bytes of this CTA's queries."""
        return CTA_ROWS * DEPTH * self.element_bytes

    @property
    def probability_bytes(self) -> int:
        """Bytes of this CTA's probabilities of a block."""
        return CTA_ROWS * BLOCK_KEYS * self.element_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot: a part of K or V in one CTA."""
        return PART * PART * self.element_bytes

    @property
    def staging_step(self) -> int:
        """Bytes from the staging space of O_lo to that of O_hi; 0 where they take turns."""
        half = CTA_ROWS * DEPTH // 2 * OUT_BYTES
        return half if self.query_bytes >= 2 * half else 0


def decide(
    config: BlackwellPairAttentionConfig, most_stages: Callable[[Values], int]
) -> tuple[Values, tuple[Choice, ...]]:
    """Return a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    take_out_dtype(config, log)
    values = Values(
        config=config,
        num_kv_stages=1,
        scheduler=log.take(
            "scheduler",
            config.scheduler,
            "dynamic" if config.has_tile_lengths else "static",
            "sequences differ: tiles go to whichever pair is free"
            if config.has_tile_lengths
            else "pairs of CTAs take tiles in a fixed round",
        ),
        rescale_threshold=take_rescale_threshold(config, log),
        exp2_fma_share=log.take(
            "exp2_fma_share",
            config.exp2_fma_share,
            0.0,
            "products of depth 512 take longer than ex2 for all",
        ),
        registers=take_role_registers(config, SPLIT, "the softmax keeps half a row of scores", log),
    )
    fit = most_stages(values)
    stages = log.take(
        "num_kv_stages",
        config.num_kv_stages,
        max(1, min(fit, MAX_STAGES)),
        f"{fit} fit the {values.arch.shared_bytes} bytes of shared memory"
        if fit <= MAX_STAGES
        else f"one warp initialises 10 + 2 * {MAX_STAGES} barriers",
    )
    return replace(values, num_kv_stages=stages), log.rows
