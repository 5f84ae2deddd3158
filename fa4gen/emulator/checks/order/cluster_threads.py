"""All threads of a cluster as the clocks number them, and its asynchronous slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
from fa4gen.emulator.checks.order.clocks import WARP, Clocks, Threads, Vector
from fa4gen.emulator.checks.order.convergence import Convergence
from fa4gen.emulator.checks.order.released import LoadsUnwatched, Released
from fa4gen.emulator.checks.sites import COMMIT, Sites, person
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cluster, Cta, Warpgroup
    from fa4gen.emulator.state.registers import Mask

MAX_SLOTS_PER_CTA: Final = 4096


class SlotsExhausted(Exception):  # noqa: N818 (no error: the launch begins again with more)
    """More asynchronous operations are under way than the clocks have columns for."""


# Sets of lanes that are remembered.
_MOST_MASKS: Final = 1024


class ClusterThreads:
    """All threads of a cluster and its asynchronous slots.

    Thread numbers count warps in full, so that ``number // 32`` is a warp of one CTA.
    """

    def __init__(self, cluster: Cluster, sites: Sites) -> None:
        machine = cluster.machine
        self.cluster = cluster
        self.sites = sites
        self.stride = -(-cluster.ctas[0].threads // WARP) * WARP
        count = self.stride * len(cluster.ctas)
        slots = machine.slots_per_cta * len(cluster.ctas)
        self.clocks: Clocks = Clocks(count, slots, machine.sm >= 100)
        self.convergence = Convergence(self.clocks)
        self._slots = slots
        self._slot_epochs = [0] * slots
        self._slot_busy = [False] * slots
        self._next = 0
        self._slots_of_commits: dict[tuple[Warpgroup, int], int] = {}
        self._all: dict[Warpgroup, ActiveLanes] = {}
        self._released = (
            None if machine.pending_loads is None else Released(self.clocks, machine.pending_loads)
        )
        self._missed: dict[int, Vector] = {}
        self._met: dict[Warpgroup, Vector] = {}
        self._some: dict[tuple[Warpgroup, bytes], ActiveLanes] = {}
        self._warps: dict[tuple[Warpgroup, int], ActiveLanes] = {}

    def base(self, wg: Warpgroup) -> int:
        """The number of a warpgroup's first thread."""
        return wg.cta.rank * self.stride + wg.first_thread

    def active(self, wg: Warpgroup, mask: Mask) -> ActiveLanes:
        """The lanes of a mask."""
        if mask is None:
            active = self._all.get(wg)
            if active is None:
                base = self.base(wg)
                ids = np.arange(base, base + wg.lanes)
                active = ActiveLanes(
                    wg, None, slice(base, base + wg.lanes), ids, ids[:, None], True
                )
                self._all[wg] = active
            return active
        key = wg, mask.tobytes()
        active = self._some.get(key)
        if active is None:
            if len(self._some) >= _MOST_MASKS:
                self._some.clear()
            ids = np.flatnonzero(mask)
            ids += self.base(wg)
            first, last = int(ids[0]), int(ids[-1])
            threads: Threads = ids if last - first >= len(ids) else slice(first, last + 1)
            active = self._some[key] = ActiveLanes(wg, mask.copy(), threads, ids, ids[:, None])
        return active

    def warp(self, wg: Warpgroup, number: int) -> ActiveLanes:
        """All lanes of a warp of a warpgroup."""
        active = self._warps.get((wg, number))
        if active is None:
            mask = np.zeros(wg.lanes, np.bool_)
            mask[number * WARP : (number + 1) * WARP] = True
            active = self._warps[wg, number] = self.active(wg, mask)
        return active

    def warps(self, active: ActiveLanes) -> list[ActiveLanes]:
        """The lanes, warp by warp."""
        wg = active.wg
        if len(active.ids) == wg.lanes and wg.lanes % WARP == 0:
            return [self.warp(wg, number) for number in range(wg.warps)]
        if active.ids[-1] // WARP == active.ids[0] // WARP:
            return [active]
        result = []
        for warp in np.unique(active.ids // WARP).tolist():
            ids = active.ids[active.ids // WARP == warp]
            first, last = int(ids[0]), int(ids[-1])
            threads: Threads = ids if last - first >= len(ids) else slice(first, last + 1)
            result.append(ActiveLanes(active.wg, active.mask, threads, ids, ids[:, None]))
        return result

    def where(self, number: int) -> tuple[Cta, int]:
        """The CTA of a thread number and the thread within it."""
        return self.cluster.ctas[number // self.stride], number % self.stride

    def who(self, slot: int) -> str:
        """A thread number in words (an asynchronous slot has a site that names the thread)."""
        if slot >= self.clocks.threads:
            return "an asynchronous operation"
        cta, thread = self.where(slot)
        return person(cta.machine, cta, thread)

    def one(self, number: int) -> tuple[Warpgroup, Any]:
        """A thread as a warpgroup and a mask."""
        cta, thread = self.where(number)
        wg = next(g for g in cta.warpgroups if thread < g.first_thread + g.lanes)
        mask = np.zeros(wg.lanes, np.bool_)
        mask[thread - wg.first_thread] = True
        return wg, mask

    # ---- loads under way

    def loaded(
        self, active: ActiveLanes, cta: Cta, offsets: Any, size: int, site: Instruction
    ) -> None:
        """Threads have loaded from shared memory."""
        if self._released is not None:
            self._released.loaded(active, cta, offsets, size, site)

    def releases(
        self,
        wg: Warpgroup,
        mask: Mask,
        site: Instruction | None,
        place: Instruction | None = None,
    ) -> None:
        """Threads are about to publish their knowledge, at ``site``; see Release."""
        if self._released is not None:
            self._released.releases(self.active(wg, mask), site, place)

    # ---- operations

    def issues(self, op: AsyncOp) -> Vector:
        """Threads issue an operation, which publishes their knowledge: its clock."""
        base = self.base(op.wg)
        if op.kind.startswith("wgmma"):
            self.releases(op.wg, None, op.site)
            return self.clocks.snapshot_warps(base, base + op.wg.lanes)
        first, stop = op.notes.get("issuers", (op.lane, op.lane + 1))
        if self._released is not None:
            mask = np.zeros(op.wg.lanes, np.bool_)
            mask[first:stop] = True
            self.releases(op.wg, mask, op.site)
        if "issuers" in op.notes:
            # one operation for several lanes of a warp
            return self.clocks.snapshot_warps(base + first, base + stop)
        return self.clocks.snapshot(base + op.lane)

    def meet_at_product(self, wg: Warpgroup) -> None:
        """All warps of a warpgroup have come to the first wgmma after a wgmma.fence."""
        met = self._met[wg] = self.clocks.vector()
        base = self.base(wg)
        self.clocks.publish(slice(base, base + wg.lanes), met)

    def met(self, wg: Warpgroup) -> Vector | None:
        """The warps' joint knowledge when they last met at a product; no PTX rule hands it on."""
        return self._met.get(wg)

    def watched_loads(self) -> Released:
        """The record of loads; raises LoadsUnwatched, to begin again, if none was kept."""
        if self._released is None:
            raise LoadsUnwatched
        return self._released

    # ---- scopes

    def missed(self, cta: Cta, known: Vector) -> None:
        """A wait of the scope of its CTA would have learnt this with that of the cluster."""
        before = self._missed.get(cta.rank)
        if before is None:
            self._missed[cta.rank] = known.copy()
        else:
            np.maximum(before, known, out=before)

    def has_missed(self, cta: Cta, plane: int, slot: int, epoch: int) -> bool:
        """Whether only the scope of a wait keeps an epoch from being known in a CTA."""
        missed = self._missed.get(cta.rank)
        return missed is not None and bool(missed[plane, slot] >= epoch)

    # ---- slots

    def assign_slot(self, op: AsyncOp) -> None:
        """Give an operation its column. Its epoch is even; one less says that it has read.

        Commits of one thread share a column: to know of one is to know of those before it.
        """
        slot = self._slots_of_commits.get((op.wg, op.lane), -1) if op.kind == COMMIT else -1
        if slot < 0:
            slot = self._free_slot(op)
            if op.kind == COMMIT:
                self._slots_of_commits[op.wg, op.lane] = slot
        self._slot_epochs[slot] += 2
        op.slot = self.clocks.threads + slot
        op.epoch = self._slot_epochs[slot]

    def _free_slot(self, op: AsyncOp) -> int:
        """Take a column that serves no operation under way."""
        slot = self._next
        for _ in range(self._slots):
            if not self._slot_busy[slot]:
                break
            slot = (slot + 1) % self._slots
        else:
            self._exhausted(op)
        self._next = (slot + 1) % self._slots
        self._slot_busy[slot] = True
        return slot

    def _exhausted(self, op: AsyncOp) -> None:
        """Ask for more columns; at the limit, report which checks are lost."""
        machine = self.cluster.machine
        if machine.slots_per_cta < MAX_SLOTS_PER_CTA:
            raise SlotsExhausted
        machine.find(
            "not-watched",
            f"more than {self._slots} asynchronous operations are under way, since nothing waits "
            "for them: the oldest are no longer compared with what comes after",
            op.site,
            op.wg,
            None,
            Severity.INCOMPLETE,
        )

    def settle(self, op: AsyncOp) -> None:
        """Someone has seen the operation complete, so that its column may serve another."""
        if op.kind == COMMIT:
            return
        slot = op.slot - self.clocks.threads
        if self._slot_epochs[slot] == op.epoch:
            self._slot_busy[slot] = False
