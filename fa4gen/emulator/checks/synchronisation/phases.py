"""Whether arrivals count in the phase, and waits see the phase, that they do under any schedule.

Phases of an mbarrier have no names: an arrival counts in the one under way, and a wait by parity
distinguishes that one from its neighbours only. So an arrival has to come after the end of the
phase before its own, and a wait after that of the phase before the one that it waits for, and
before that of the phase after it: by an order that synchronisation gives, not by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import EXEC
from fa4gen.emulator.checks.synchronisation.barrier_clock import Arrivals, BarrierClock, Waits
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Mbarrier

_WARP: Final = 32


class PhaseChecks:
    """The phases of the mbarriers of one cluster."""

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        self.clocks = threads.clocks

    # ---- arrivals

    def counted(
        self, active: ActiveLanes, together: ActiveLanes, barrier: Mbarrier, site: Instruction
    ) -> None:
        """Arrivals, or expected bytes, of threads are about to count in the phase under way.

        The instruction is executed by the threads ``together``.
        """
        clock: BarrierClock = barrier.clock
        if barrier.phase:
            unknown = self._unknown(active, clock.done[EXEC], clock.last)
            if unknown >= 0:
                self.threads.sites.find(
                    "over-arrival", self._early(barrier, unknown), site, active.wg, active.mask
                )
        if together is not active:
            epochs = self.clocks.epochs.copy()
            clock.arrivals.append(Arrivals(active.ids, together.ids, epochs))

    def signalled(self, op: AsyncOp, barrier: Mbarrier) -> None:
        """An operation is about to count in the phase under way."""
        if not barrier.phase or op.clock is None:
            return
        clock: BarrierClock = barrier.clock
        missing = clock.done[EXEC] > op.clock[EXEC]
        if not missing.any():
            return
        # it completes after all that it speaks for, and after the earlier ones of its column
        for one in (*op.notes.get("tracks", ()), op):
            if one.slot >= 0 and clock.done[EXEC, one.slot] <= one.epoch:
                missing[one.slot] = False
        if missing.any():
            self.threads.sites.find(
                "over-arrival",
                f"{op.kind}: {self._early(barrier, int(missing.argmax()))}", op.site, op.wg, None,
            )  # fmt: skip

    def _early(self, barrier: Mbarrier, unknown: int) -> str:
        phase = barrier.phase
        return (
            f"counts in phase {phase} of {barrier.name}, and nothing orders it after the end of "
            f"phase {phase - 1}, which comes after what {self.threads.who(unknown)} did: it could "
            "count in that phase, in the place of another"
        )

    # ---- waits

    def _passes(self, active: ActiveLanes, barrier: Mbarrier, site: Instruction) -> None:
        """Threads that wait by parity see that the last phase is complete."""
        clock: BarrierClock = barrier.clock
        last = barrier.phase - 1
        if last > 0 and self._unknown(active, clock.before) >= 0:
            self._find(
                f"this wait sees phase {last} of {barrier.name} complete, and nothing orders it "
                f"after the end of phase {last - 1}: it was for an earlier one, and passes now "
                "because an odd number of others have completed since",
                active,
                site,
            )

    def blocks(self, active: ActiveLanes, barrier: Mbarrier, site: Instruction) -> None:
        """Threads have to wait for the phase under way."""
        clock: BarrierClock = barrier.clock
        phase = barrier.phase
        if phase and self._unknown(active, clock.done[EXEC]) >= 0:
            self._find(
                f"this wait has to wait for phase {phase} of {barrier.name}, and nothing orders it "
                f"after the end of phase {phase - 1}: a thread that comes earlier passes at once, "
                "or it has missed its phase",
                active,
                site,
            )

    def _find(self, message: str, active: ActiveLanes, site: Instruction) -> None:
        self.threads.sites.find("phase-lap", message, site, active.wg, active.mask)

    def waited(self, active: ActiveLanes, barrier: Mbarrier, phase: int, site: Instruction) -> None:
        """Threads saw a phase complete."""
        clock: BarrierClock = barrier.clock
        if "parity" in site.modifiers:
            self._passes(active, barrier, site)
        waits = clock.waits.get(phase)
        if waits is None:
            waits = clock.waits[phase] = Waits(np.zeros(self.threads.stride, np.uint32), {})
            if len(clock.waits) > 2:
                for old in [one for one in clock.waits if one < phase - 1]:
                    del clock.waits[old]
        base = barrier.cta.rank * self.threads.stride
        waits.epochs[active.ids - base] = self.clocks.epochs[active.threads]
        waits.sites[active.wg] = site
        if barrier.phase > phase + 1:
            self.threads.sites.find(
                "phase-lap",
                f"{barrier.name} is already in phase {barrier.phase} when phase "
                f"{phase} is seen to be complete",
                site,
                active.wg,
                active.mask,
                Severity.REVIEW,
            )

    # ---- completions

    def completed(self, barrier: Mbarrier) -> None:
        """A phase is over: an arrival in it knows of each thread that waited for the one before."""
        clock: BarrierClock = barrier.clock
        phase = barrier.phase - 1
        waits = clock.waits.pop(phase - 1, None)
        if waits is not None:
            base = barrier.cta.rank * self.threads.stride
            seen = clock.pending[EXEC, base : base + self.threads.stride]
            late = (seen < waits.epochs).reshape(-1, _WARP)
            if late.any():
                # lanes of a warp go on together: one that was heard of speaks for the others
                heard = ((waits.epochs > 0).reshape(-1, _WARP) & ~late).any(axis=1)
                silent = late.any(axis=1) & ~heard
                if silent.any():
                    self._lapped(barrier, phase, int(silent.argmax()), late, waits)
        np.copyto(clock.before, clock.done[EXEC])
        clock.last, clock.arrivals = clock.arrivals, []

    def _lapped(
        self, barrier: Mbarrier, phase: int, warp: int, late: NDArray[np.bool_], waits: Waits
    ) -> None:
        thread = barrier.cta.rank * self.threads.stride + warp * _WARP + int(late[warp].argmax())
        wg, mask = self.threads.one(thread)
        self.threads.sites.find(
            "phase-lap",
            f"phase {phase} of {barrier.name} completes though nothing says that "
            f"{self.threads.who(thread)} has seen phase {phase - 1} complete: a thread that waits "
            f"slowly would miss it (last arrival: {barrier.last})",
            waits.sites[wg],
            wg,
            mask,
        )

    # ---- knowledge of threads

    def _unknown(
        self,
        active: ActiveLanes,
        wanted: NDArray[np.uint32],
        arrivals: Sequence[Arrivals] = (),
    ) -> int:
        """A column whose epoch of ``wanted`` none of some warp's lanes knows; -1: none."""
        common = self.clocks.common_view(active.threads, EXEC)
        if common is not None and not (wanted > common).any():
            return -1
        for part in self.threads.warps(active):
            first = int(part.ids[0]) // _WARP * _WARP
            warp = slice(first, min(first + _WARP, self.clocks.threads))
            known = self.clocks.views(warp, EXEC).max(axis=0)
            missing = wanted > known
            own = np.flatnonzero(missing[warp]) + first
            if len(own):
                missing[own] = self._apart(part, own, wanted[own])
            if arrivals and missing.any():
                missing[_with_others(arrivals, known)] = False
            if missing.any():
                return int(missing.argmax())
        return -1

    def _apart(
        self, part: ActiveLanes, own: NDArray[np.int64], epochs: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether accesses of a warp's lanes are apart from present ones of its other lanes."""
        ordered = self.threads.convergence.ordered(part.column, own, epochs)
        return np.asarray((~ordered & (part.column != own)).any(axis=0))


def _with_others(arrivals: Sequence[Arrivals], known: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Threads with those that arrived by the same instruction, of which another lane knows.

    The lanes of a warp arrive together, at several barriers; to know of one is to know of all.
    """
    found = []
    for one in arrivals:
        heard = one.together[known[one.together] >= one.epochs[one.together]]
        found.append(one.ids[np.isin(one.ids // _WARP, heard // _WARP)])
    return np.concatenate(found)
