"""From the config to the plan of a latent kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.model import LatentAttentionPlan
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_model import WGMMA_ROWS
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.decode_rules import unsupported_features
from fa4gen.designs.common.latent import BLOCK_KEYS
from fa4gen.designs.common.values import as_float32_constant, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent.config import LatentConfig
    from fa4gen.designs.common.refusal import Refusal


def decide(config: LatentConfig) -> LatentAttentionPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    log.note("BM", WGMMA_ROWS, "derived", "packed_rows")
    log.note("BN", BLOCK_KEYS, "derived", "blocks are the warpgroups' in turn")
    note_shares(config, log)
    threshold = as_float32_constant(config.rescale_threshold)
    return LatentAttentionPlan(config=config, rescale_threshold=threshold, choices=log.rows)


def find_faults(plan: LatentAttentionPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return list(unsupported_features(plan.config))
