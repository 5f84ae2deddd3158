"""Synchronisation through memory: atomics, and loads and stores with a memory order.

Coarse where it may be: a relaxed load learns at once what a fence after it would let it learn, and
a relaxed store publishes once its thread has executed a fence. So a missing fence can stay unseen
here, but what is ordered is never reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import Vector

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads

_WIDE: Final = ("gpu", "sys", "gl")


class Grid:
    """What clusters know of each other: rounds, one per release of a cluster at GPU scope.

    rounds  (clusters,): the round that each cluster is in; accesses bear its number
    """

    def __init__(self, clusters: int) -> None:
        self.rounds = np.ones(clusters, np.uint32)
        self._known: dict[int, NDArray[np.uint32]] = {}
        self._places: dict[int, NDArray[np.uint32]] = {}

    def known(self, cluster: int) -> NDArray[np.uint32]:
        """The last round of every cluster that ``cluster`` knows of."""
        if cluster not in self._known:
            self._known[cluster] = np.zeros(len(self.rounds), np.uint32)
        return self._known[cluster]

    def release(self, cluster: int, addresses: list[int]) -> None:
        known = self.known(cluster)
        known[cluster] = self.rounds[cluster]
        for address in addresses:
            place = self._places.get(address)
            if place is None:
                self._places[address] = known.copy()
            else:
                np.maximum(place, known, out=place)
        self.rounds[cluster] += np.uint32(1)

    def acquire(self, cluster: int, addresses: list[int]) -> None:
        known = self.known(cluster)
        for address in addresses:
            place = self._places.get(address)
            if place is not None:
                np.maximum(known, place, out=known)


class Locations:
    """The words through which the threads of one cluster synchronise."""

    def __init__(self, threads: ClusterThreads, grid: Grid) -> None:
        self.threads = threads
        self._grid = grid
        self._cluster = threads.cluster.index
        self._clocks: dict[Any, Vector] = {}
        self._fenced = np.zeros(threads.clocks.threads, np.bool_)
        self._fenced_wide = np.zeros(threads.clocks.threads, np.bool_)

    def fence(self, active: ActiveLanes, kind: str) -> None:
        """``fence.acq_rel`` and its like: relaxed stores after it publish."""
        self._fenced[active.ids] = True
        if kind.rsplit(".", 1)[-1] in _WIDE:
            self._fenced_wide[active.ids] = True

    def synchronise(
        self,
        active: ActiveLanes,
        space: Any,
        addresses: NDArray[Any],
        order: str,
        scope: str,
        reads: bool,
        writes: bool,
    ) -> None:
        """Threads read or write words with a memory order; one address per thread."""
        release = writes and order in ("release", "acq_rel", "seq_cst", "sc")
        wide = wide_release = scope in _WIDE
        if writes and not release:
            release = bool(self._fenced[active.ids].all())
            wide_release = wide and bool(self._fenced_wide[active.ids].all())
        if reads and (wide or self._clocks):
            self._acquire(active, space, addresses, wide)
        if release:
            self._release(active, space, addresses, wide_release)

    def _acquire(
        self, active: ActiveLanes, space: Any, addresses: NDArray[Any], wide: bool
    ) -> None:
        places = np.unique(addresses).tolist()
        for address in places:
            clock = self._clocks.get((space, address))
            if clock is not None:
                threads = active.threads if len(places) == 1 else active.ids[addresses == address]
                self.threads.clocks.acquire(threads, clock)
        if wide:
            self._grid.acquire(self._cluster, places)

    def _release(
        self, active: ActiveLanes, space: Any, addresses: NDArray[Any], wide: bool
    ) -> None:
        places = np.unique(addresses).tolist()
        for address in places:
            clock = self._clocks.get((space, address))
            if clock is None:
                clock = self._clocks[space, address] = self.threads.clocks.vector()
            threads = active.threads if len(places) == 1 else active.ids[addresses == address]
            self.threads.clocks.publish(threads, clock)
        if wide:
            self._grid.release(self._cluster, places)
