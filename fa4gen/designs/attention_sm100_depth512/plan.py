"""From a config of depth 512 to its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.attention_sm100_depth512.rules import MAX_STAGES, faults
from fa4gen.designs.common.attention_config import RoleRegisters
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.fitting import most_stages, with_stages
from fa4gen.designs.common.values import (
    MAX_KV_STAGES,
    take_keys,
    take_out_dtype,
    take_rescale_threshold,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.config import BlackwellPairAttentionConfig
    from fa4gen.designs.common.refusal import Refusal

SPLIT = RoleRegisters(softmax=216, correction=128, other=64)


def decide(config: BlackwellPairAttentionConfig) -> Depth512Config:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    take_out_dtype(config, log)
    draft = Depth512Config(
        config=config,
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
        registers=log.take(
            "registers", config.registers, SPLIT, "the softmax keeps half a row of scores"
        ),
    )
    fit = most_stages(draft, MAX_KV_STAGES)
    reason = f"{fit} fit the {draft.hardware.shared_bytes} bytes of shared memory"
    if fit > MAX_STAGES:
        fit, reason = MAX_STAGES, f"one warp initialises 10 + 2 * {MAX_STAGES} barriers"
    draft = with_stages(draft, fit, reason, log)
    return replace(draft, choices=log.rows)


def find_faults(plan: Depth512Config) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return list(faults(plan))
