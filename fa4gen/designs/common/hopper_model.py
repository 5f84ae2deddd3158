"""The plan of attention by wgmma in tiles of one head's rows, as both designs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.roles import WARPGROUP, WARPGROUP_ROWS, WARPGROUP_WARPS
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import HopperPrefillKeys
    from fa4gen.designs.common.kernel_config import RegisterBudget


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class HopperPlan(AttentionPlan):
    """A producer warpgroup, and consumers of 64 query rows each, accumulators in registers."""

    config: HopperPrefillKeys
    num_consumer_warpgroups: int
    registers: RegisterBudget

    @property
    @override
    def BM(self) -> int:  # noqa: N802
        return WARPGROUP_ROWS * self.num_consumer_warpgroups

    @property
    def num_consumer_warps(self) -> int:
        """Warps of all consumers."""
        return WARPGROUP_WARPS * self.num_consumer_warpgroups

    @property
    @override
    def threads(self) -> int:
        return WARPGROUP * (1 + self.num_consumer_warpgroups)

    @property
    def producer_registers(self) -> int:
        """Registers per thread of the loader, after setmaxnreg."""
        return self.registers.producer

    @property
    def consumer_registers(self) -> int:
        """Registers per thread of a consumer, after setmaxnreg."""
        return self.registers.consumer

    @property
    def loader_role(self) -> Role:
        """The producer warpgroup: the loader."""
        loader = "warp" if self.is_paged else "thread"
        work = f"one {loader} issues all TMA loads and hands out tiles"
        return Role("load", 0, WARPGROUP_WARPS, self.registers.producer, work)

    @property
    def types_line(self) -> str:
        """The first line of the summary: types, depth and mask."""
        depth = f"depth {self.depth}"
        if self.value_depth != self.depth:
            depth += f", of values {self.value_depth}"
        return f"{self.dtype}, sums in float32; {depth}; mask {self.mask.words}"
