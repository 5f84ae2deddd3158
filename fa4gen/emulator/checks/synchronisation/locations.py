"""Synchronisation through memory: atomics, and loads and stores with a memory order.

A release reaches the threads that both its scope and that of the acquire include. Relaxed accesses
synchronise by the fences before and after them. The model is coarse where that hides errors at
most: a cluster releases to others, and acquires from them, as a whole; a place keeps the knowledge
released there when it is overwritten; a relaxed load of shared memory acquires without a fence; and
a release by others that a cluster has seen comes before its writes, though not before its reads:
the hardware performs no store before the branch to it is taken, so the last CTA may set counters to
zero. Ordered accesses are never reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import Vector
from fa4gen.emulator.checks.synchronisation.fences import CLUSTER, CTA, GPU, REACH, Fences

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.checks.synchronisation.rounds import Grid, Rounds

_RELEASES: Final = frozenset(("release", "acq_rel", "seq_cst", "sc"))
_ACQUIRES: Final = frozenset(("acquire", "acq_rel", "seq_cst", "sc"))


class Locations:
    """The words through which the threads of one cluster synchronise."""

    def __init__(self, threads: ClusterThreads, grid: Grid) -> None:
        self.threads = threads
        self._grid = grid
        self._cluster = threads.cluster.index
        self._alone = len(threads.cluster.ctas) == 1
        # by space, address and rank: of releases that reach the CTA of that rank, or all (-1)
        self._clocks: dict[tuple[Any, int, int], Vector] = {}
        self._lent: set[tuple[Any, int, int]] = set()
        self._fences = Fences(threads)

    def fence(self, active: ActiveLanes, kind: str) -> None:
        """``fence.acq_rel`` and its like: relaxed stores after it release, loads before acquire."""
        words = kind.rstrip(";").split(".")
        reach = REACH.get(words[-1], CTA)
        restricted = "sync_restrict::shared" in kind
        if "release" not in words and not restricted:
            self._acquire_seen(active, reach)
        if "acquire" not in words:
            rounds = self._grid.fence(self._cluster) if reach == GPU else None
            self._fences.released(active, reach, restricted, rounds)

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
        reach = REACH.get(scope, CTA)
        if space != "global":
            reach = CLUSTER
        places = np.unique(addresses).tolist()
        groups = [active.ids if len(places) == 1 else active.ids[addresses == p] for p in places]
        releases = order in _RELEASES
        if reads and (self._clocks or (reach == GPU and self._grid.used)):
            acquires = order in _ACQUIRES or space != "global"
            for address, ids in zip(places, groups, strict=True):
                self._read(active, ids, space, address, reach, acquires)
        if writes and (releases or self._fences.any):
            write = self._release if releases else self._write_relaxed
            for address, ids in zip(places, groups, strict=True):
                write(active, ids, space, address, reach)
        if writes and releases and reach == GPU:
            known = self._grid.fence(self._cluster)
            for address in places:
                self._grid.publish(known, address)

    def _read(
        self,
        active: ActiveLanes,
        ids: NDArray[np.int64],
        space: Any,
        address: int,
        reach: int,
        acquires: bool,
    ) -> None:
        near, wide = (self._clocks.get((space, address, rank)) for rank in (self._rank(active), -1))
        if reach == CTA and not self._alone:
            wide = None
        rounds = self._grid.at(address) if reach == GPU else None
        if near is None and wide is None and rounds is None:
            return
        if acquires:
            self._learn(ids, near, wide, rounds)
        else:
            self._lent.update((space, address, rank) for rank in (self._rank(active), -1))
            self._fences.saw(ids, (space, address), reach, near, wide, rounds)
            if rounds is not None:
                self._grid.saw(self._cluster, rounds)

    def _acquire_seen(self, active: ActiveLanes, reach: int) -> None:
        for seen, ids in self._fences.acquired(active, reach):
            wide = seen.wide if reach >= CLUSTER or self._alone else None
            self._learn(ids, seen.near, wide, seen.rounds if reach == GPU else None)

    def _learn(
        self,
        ids: NDArray[np.int64],
        near: Vector | None,
        wide: Vector | None,
        rounds: Rounds | None,
    ) -> None:
        for clock in (near, wide):
            if clock is not None:
                self.threads.clocks.acquire(ids, clock)
        if rounds is not None:
            self._grid.learn(self._cluster, rounds)

    def _release(
        self, active: ActiveLanes, ids: NDArray[np.int64], space: Any, address: int, reach: int
    ) -> None:
        known = self.threads.clocks.vector()
        self.threads.clocks.publish(ids, known)
        for key in self._keys(active, space, address, reach):
            clock = self._clock(key)
            np.maximum(clock, known, out=clock)

    def _write_relaxed(
        self, active: ActiveLanes, ids: NDArray[np.int64], space: Any, address: int, reach: int
    ) -> None:
        for thread in ids.tolist():
            for fence in self._fences.before(thread, space != "global"):
                both = min(reach, fence.reach)
                for key in self._keys(active, space, address, both):
                    clock = self._clock(key)
                    np.maximum(clock, fence.clock, out=clock)
                if both == GPU and fence.rounds is not None:
                    self._grid.publish(fence.rounds, address)

    # ---- places

    def _rank(self, active: ActiveLanes) -> int:
        return -1 if self._alone else active.wg.cta.rank

    def _keys(
        self, active: ActiveLanes, space: Any, address: int, reach: int
    ) -> list[tuple[Any, int, int]]:
        """The clocks that a release of some reach goes to."""
        ranks = {self._rank(active), -1 if reach >= CLUSTER else self._rank(active)}
        return [(space, address, rank) for rank in ranks]

    def _clock(self, key: tuple[Any, int, int]) -> Vector:
        """A clock to publish to."""
        clock = self._clocks.get(key)
        if clock is None:
            clock = self._clocks[key] = self.threads.clocks.vector()
        elif key in self._lent:
            self._lent.remove(key)
            clock = self._clocks[key] = clock.copy()
        return clock
