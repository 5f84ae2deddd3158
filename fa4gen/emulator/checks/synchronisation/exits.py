"""Threads that leave while their shared memory is still in use by peers, copies or products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import EXEC
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cta, Mbarrier, Warpgroup
    from fa4gen.emulator.state.registers import Mask


@dataclass(frozen=True, slots=True)
class Signal:
    """The arrival, or the bytes, of an operation at an mbarrier.

    alone  it is an arrival at a barrier of the issuer's CTA, and all that the operation does there
    """

    barrier: Mbarrier
    alone: bool

    @classmethod
    def of(cls, op: AsyncOp, barrier: Mbarrier) -> Signal:
        """Return the signal of an operation."""
        return cls(barrier, barrier.cta is op.wg.cta and not op.writes)


class ExitChecks:
    """Remote and asynchronous uses of CTAs' shared memory, and the CTAs whose threads have left.

    Shared memory of a CTA lives until its last thread leaves: accesses by peers and asynchronous
    operations have to come before some thread's exit.
    """

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        columns = threads.clocks.nobody + 1
        ctas = len(threads.cluster.ctas)
        self._used = np.zeros((ctas, columns), np.uint32)
        self._sites: dict[tuple[int, int], int] = {}
        self._signals: dict[tuple[int, int], Signal] = {}
        self._left = np.zeros((ctas, columns), np.uint32)

    def remote(self, active: ActiveLanes, cta: Cta, kind: str, site: Instruction) -> None:
        """Threads use the shared memory or an mbarrier of a peer."""
        if not cta.alive:
            self._after_exit(cta, kind, site, active.wg, active.mask)
            return
        self._used[cta.rank, active.threads] = self.threads.clocks.epochs[active.threads]
        number = self.threads.sites.generic(site, kind)
        for warp in np.unique(active.ids // 32).tolist():
            self._sites[cta.rank, -1 - warp] = number

    def operation(self, op: AsyncOp, cta: Cta, number: int) -> None:
        """An asynchronous operation uses a CTA's shared memory, or a peer's columns."""
        if not cta.alive:
            self._after_exit(cta, op.kind, op.site, op.wg, None)
            return
        self._used[cta.rank, op.slot] = op.epoch - 1
        self._sites[cta.rank, op.slot] = number
        self._signals.pop((cta.rank, op.slot), None)

    def signal(self, op: AsyncOp, barrier: Mbarrier, number: int) -> None:
        """An asynchronous operation signals an mbarrier.

        One that used the CTA's memory while there was a thread was reported when the last left.
        """
        cta = barrier.cta
        if not cta.alive:
            if self._used[cta.rank, op.slot] != op.epoch - 1:
                self._after_exit(cta, op.kind, op.site, op.wg, None, Signal.of(op, barrier))
            return
        self.operation(op, cta, number)
        self._signals[cta.rank, op.slot] = Signal.of(op, barrier)

    def leave(self, active: ActiveLanes) -> None:
        """Threads leave; when they are the last of their CTA, all that was done must be over."""
        wg = active.wg
        cta = wg.cta
        left = self._left[cta.rank]
        for known in self.threads.clocks.views(active.threads, EXEC):
            np.maximum(left, known, out=left)
        rest = sum(int(np.count_nonzero(one.live)) for one in cta.warpgroups) - len(active.ids)
        if rest:
            return
        early = self._used[cta.rank] > left
        if early.any():
            self._report(cta, active, early)

    def _report(self, cta: Cta, active: ActiveLanes, early: NDArray[np.bool_]) -> None:
        """Report the first operation of each kind, and the first access of threads.

        The SM keeps the shared memory of a CTA until its bulk and tensor stores have read it.
        """
        threads = self.threads.clocks.threads
        sites = self.threads.sites
        reported: set[tuple[Severity, str]] = set()
        for slot in np.flatnonzero(early).tolist():
            number = self._sites[cta.rank, slot if slot >= threads else -1 - slot // 32]
            site = sites.get(number).instruction
            signal = self._signals.get((cta.rank, slot)) if slot >= threads else None
            stores = slot >= threads and "bulk_group" in site.modifiers
            severity = Severity.ISA if stores else _severity(signal)
            missing = _missing(site)
            if (severity, missing) in reported:
                continue
            reported.add((severity, missing))
            sites.find(
                "early-exit",
                f"{cta.label} leaves and nothing orders that after "
                f"{sites.earlier(number, self.threads.who(slot))}, which {_use(cta, signal)}: "
                f"{missing}",
                site,
                active.wg,
                active.mask,
                severity,
            )

    def _after_exit(
        self,
        cta: Cta,
        kind: str,
        site: Instruction,
        wg: Warpgroup,
        mask: Mask | Any,
        signal: Signal | None = None,
    ) -> None:
        self.threads.sites.find(
            "early-exit",
            f"{kind} {_use(cta, signal)}, and all threads of {cta.label} have left: "
            f"{_missing(site)}",
            site,
            wg,
            mask,
            _severity(signal),
        )


def _use(cta: Cta, signal: Signal | None) -> str:
    """A use of a CTA's shared memory by an operation under way."""
    if signal is None:
        return f"uses shared memory of {cta.label}"
    return f"signals mbarrier {signal.barrier.name}"


def _severity(signal: Signal | None) -> Severity:
    """Kernels with an arrival without a wait run on GPUs; the PTX ISA forbids them."""
    return Severity.ISA if signal is not None and signal.alone else Severity.ERROR


def _missing(site: Instruction) -> str:
    """The synchronisation missing between an access to shared memory and the end of its CTA."""
    words = site.modifiers
    if "bulk_group" in words:
        return "its thread has to wait for it, by cp.async.bulk.commit_group and .wait_group.read"
    if site.opcode == "wgmma":
        return "wgmma.commit_group and .wait_group are missing"
    if site.opcode == "tcgen05" and words[0] != "commit":
        return "the CTA has to wait for the mbarrier of a tcgen05.commit after it"
    if site.opcode == "tcgen05":
        return "the CTA has to wait for its mbarrier, or for that of a later commit of its thread"
    if site.opcode == "cp" and words[:1] == ("async",) and not {"bulk", "mbarrier"} & {*words}:
        return "its threads have to wait for it, by cp.async.wait_all or .wait_group"
    if "async" in words:
        return "the CTA has to wait for the mbarrier that it signals"
    return "the CTA has to wait for that thread, at a barrier of the cluster or an mbarrier"
