"""From the config to the plan at depth 512; most is fixed by how the pair divides its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.designs.attention_sm90_depth512.limits import exceeded_limits
from fa4gen.designs.attention_sm90_depth512.model import HopperPairAttentionPlan
from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.designs.common.values import as_float32_constant, take_keys

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.config import HopperPairAttentionConfig
    from fa4gen.designs.common.refusal import Refusal

REGISTERS: Final = RegisterBudget(producer=40, consumer=232)
"""The registers of the loader and of the consumers in the first candidate."""


def decide(config: HopperPairAttentionConfig) -> HopperPairAttentionPlan:
    """Return the plan: a value for every key, and its origin; nothing is refused here."""
    log = ChoiceLog(config)
    take_keys(config, log)
    paged = config.resolved_keys == "paged"
    scheduler = log.take(
        "scheduler",
        config.scheduler,
        "static" if paged else "dynamic",
        "the warp that looks pages up has no register for claims"
        if paged
        else "tiles go to whichever pair is free",
    )
    reason = "what the loader leaves of the register file, in equal parts"
    registers = log.take("registers", config.registers, REGISTERS, reason)
    return HopperPairAttentionPlan(
        config=config,
        scheduler=scheduler,
        registers=registers,
        rescale_threshold=as_float32_constant(config.rescale_threshold),
        choices=log.rows,
    )


def find_faults(plan: HopperPairAttentionPlan) -> list[Refusal]:
    """Return everything in the config of ``plan`` that cannot work."""
    return list(exceeded_limits(plan))
