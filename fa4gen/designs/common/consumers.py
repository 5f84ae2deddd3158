"""The part of plans for kernels by wgmma: a producer warpgroup, and consumer warpgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.roles import WARPGROUP, WARPGROUP_WARPS
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.kernel_config import RegisterBudget


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class ConsumerPlan(KernelPlan):
    """The plan of a kernel with accumulators in the registers of consumers."""

    num_consumer_warpgroups: int
    registers: RegisterBudget
    """Per thread, after setmaxnreg."""

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
        """Registers per thread of the producer, after setmaxnreg."""
        return self.registers.producer

    @property
    def consumer_registers(self) -> int:
        """Registers per thread of a consumer, after setmaxnreg."""
        return self.registers.consumer
