"""The plan of attention by wgmma in tiles of one head's rows, as both designs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.consumers import ConsumerPlan
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.roles import WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import HopperPrefillKeys


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperPlan(ConsumerPlan, AttentionPlan):
    """A producer warpgroup, and consumers of 64 query rows each, accumulators in registers."""

    config: HopperPrefillKeys

    @property
    @override
    def BM(self) -> int:  # noqa: N802
        return WARPGROUP_ROWS * self.num_consumer_warpgroups

    @property
    def loader_role(self) -> Role:
        """The producer warpgroup: the loader."""
        loader = "warp" if self.is_paged else "thread"
        work = f"one {loader} issues all TMA loads and hands out tiles"
        return Role("load", 0, WARPGROUP_WARPS, self.registers.producer, work)
