"""The observer that keeps vector clocks and shadow memory and reports the errors found in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.cluster_state import ClusterState
from fa4gen.emulator.checks.global_memory.previous_grid import PreviousGrid
from fa4gen.emulator.checks.global_memory.races import GlobalChecks
from fa4gen.emulator.checks.global_memory.tensor_maps import MapChecks
from fa4gen.emulator.checks.order.clocks import AFTER, AVC, BEFORE, VC, first_plane
from fa4gen.emulator.checks.sites import Sites, is_strong
from fa4gen.emulator.checks.synchronisation.rounds import Grid
from fa4gen.emulator.checks.tensor_memory.races import quarters
from fa4gen.emulator.checks.work import WorkChecks
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Observer, SharedRange

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.global_arrays import Output
    from fa4gen.emulator.state.machine import (
        Cluster,
        Cta,
        Machine,
        Mbarrier,
        TensorRange,
        Warpgroup,
    )
    from fa4gen.emulator.state.registers import Mask

_ORDERS: Final = ("acq_rel", "acquire", "release")


class RaceObserver(Observer):
    """Happens-before for every cluster of a launch."""

    enabled = True

    def __init__(
        self, machine: Machine, *, options: CheckOptions, outputs: Sequence[Output] = ()
    ) -> None:
        self.machine = machine
        self.options = options
        self.sites = Sites(machine)
        self.grid = Grid(machine.geometry.num_clusters)
        self.memory = GlobalChecks(self.sites, self.grid, options)
        self.maps = MapChecks(self.sites, self.grid)
        pending = machine.pending
        self.previous = PreviousGrid(self.sites, self.grid, pending) if pending else None
        self.work = WorkChecks(machine, outputs) if options.work else None
        self._clusters: dict[Cluster, ClusterState] = {}
        # kept with the cluster: operations may complete after its threads have left
        self._state: Attached[Cluster, ClusterState] = Attached(
            lambda cluster: ClusterState(cluster, self.sites, self.grid, self.options)
        )

    def _of(self, wg: Warpgroup) -> ClusterState:
        return self._state.of(wg.cta.cluster)

    # ---- lifetime

    def cluster_starts(self, cluster: Cluster) -> None:
        self._clusters[cluster] = self._state.of(cluster)

    def cluster_ends(self, cluster: Cluster) -> None:
        del self._clusters[cluster]

    def launch_ends(self) -> None:
        if self.work is not None:
            self.work.ends()
        if self.previous is not None and self.options.global_memory:
            self.previous.ends()

    def lanes_leave(self, wg: Warpgroup, mask: Mask) -> None:
        state = self._of(wg)
        if self.options.early_exit:
            state.exits.leave(state.threads.active(wg, mask))

    def diverged(self, wg: Warpgroup, some: NDArray[Any], rest: NDArray[Any]) -> None:
        threads = self._of(wg).threads
        if threads.convergence.diverged(threads.base(wg), some, rest):
            wg.diverged = True

    def converged(self, wg: Warpgroup, mask: Mask) -> None:
        threads = self._of(wg).threads
        wg.diverged = threads.convergence.converged(threads.base(wg), wg, mask)

    # ---- generic accesses

    def shared_access(
        self,
        wg: Warpgroup,
        mask: Mask,
        cta: Cta,
        offsets: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        state = self._of(wg)
        if self.work is not None and self.work.waiting and kind != "write":
            self.work.read(cta, int(offsets.min()), int(offsets.max()) + size)
        active = state.threads.active(wg, mask)
        strong = kind == "atomic" or is_strong(site)
        if len(offsets) != len(active.ids):
            offsets = np.broadcast_to(offsets, len(active.ids))
        if kind == "read":
            state.threads.loaded(active, cta, offsets, size, site)
        state.shared[cta.rank].access(active, offsets, size, kind, strong, site, values)
        if strong:
            order = next((word for word in _ORDERS if word in site.modifiers), "relaxed")
            state.threads.releases(wg, mask, site)
            state.locations.synchronise(
                active, cta.rank, offsets, order, "cta", kind != "write", kind != "read"
            )
        if cta is not wg.cta and self.options.early_exit:
            state.exits.remote(active, cta, kind, site)

    def global_access(
        self,
        wg: Warpgroup,
        mask: Mask,
        addresses: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        if self.work is not None and kind != "read":
            self.work.write(addresses, size)
        if not self.options.global_memory:
            return
        threads = self._of(wg).threads
        active = threads.active(wg, mask)
        strong = kind == "atomic" or is_strong(site)
        if len(addresses) != len(active.ids):
            addresses = np.broadcast_to(addresses, len(active.ids))
        self.memory.access(threads, active, addresses, size, kind, strong, site, values)
        if kind != "read":
            high = int(addresses.max()) + size
            self.maps.stored(threads, active, int(addresses.min()), high, kind, site)
        if self.previous is not None:
            self.previous.access(threads, active, addresses, size, kind, site)

    # ---- asynchronous operations

    def issued(self, op: AsyncOp) -> None:
        state = self._of(op.wg)
        if op.continues is not None:
            self._continues(state, op, op.continues)
            return
        threads = state.threads
        threads.assign_slot(op)
        op.clock = threads.issues(op)
        if not (op.reads or op.writes or op.tensor_reads or op.tensor_writes):
            return
        if self.work is not None:
            self.work.issued(op)
        number = self.sites.operation(op)
        ctas: dict[Cta, None] = {}
        for part in state.stretches.of(op):
            state.shared[part.cta.rank].operation_reads(op, part, op.clock, number)
            ctas[part.cta] = None
        for goal in op.writes:
            if isinstance(goal, SharedRange):
                state.shared[goal.cta.rank].operation_writes(op, goal, op.clock, number)
                ctas[goal.cta] = None
        if op.tensor_reads or op.tensor_writes:
            parts = (*op.tensor_reads, *op.tensor_writes)
            for cta in dict.fromkeys(part.cta for part in parts):
                state.tensors[cta.rank].operation(op, number, threads.base(op.wg) + op.lane)
                if cta is not op.wg.cta:
                    ctas[cta] = None
        if self.options.early_exit:
            for cta in ctas:
                state.exits.operation(op, cta, number)
        if self.options.global_memory:
            self.memory.operation(threads, op, number)
            if "map" in op.notes:
                self.maps.used(threads, op, number)
            if self.previous is not None:
                self.previous.operation(threads, op)

    def _continues(self, state: ClusterState, op: AsyncOp, before: AsyncOp) -> None:
        """Report the reads of an operation that continues the one before: its writes are known."""
        op.slot, op.epoch, op.clock = before.slot, before.epoch, before.clock
        if self.work is not None:
            self.work.issued(op)
        number = self.sites.operation(op)
        for part in state.stretches.of(op):
            state.shared[part.cta.rank].operation_reads(op, part, op.clock, number)
        issuer = state.threads.base(op.wg) + op.lane
        news = [part for part in op.tensor_reads if part not in op.tensor_writes]
        for cta in dict.fromkeys(part.cta for part in news):
            state.tensors[cta.rank].operation(op, number, issuer, written=False)

    def observed(self, wg: Warpgroup, mask: Mask, ops: list[AsyncOp], kind: str) -> None:
        ops = [op for op in ops if op.slot >= 0]
        if not ops:
            return
        state = self._of(wg)
        active = state.threads.active(wg, mask)
        early = 1 if kind == "read" else 0
        slots = np.array([op.slot for op in ops], np.int64)
        epochs = np.array([op.epoch - early for op in ops], np.uint32)
        last = ops[-1]
        clock = last.clock if last.kind.startswith("wgmma") else None
        state.threads.clocks.learn(active.threads, slots, epochs, clock, first_plane(last))
        if not early:
            for op in ops:
                state.threads.settle(op)

    def signalled(self, op: AsyncOp, barrier: Mbarrier) -> None:
        state = self._of(op.wg)
        state.barriers.signalled(op, barrier)
        if self.options.early_exit:
            state.exits.signal(op, barrier, self.sites.operation(op))

    def warpgroup_meets(self, wg: Warpgroup) -> None:
        self._of(wg).threads.meet_at_product(wg)

    # ---- barriers

    def barrier_init(self, wg: Warpgroup, lane: int, barrier: Mbarrier, site: Instruction) -> None:
        state = self._of(wg)
        mask = np.zeros(wg.lanes, np.bool_)
        mask[lane] = True
        active = state.threads.active(wg, mask)
        state.shared[barrier.cta.rank].barrier_made(active, barrier.offset, site)
        state.barriers.made(active, barrier, site)

    def barrier_used(self, wg: Warpgroup, mask: Mask, barrier: Mbarrier, site: Instruction) -> None:
        state = self._of(wg)
        active = state.threads.active(wg, mask)
        state.barriers.used(active, barrier, site)
        if barrier.cta is not wg.cta and self.options.early_exit:
            state.exits.remote(active, barrier.cta, site.opcode, site)

    def counted(
        self, wg: Warpgroup, mask: Mask, together: Mask, barrier: Mbarrier, site: Instruction
    ) -> None:
        state = self._of(wg)
        active = state.threads.active(wg, mask)
        whole = active if together is mask else state.threads.active(wg, together)
        state.barriers.counted(active, whole, barrier, site)

    def blocked(self, wg: Warpgroup, mask: Mask, barrier: Mbarrier, site: Instruction) -> None:
        state = self._of(wg)
        state.barriers.blocked(state.threads.active(wg, mask), barrier, site)

    def arrived(
        self, wg: Warpgroup, mask: Mask, barrier: Mbarrier, release: str, site: Instruction
    ) -> None:
        state = self._of(wg)
        state.threads.releases(wg, mask, site)
        state.barriers.arrived(state.threads.active(wg, mask), barrier, release)

    def phase_completed(self, barrier: Mbarrier) -> None:
        state = self._state.of(barrier.cta.cluster)
        state.barriers.completed(barrier)

    def waited(
        self,
        wg: Warpgroup,
        mask: Mask,
        barrier: Mbarrier,
        phase: int,
        acquire: str,
        site: Instruction,
    ) -> None:
        state = self._of(wg)
        state.barriers.waited(state.threads.active(wg, mask), barrier, phase, acquire, site)

    def rendezvous_arrive(
        self, wg: Warpgroup, mask: Mask, key: Any, release: bool, site: Instruction | None = None
    ) -> None:
        state = self._of(wg)
        active = state.threads.active(wg, mask)
        of_cluster = key[0] == "cluster"
        if site is not None and self.options.races and not of_cluster:
            state.rendezvous.reused(active, key, site)
        state.threads.releases(wg, mask, None if of_cluster else site, site)
        state.rendezvous.arrive(active, key, release)

    def rendezvous_leave(self, wg: Warpgroup, mask: Mask, key: Any, acquire: bool) -> None:
        state = self._of(wg)
        state.rendezvous.leave(state.threads.active(wg, mask), key, acquire)

    def rendezvous_reset(self, key: Any) -> None:
        for state in self._clusters.values():
            state.rendezvous.reset(key)

    def warp_sync(self, wg: Warpgroup, mask: Mask, site: Instruction | None = None) -> None:
        state = self._of(wg)
        state.threads.releases(wg, mask, site)
        state.rendezvous.warp(state.threads.active(wg, mask))

    # ---- fences

    def fence(self, wg: Warpgroup, mask: Mask, kind: str, site: Instruction) -> None:
        state = self._of(wg)
        clocks = state.threads.clocks
        active = state.threads.active(wg, mask)
        if kind.startswith("fence.proxy.async"):
            clocks.fence(active.threads, AVC, VC)
            state.barriers.fenced(active)
        elif kind.startswith("fence.mbarrier_init"):
            clocks.advance(active.threads)
            state.barriers.fenced(active)
        elif kind.startswith("tcgen05.fence") and clocks.planes > BEFORE:
            if kind.endswith("before_thread_sync"):
                clocks.fence(active.threads, BEFORE, VC)
            else:
                clocks.fence(active.threads, AFTER, BEFORE)
        elif kind.startswith("fence.proxy.tensormap::generic.release"):
            self.maps.released(state.threads, active)
        elif not kind.startswith("fence.proxy"):
            words = kind.rstrip(";").split(".")
            wide = words[-1] in ("cluster", "gpu", "sys", "gl")
            state.threads.releases(wg, mask, site)
            state.locations.fence(active, kind)
            if wide and "acquire" not in words:
                state.threads.releases(wg, mask, site)
                state.barriers.release_fence(active)
            if wide and "release" not in words:
                state.barriers.acquire_fence(active)

    def atomic_sync(
        self,
        wg: Warpgroup,
        mask: Mask,
        addresses: NDArray[Any],
        order: str,
        scope: str,
        reads: bool,
        writes: bool,
        site: Instruction,
    ) -> None:
        state = self._of(wg)
        active = state.threads.active(wg, mask)
        addresses = np.broadcast_to(addresses, len(active.ids))
        state.threads.releases(wg, mask, site)
        state.locations.synchronise(active, "global", addresses, order, scope, reads, writes)

    # ---- tensor memory

    def tensor_access(
        self, wg: Warpgroup, mask: Mask, ranges: list[TensorRange], kind: str, site: Instruction
    ) -> Any:
        threads = self._of(wg).threads
        for part in ranges:
            checks = self._of(wg).tensors[part.cta.rank]
            if kind == "free":
                checks.access(threads.active(wg, mask), part, kind, site)
                continue
            for quarter, piece in quarters(part):
                checks.access(threads.warp(wg, quarter), piece, kind, site)
        return None

    def tensor_waited(self, wg: Warpgroup, mask: Mask, kind: str) -> None:
        state = self._of(wg)
        for warp in wg.warps_of(mask):
            state.tensors[wg.cta.rank].waited(state.threads.warp(wg, warp), kind)

    def pair_allocated(self, wg: Warpgroup, mask: Mask, number: int) -> None:
        state = self._of(wg)
        state.pairs.allocated(state.threads.active(wg, mask), number)

    def pair_freed(
        self, wg: Warpgroup, mask: Mask, peer: Cta, number: int, site: Instruction
    ) -> None:
        state = self._of(wg)
        state.pairs.freed(state.threads.active(wg, mask), peer, number, site)

    # ---- tensor maps, and the grid before

    def map_changed(
        self, wg: Warpgroup, mask: Mask, address: int, released: bool, site: Instruction
    ) -> None:
        if self.options.global_memory:
            threads = self._of(wg).threads
            self.maps.changed(threads, threads.active(wg, mask), address, "change", released, site)

    def map_acquired(self, wg: Warpgroup, mask: Mask, addresses: Any) -> None:
        threads = self._of(wg).threads
        self.maps.acquired(threads, threads.active(wg, mask), addresses)

    def grid_waited(self, wg: Warpgroup, mask: Mask) -> None:
        if self.previous is not None:
            threads = self._of(wg).threads
            self.previous.waited(threads, threads.active(wg, mask))
