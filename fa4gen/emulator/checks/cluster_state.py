"""Everything the checks keep for one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
from fa4gen.emulator.checks.shared_memory.pieces import Stretches
from fa4gen.emulator.checks.shared_memory.races import SharedChecks
from fa4gen.emulator.checks.sites import Sites
from fa4gen.emulator.checks.synchronisation.barriers import BarrierChecks, Rendezvous
from fa4gen.emulator.checks.synchronisation.exits import ExitChecks
from fa4gen.emulator.checks.synchronisation.locations import Locations
from fa4gen.emulator.checks.synchronisation.rounds import Grid
from fa4gen.emulator.checks.tensor_memory.pairs import PairChecks
from fa4gen.emulator.checks.tensor_memory.races import TensorChecks

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.state.machine import Cluster


class ClusterState:
    """Clocks, shadows and histories."""

    def __init__(self, cluster: Cluster, sites: Sites, grid: Grid, options: CheckOptions) -> None:
        self.threads = ClusterThreads(cluster, sites)
        self.barriers = BarrierChecks(self.threads, options)
        self.rendezvous = Rendezvous(self.threads)
        self.exits = ExitChecks(self.threads)
        self.stretches = Stretches()
        self.locations = Locations(self.threads, grid)
        self.shared = [SharedChecks(self.threads, cta, options) for cta in cluster.ctas]
        self.tensors = [TensorChecks(self.threads, cta, options) for cta in cluster.ctas]
        self.pairs = PairChecks(self.threads)
