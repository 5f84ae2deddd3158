"""The clusters of the grid that are on the chip."""

from __future__ import annotations

from typing import Final

from fa4gen.emulator.state.machine import Cluster, Machine

MAX_RESIDENT: Final = 148


class Residents:
    """Takes clusters off the grid in order: to run them, or because one was cancelled."""

    def __init__(self, machine: Machine, wanted: int) -> None:
        self._machine = machine
        self._count = machine.geometry.num_clusters
        self._next = 0
        self._wanted = wanted
        self.clusters: list[Cluster] = []
        """Started, and not known to be over."""

    def cancel(self) -> tuple[int, int, int] | None:
        """Take the next cluster off the grid without running it; None if there is none."""
        if self._next == self._count:
            return None
        self._next += 1
        self._machine.tally.cancelled += 1
        return self._machine.geometry.first_cta(self._next - 1)

    def alive(self) -> bool:
        """Whether a cluster is still running; forgets those that are not."""
        self.clusters = [cluster for cluster in self.clusters if cluster.alive]
        return bool(self.clusters)

    def wants_more(self) -> bool:
        """Whether fewer clusters run than requested, and more are left."""
        self.alive()
        return self._next < self._count and len(self.clusters) < self._wanted

    def can_start(self) -> bool:
        """Whether another cluster could run with the running ones."""
        return self._next < self._count and len(self.clusters) < MAX_RESIDENT

    def start(self) -> Cluster:
        """Put the next cluster on the chip."""
        first = self._machine.geometry.first_cta(self._next)
        cluster = Cluster(self._machine, self._next, first)
        self._next += 1
        self.clusters.append(cluster)
        self._machine.tally.started(len(cluster.ctas))
        return cluster
