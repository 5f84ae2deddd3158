"""From the config to the plan of a kernel that merges partial results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.merge.model import MergePlan

if TYPE_CHECKING:
    from fa4gen.designs.common.refusal import Refusal
    from fa4gen.designs.merge.config import MergeConfig


def decide(config: MergeConfig) -> MergePlan:
    """Return the plan; every config of the model works."""
    log = ChoiceLog(config)
    log.take("out_dtype", config.out_dtype, config.resolved_out_dtype, "as dtype")
    return MergePlan(config=config, cta_group=1, scheduler="static", choices=log.rows)


def find_faults(plan: MergePlan) -> tuple[Refusal, ...]:
    """Return nothing: the model refuses what cannot work."""
    del plan
    return ()
