"""Loads that may be pending when their threads release the memory that they load from.

Kept only where a launch has shown that it matters: see ``ClusterThreads.watched_loads``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.clocks import Clocks, Vector
    from fa4gen.emulator.ptx.flow.pending_loads import PendingLoads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Cta

_WORD: Final = 4
_BARRIERS: Final = ("bar", "barrier")


class LoadsUnwatched(Exception):  # noqa: N818 (no error: the launch begins again and watches)
    """An error where the pending loads matter, and no record of them was kept."""


@dataclass(frozen=True, slots=True)
class Release:
    """A publication of the knowledge of threads ``ids``, in these epochs.

    A cluster barrier has a ``place``, for loads of tensor memory, and no ``site``: loads of shared
    memory count as under way there, even if their values were needed before.
    """

    epochs: NDArray[np.uint32]
    ids: NDArray[np.int64]
    site: Instruction | None
    place: Instruction | None = None


class Released:
    """The loads and releases of a cluster's threads.

    _loads      (CTA whose memory it is, warp): the number of the last load of each word
    _releases   by warp, those at which a load was pending
    """

    def __init__(self, clocks: Clocks, pending: PendingLoads) -> None:
        self.clocks = clocks
        self.pending = pending
        self._loads: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._sites: list[Instruction] = []
        self._numbers: dict[int, int] = {}
        self._releases: dict[int, list[Release]] = {}

    def loaded(
        self, active: ActiveLanes, cta: Cta, offsets: NDArray[Any], size: int, site: Any
    ) -> None:
        """Threads load ``size`` bytes each from shared memory."""
        number = self._numbers.get(id(site))
        if number is None:
            self._sites.append(site)
            number = self._numbers[id(site)] = len(self._sites)
        words = (offsets // _WORD)[:, None] + np.arange(-(-size // _WORD))
        warps = active.ids // 32
        for warp in np.unique(warps).tolist():
            at = self._loads.get((cta.rank, warp))
            if at is None:
                at = np.zeros(-(-cta.shared.size // _WORD), np.int32)
                self._loads[cta.rank, warp] = at
            at[words[warps == warp]] = number

    def releases(
        self, active: ActiveLanes, site: Instruction | None, place: Instruction | None = None
    ) -> None:
        """The knowledge of threads is about to be published."""
        if site is not None and not self.pending.any_open(site):
            return
        warps = active.ids // 32
        epochs = self.clocks.epochs[active.threads]
        for warp in np.unique(warps).tolist():
            mine = warps == warp
            log = self._releases.setdefault(warp, [])
            log.append(Release(epochs[mine].copy(), active.ids[mine], site, place))

    def read(self, cta: Cta, start: int, thread: int, known: Vector) -> Severity:
        """The severity of overwriting a thread's read, for a writer that knows these epochs.

        ISA where the load was over, ERROR where it may not have been. Barriers of whole CTAs are
        for review: PTX requires earlier accesses to be performed before them, which was not tested
        on hardware.
        """
        at = self._loads.get((cta.rank, thread // 32))
        number = 0 if at is None else int(at[start // _WORD])
        release = self._release(thread, int(known[thread]))
        if release is None:
            return Severity.ISA
        if number and not self._open_at(self._sites[number - 1], release, thread, known):
            return Severity.ISA
        site = release.site
        meets = site is None or (site.opcode in _BARRIERS and not _is_warp_sync(site))
        return Severity.REVIEW if meets else Severity.ERROR

    def is_open(self, load: Instruction, thread: int, known: Vector) -> bool:
        """Whether a load of tensor memory was pending when its thread released the known epochs."""
        release = self._release(thread, int(known[thread]))
        if release is not None and release.site is None:
            return self.pending.is_open(load, release.place)
        return release is not None and self._open_at(load, release, thread, known)

    def _open_at(self, load: Instruction, release: Release, thread: int, known: Vector) -> bool:
        if not self.pending.is_open(load, release.site):
            return False
        if release.site is None or not (_is_warp_sync(release.site) and "sync" in load.modifiers):
            return True
        # a lane that has met them releases for its warp, and the warp loads with one instruction
        for lane, epoch in zip(release.ids.tolist(), release.epochs.tolist(), strict=True):
            if known[lane] > epoch and lane != thread:
                later = self._release(lane, int(known[lane]))
                if later is None or not self.pending.is_open(load, later.site):
                    return False
        return True

    def _release(self, thread: int, epoch: int) -> Release | None:
        """The release of an epoch, if loads were pending at it."""
        for one in reversed(self._releases.get(thread // 32, [])):
            at = int(np.searchsorted(one.ids, thread))
            if at < len(one.ids) and one.ids[at] == thread and one.epochs[at] <= epoch:
                return one if int(one.epochs[at]) == epoch else None
        return None


def _is_warp_sync(site: Instruction) -> bool:
    return site.opcode == "bar" and "warp" in site.modifiers
