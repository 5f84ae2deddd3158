"""From the config to the plan of a decode kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_decode.divisions import division_of
from fa4gen.designs.attention_decode.limits import exceeded_limits
from fa4gen.designs.attention_decode.model import DecodeAttentionPlan
from fa4gen.designs.attention_decode.rules import broken_rules
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.decode_parameters import note_shares
from fa4gen.designs.common.fitting import most_stages, with_stages
from fa4gen.designs.common.values import as_float32_constant, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.config import DecodeConfig
    from fa4gen.designs.common.refusal import Refusal

PACKED_ROWS: Final = 8
MAX_STAGES: Final = 16
"""The schema's limit on Hopper; no more fit on any."""
RESCALE_THRESHOLD: Final = 8.0
"""In powers of two."""


def decide(config: DecodeConfig) -> DecodeAttentionPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
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
    draft = DecodeAttentionPlan(
        config=config,
        packed_rows=rows,
        num_parts=division.parts,
        part_keys=division.keys,
        BN=division.block,
        rescale_threshold=as_float32_constant(_rescale_threshold(config, log)),
    )
    log.note("BM", draft.BM, "derived", "packed_rows")
    log.note("BN", draft.BN, "auto", f"{division.parts} parts take {division.keys} keys each")
    reason = f"as many blocks of {draft.block_bytes} bytes as fit shared memory"
    draft = with_stages(draft, most_stages(draft, MAX_STAGES), reason, log)
    note_shares(config, log)
    return replace(draft, choices=log.rows)


def _rescale_threshold(config: DecodeConfig, log: ChoiceLog) -> float:
    """Return by how much a maximum may grow before the output is rescaled."""
    given = config.rescale_threshold
    if given != "auto":
        return given
    reason = "probabilities up to 2^8 are exact enough in 16 bits"
    return log.take("rescale_threshold", given, RESCALE_THRESHOLD, reason)


def find_faults(plan: DecodeAttentionPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return [*broken_rules(plan.config), *exceeded_limits(plan)]
