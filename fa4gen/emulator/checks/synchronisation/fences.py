"""Fences with relaxed accesses: the other half of release and acquire patterns (PTX ISA).

A relaxed write releases the knowledge that a fence before it has released; a relaxed read acquires
the knowledge that it has seen once a fence follows. Fences of other threads count as well where a
barrier orders them before the write or after the read: that goes beyond the letter, and is how many
kernels are written (``__threadfence(); __syncthreads();`` by all, then an atomic by one). The
hardware orders it: a fence waits for the thread's own stores, and invalidates the L1 of its SM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import VC, Vector

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.checks.synchronisation.rounds import Rounds

CTA, CLUSTER, GPU = range(3)
"""The scopes of a release or an acquire."""
REACH: Final = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "gl": GPU, "sys": GPU}

_KEPT: Final = 8
"""The number of fences kept of the same threads: older ones merge, with the later knowledge."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence of some threads: knowing one of them in one of ``epochs`` means to come after it.

    clock   their knowledge at it
    rounds  their cluster's knowledge of the others, up to its own round then; None below GPU scope
    """

    ids: NDArray[np.int64]
    epochs: NDArray[np.uint32]
    reach: int
    restricted: bool
    clock: Vector
    rounds: Rounds | None


@dataclass(frozen=True, slots=True)
class Seen:
    """Knowledge that threads have seen released at a place, without acquiring it, in ``epochs``.

    near, wide  by releases of their CTA, and by those that reach the cluster
    rounds      by releases that reach the GPU: of every cluster
    learnt      per thread of the cluster: it knows as much by now
    """

    ids: NDArray[np.int64]
    epochs: NDArray[np.uint32]
    reach: int
    near: Vector | None
    wide: Vector | None
    rounds: Rounds | None
    learnt: NDArray[np.bool_]


class Fences:
    """The fences of a cluster's threads, and knowledge that they have seen and not acquired."""

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        self._fences: dict[tuple[int, bool, bytes], list[Fence]] = {}
        self._seen: dict[tuple[Any, int, bytes], list[Seen]] = {}

    # ---- release

    @property
    def any(self) -> bool:
        """Whether anything was fenced."""
        return bool(self._fences)

    def released(
        self,
        active: ActiveLanes,
        reach: int,
        restricted: bool,
        rounds: Rounds | None,
    ) -> None:
        """Threads execute a fence that releases; ``restricted``: only shared memory."""
        clocks = self.threads.clocks
        log = self._fences.setdefault((reach, restricted, active.ids.tobytes()), [])
        clock = clocks.vector()
        clocks.publish(active.threads, clock)
        epochs = clocks.epochs[active.ids].copy()
        log.append(Fence(active.ids.copy(), epochs, reach, restricted, clock, rounds))
        if len(log) > _KEPT:
            log[:2] = [replace(log[1], epochs=log[0].epochs)]

    def before(self, thread: int, shared: bool) -> Iterator[Fence]:
        """The fences that come before the present access of a thread."""
        view = self.threads.clocks.view(thread, VC)
        for fence in (one for log in self._fences.values() for one in log):
            if fence.restricted and not shared:
                continue
            if (fence.ids == thread).any() or (view[fence.ids] >= fence.epochs).any():
                yield fence

    # ---- acquire

    def saw(
        self,
        ids: NDArray[np.int64],
        place: Any,
        reach: int,
        near: Vector | None,
        wide: Vector | None,
        rounds: Rounds | None,
    ) -> None:
        """Record that threads have read a place's release; the record is not altered any more."""
        log = self._seen.setdefault((place, reach, ids.tobytes()), [])
        if log and log[-1].near is near and log[-1].wide is wide and log[-1].rounds is rounds:
            return
        clocks = self.threads.clocks
        learnt = np.zeros(clocks.threads, np.bool_)
        epochs = clocks.epochs[ids].copy()
        log.append(Seen(ids.copy(), epochs, reach, near, wide, rounds, learnt))
        if len(log) > _KEPT:
            log[:2] = [replace(log[1], epochs=log[0].epochs)]

    def acquired(self, active: ActiveLanes, reach: int) -> Iterator[tuple[Seen, NDArray[np.int64]]]:
        """Threads execute an acquiring fence: the knowledge seen before it, and its learners."""
        clocks = self.threads.clocks
        for seen in (one for log in self._seen.values() for one in log):
            ids = active.ids[~seen.learnt[active.ids]]
            mine = np.isin(ids, seen.ids)
            for number in np.flatnonzero(~mine).tolist():
                view = clocks.view(int(ids[number]), VC)
                mine[number] = bool((view[seen.ids] >= seen.epochs).any())
            if mine.any():
                seen.learnt[ids[mine]] = reach >= seen.reach
                yield seen, ids[mine]
