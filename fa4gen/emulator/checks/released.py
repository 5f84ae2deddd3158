"""Loads that may have been under way when their threads released what they had loaded from.

Kept only where a launch has shown that it matters: see ``Team.watched_loads``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.parties import Party, Team
    from fa4gen.emulator.machine import Cta
    from fa4gen.emulator.pending_loads import PendingLoads
    from fa4gen.emulator.ptx.syntax import Instruction

_WORD: Final = 4
_BARRIERS: Final = ("bar", "barrier")


class LoadsUnwatched(Exception):  # noqa: N818 (no error: the launch begins again and watches)
    """It matters which loads were under way, and nobody has kept that."""


class Released:
    """The loads and releases of a cluster's threads.

    _loads      (CTA whose memory it is, warp): of each word the number of the last load
    _releases   warp -> (lane epochs, lanes, release) of releases at which a load was pending
    """

    def __init__(self, team: Team, pending: PendingLoads) -> None:
        self.team = team
        self.pending = pending
        self._loads: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._sites: list[Instruction] = []
        self._numbers: dict[int, int] = {}
        self._releases: dict[int, list[tuple[NDArray[Any], Any, Instruction | None]]] = {}

    def loaded(self, party: Party, cta: Cta, offsets: NDArray[Any], size: int, site: Any) -> None:
        """Threads load ``size`` bytes each from shared memory."""
        number = self._numbers.get(id(site))
        if number is None:
            self._sites.append(site)
            number = self._numbers[id(site)] = len(self._sites)
        words = (offsets // _WORD)[:, None] + np.arange(-(-size // _WORD))
        warps = party.ids // 32
        for warp in np.unique(warps).tolist():
            at = self._loads.get((cta.rank, warp))
            if at is None:
                at = np.zeros(-(-cta.shared.size // _WORD), np.int32)
                self._loads[cta.rank, warp] = at
            at[words[warps == warp]] = number

    def releases(self, party: Party, site: Instruction | None) -> None:
        """What threads know is about to be published."""
        if site is not None and not self.pending.any_open(site):
            return
        warps = party.ids // 32
        epochs = self.team.clocks.epochs[party.threads]
        for warp in np.unique(warps).tolist():
            mine = warps == warp
            log = self._releases.setdefault(warp, [])
            log.append((epochs[mine].copy(), party.ids[mine], site))

    def read(self, cta: Cta, start: int, thread: int, epoch: int) -> Severity:
        """How bad it is to overwrite what a thread has read before its release of an epoch.

        ISA where the load was over, ERROR where it may not have been. Barriers of whole CTAs are
        for review: they ask for earlier accesses to be performed, and nobody has measured it.
        """
        at = self._loads.get((cta.rank, thread // 32))
        number = 0 if at is None else int(at[start // _WORD])
        released, site = self._release(thread, epoch)
        if not released:
            return Severity.ISA
        if number and not self.pending.is_open(self._sites[number - 1], site):
            return Severity.ISA
        meets = site is None or (site.opcode in _BARRIERS and "warp" not in site.modifiers)
        return Severity.REVIEW if meets else Severity.ERROR

    def is_open(self, load: Instruction, thread: int, epoch: int) -> bool:
        """Whether a load was pending when its thread released what it knew in an epoch."""
        released, site = self._release(thread, epoch)
        return released and self.pending.is_open(load, site)

    def _release(self, thread: int, epoch: int) -> tuple[bool, Instruction | None]:
        """Whether loads were pending at the release of an epoch, and the instruction if known."""
        for epochs, ids, site in reversed(self._releases.get(thread // 32, [])):
            at = int(np.searchsorted(ids, thread))
            if at < len(ids) and ids[at] == thread and epochs[at] <= epoch:
                return int(epochs[at]) == epoch, site
        return False, None
