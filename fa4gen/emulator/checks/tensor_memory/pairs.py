"""Allocations of pairs of CTAs: neither frees columns before the other has allocated them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.checks.order.clocks import EXEC

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Cta


class PairChecks:
    """The allocations of the pairs of one cluster."""

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        # by rank and number: the thread, and its epoch
        self._allocations: dict[tuple[int, int], tuple[int, int]] = {}

    def allocated(self, active: ActiveLanes, number: int) -> None:
        """A CTA makes its allocation ``number``."""
        thread = int(active.ids[0])
        epoch = int(self.threads.clocks.epochs[thread])
        self._allocations[active.wg.cta.rank, number] = thread, epoch

    def freed(self, active: ActiveLanes, peer: Cta, number: int, site: Instruction) -> None:
        """A CTA frees allocation ``number``, which ``peer`` has made, too."""
        thread, epoch = self._allocations[peer.rank, number]
        if not self.threads.clocks.knows(EXEC, active.threads, thread, epoch).any():
            self.threads.sites.find(
                "tensor-memory",
                f"nothing orders this after the allocation by {self.threads.who(thread)}, the "
                "other of the pair: columns may be freed before",
                site, active.wg, active.mask,
            )  # fmt: skip
