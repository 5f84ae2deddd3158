"""Threads that leave while their shared memory is still in use by peers, copies or products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import EXEC
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cta, Warpgroup
    from fa4gen.emulator.state.registers import Mask


class ExitChecks:
    """Who uses the shared memory of CTAs from afar or asynchronously, and who has left.

    Shared memory of a CTA lives until its last thread leaves: what peers and asynchronous
    operations do with it has to happen before some thread's exit.
    """

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        columns = threads.clocks.nobody + 1
        ctas = len(threads.cluster.ctas)
        self._used = np.zeros((ctas, columns), np.uint32)
        self._sites: dict[tuple[int, int], int] = {}
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
        """An asynchronous operation uses a CTA's shared memory, or a peer's barrier or columns."""
        if not cta.alive:
            self._after_exit(cta, op.kind, op.site, op.wg, None)
            return
        self._used[cta.rank, op.slot] = op.epoch - 1
        self._sites[cta.rank, op.slot] = number

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
        """The first store that only reads what is the CTA's own, and the first of all others.

        The SM keeps the shared memory of a CTA until its bulk and tensor stores have read it.
        """
        threads = self.threads.clocks.threads
        sites = self.threads.sites
        reported: set[Severity] = set()
        for slot in np.flatnonzero(early).tolist():
            number = self._sites[cta.rank, slot if slot >= threads else -1 - slot // 32]
            site = sites.get(number).instruction
            stores = slot >= threads and "bulk_group" in site.modifiers
            severity = Severity.ISA if stores else Severity.ERROR
            if severity in reported:
                continue
            reported.add(severity)
            sites.find(
                "early-exit",
                f"{cta.label} leaves and nothing orders that after "
                f"{sites.earlier(number, self.threads.who(slot))}, which uses its shared memory: "
                f"{_missing(site)}",
                site,
                active.wg,
                active.mask,
                severity,
            )

    def _after_exit(
        self, cta: Cta, kind: str, site: Instruction, wg: Warpgroup, mask: Mask | Any
    ) -> None:
        self.threads.sites.find(
            "early-exit",
            f"{kind} uses shared memory of {cta.label}, whose threads have all left: "
            f"{_missing(site)}",
            site,
            wg,
            mask,
        )


def _missing(site: Instruction) -> str:
    """What should have come between an access to shared memory and the end of its CTA."""
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
