"""The plan of attention by wgmma in tiles of one head's rows, as both designs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.consumers import ConsumerPlan
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.rings import tile_ring
from fa4gen.designs.common.roles import WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import HopperPrefillKeys
    from fa4gen.designs.common.rings import Ring


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperPlan(ConsumerPlan, AttentionPlan):
    """A producer warpgroup, and consumers of 64 query rows each, accumulators in registers."""

    config: HopperPrefillKeys

    @property
    @override
    def BM(self) -> int:  # noqa: N802
        return WARPGROUP_ROWS * self.num_consumer_warpgroups

    def tiles_to_consumers(
        self, known: str, *, shared: bool, loader: str = "the leader's loader"
    ) -> Ring:
        """Return the slots that tiles pass through; ``known``: what consumers get of each."""
        return tile_ring(
            self.config,
            self.num_consumer_warps,
            shared=shared,
            readers="every consumer",
            reader_warps="every consumer warp",
            both="of both CTAs",
            holds=f"consumers: {known}",
            loader=loader,
        )

    @property
    def loader_role(self) -> Role:
        """The producer warpgroup: the loader."""
        loader = "warp" if self.is_paged else "thread"
        work = f"one {loader} issues all TMA loads and hands out tiles"
        return Role("load", 0, WARPGROUP_WARPS, self.registers.producer, work)
