"""Knowledge that mbarriers and other barriers carry between threads, and rules about their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.checks.order.clocks import EXEC, VC, Vector, first_plane
from fa4gen.emulator.checks.synchronisation.barrier_clock import BarrierClock
from fa4gen.emulator.checks.synchronisation.phases import PhaseChecks
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Mbarrier, Warpgroup


class BarrierChecks:
    """The mbarriers of one cluster."""

    def __init__(self, threads: ClusterThreads, options: CheckOptions) -> None:
        self.threads = threads
        self.clocks = threads.clocks
        self.options = options
        self.phases = PhaseChecks(threads) if options.phase_lap else None
        self._unfenced: dict[int, list[BarrierClock]] = {}
        # thread -> its knowledge at its last fence.release, and what it has seen without acquiring
        self._released: dict[int, Vector] = {}
        self._seen: dict[int, Vector] = {}

    # ---- initialisation

    def made(self, active: ActiveLanes, barrier: Mbarrier, site: Instruction) -> None:
        """A thread has initialised an mbarrier."""
        thread = int(active.ids[0])
        clock = BarrierClock(
            self.clocks.vector(),
            self.clocks.vector(),
            self.clocks.vector()[EXEC],
            thread,
            int(self.clocks.epochs[thread]),
            site,
        )
        barrier.clock = clock
        self._unfenced.setdefault(thread, []).append(clock)

    def fenced(self, active: ActiveLanes) -> None:
        """``fence.mbarrier_init`` or ``fence.proxy.async``: initialisations so far are covered."""
        if self._unfenced:
            for thread in active.ids.tolist():
                for clock in self._unfenced.pop(thread, ()):
                    clock.fenced = True

    def used(self, active: ActiveLanes, barrier: Mbarrier, site: Instruction) -> None:
        """Check that an mbarrier's initialisation happens before its use by threads.

        With ``fence.mbarrier_init`` after it, relaxed synchronisation will do.
        """
        clock: BarrierClock = barrier.clock
        if active in clock.trusted:
            return
        good = self.clocks.knows(VC, active.threads, clock.maker, clock.made)
        if clock.fenced and not good.all():
            good |= self.clocks.knows(EXEC, active.threads, clock.maker, clock.made)
        if good.all():
            clock.trusted.add(active)
        elif self.options.races:
            self._find_init(
                "race",
                f"{barrier.name} is used and nothing orders that after its "
                f"initialisation by {self.threads.who(clock.maker)} at {clock.site.position}",
                site,
                active.wg,
                active.mask,
            )

    def signalled(self, op: AsyncOp, barrier: Mbarrier) -> None:
        """An operation signals an mbarrier: its waiters will know of it."""
        clock: BarrierClock = barrier.clock
        if self.phases is not None:
            self.phases.signalled(op, barrier)
        tracks = op.notes.get("tracks")
        far = op.wg.cta is not barrier.cta
        # the knowledge of issuers in another CTA reaches waits of the cluster's scope only
        near = clock.pending_near() if tracks and far else clock.near and clock.near[0]
        targets = [clock.pending] if near is None else [clock.pending, near]
        if tracks:
            seen = [one for one in tracks if one.slot >= 0]
            slots = [one.slot for one in seen]
            epochs = np.array([one.epoch for one in seen], np.uint32)
            first = max((first_plane(one) for one in seen), default=0)
            # in the order of issue: where two had the same slot, the later epoch is assigned last
            for target in targets:
                target[first:, slots] = np.maximum(target[first:, slots], epochs)
            # of each thread the last that it issued: it knew the most then
            for one in {(id(one.wg), one.lane): one for one in seen}.values():
                if one.clock is not None:
                    known = one.clock[: self.clocks.carried]
                    np.maximum(clock.pending, known, out=clock.pending)
                    if near is not None and far:
                        self.clocks.narrowed(known, near)
                    elif near is not None:
                        np.maximum(near, known, out=near)
            for one in tracks:
                self.threads.settle(one)
        first = first_plane(op)
        for target in targets:
            column = target[first:, op.slot]
            np.maximum(column, np.uint32(op.epoch), out=column)
            if op.clock is not None:  # it orders nothing, but says how far its issuer had come
                np.maximum(target[EXEC], op.clock[EXEC], out=target[EXEC])
        self.threads.settle(op)
        if self.options.init_fence and "init_checked" not in op.notes:
            self._signal_needs_fence(op, barrier, clock)

    def _signal_needs_fence(self, op: AsyncOp, barrier: Mbarrier, clock: BarrierClock) -> None:
        op.notes["init_checked"] = True
        if clock.fenced:
            if op.clock is not None and op.clock[EXEC, clock.maker] < clock.made:
                self._find_init(
                    "race",
                    f"{op.kind} signals {barrier.name}, and nothing orders "
                    f"that after its initialisation by {self.threads.who(clock.maker)} at "
                    f"{clock.site.position}",
                    op.site,
                    op.wg,
                    None,
                )
            return
        # ptxas makes no instruction of the fence: releases and acquires have the same effect
        met = barrier.cta is op.wg.cta or (
            op.clock is not None and op.clock[VC, clock.maker] >= clock.made
        )
        self._find_init(
            "missing-init-fence",
            f"{op.kind} signals {barrier.name}, but no "
            f"fence.mbarrier_init follows its initialisation at {clock.site.position}",
            op.site,
            op.wg,
            None,
            Severity.REVIEW if met else Severity.ERROR,
        )

    def _find_init(
        self,
        kind: str,
        message: str,
        site: Instruction,
        wg: Warpgroup,
        mask: Any,
        severity: Severity = Severity.ERROR,
    ) -> None:
        self.threads.sites.find(kind, message, site, wg, mask, severity)

    # ---- phases

    def counted(
        self, active: ActiveLanes, together: ActiveLanes, barrier: Mbarrier, site: Instruction
    ) -> None:
        """Arrivals, or bytes, of some of the threads that execute ``site`` are about to count."""
        if self.phases is not None:
            self.phases.counted(active, together, barrier, site)

    def blocked(self, active: ActiveLanes, barrier: Mbarrier, site: Instruction) -> None:
        """Threads have to wait for the phase under way, by its parity."""
        if self.phases is not None:
            self.phases.blocks(active, barrier, site)

    def arrived(self, active: ActiveLanes, barrier: Mbarrier, release: str) -> None:
        """Threads arrive with a release of a scope, or ``none``."""
        clock: BarrierClock = barrier.clock
        far = barrier.cta is not active.wg.cta
        if release == "none":
            self._arrived_relaxed(active, clock, far)
        elif far and release == "cluster":
            self.clocks.publish_twice(
                active.threads, clock.pending, clock.pending_near(), far=True, covers=True
            )
        elif clock.near is not None:
            self.clocks.publish_twice(
                active.threads, clock.pending, clock.near[0], far=far, covers=False
            )
        elif far:
            self.clocks.publish_remote(active.threads, clock.pending)
        else:
            self.clocks.publish(active.threads, clock.pending)

    def _arrived_relaxed(self, active: ActiveLanes, clock: BarrierClock, far: bool) -> None:
        """The part of relaxed arrivals' knowledge that a fence before them released."""
        for thread in active.ids.tolist() if self._released else ():
            known = self._released.get(thread)
            if known is not None:
                near = clock.pending_near() if far else clock.near and clock.near[0]
                np.maximum(clock.pending, known, out=clock.pending)
                if near is not None and far:
                    self.clocks.narrowed(known, near)
                elif near is not None:
                    np.maximum(near, known, out=near)
        self.clocks.publish(active.threads, clock.pending, EXEC)
        if clock.near is not None:
            np.maximum(clock.near[0][EXEC:], clock.pending[EXEC:], out=clock.near[0][EXEC:])

    def completed(self, barrier: Mbarrier) -> None:
        """Let waiters of a completed phase learn the knowledge that its arrivals published."""
        clock: BarrierClock = barrier.clock
        if self.phases is not None:
            self.phases.completed(barrier)
        np.copyto(clock.done, clock.pending)
        if clock.near is not None:
            np.copyto(clock.near[1], clock.near[0])

    def waited(
        self, active: ActiveLanes, barrier: Mbarrier, phase: int, acquire: str, site: Instruction
    ) -> None:
        """Threads saw a phase complete."""
        clock: BarrierClock = barrier.clock
        if self.phases is not None:
            self.phases.waited(active, barrier, phase, site)
        narrow = acquire == "cta" and clock.near is not None
        source = clock.near[1] if narrow and clock.near is not None else clock.done
        self.clocks.acquire(active.threads, source, EXEC if acquire == "none" else 0)
        if narrow:
            self.threads.missed(barrier.cta, clock.done)
        if narrow or acquire == "none":
            done = clock.done.copy()
            for thread in active.ids.tolist():
                earlier = self._seen.get(thread)
                self._seen[thread] = done if earlier is None else np.maximum(earlier, done)

    # ---- relaxed arrivals and waits, with fences next to them

    def release_fence(self, active: ActiveLanes) -> None:
        """Let the present knowledge of threads go with their relaxed arrivals from here on."""
        for thread in active.ids.tolist():
            known = self.clocks.vector()
            self.clocks.publish(slice(thread, thread + 1), known)
            self._released[thread] = known

    def acquire_fence(self, active: ActiveLanes) -> None:
        """Let threads learn the knowledge of phases that they saw complete without acquiring."""
        groups: dict[int, tuple[Vector, list[int]]] = {}
        for thread in active.ids.tolist() if self._seen else ():
            seen = self._seen.pop(thread, None)
            if seen is not None:
                groups.setdefault(id(seen), (seen, []))[1].append(thread)
        for seen, threads in groups.values():
            whole = len(threads) == len(active.ids)
            self.clocks.acquire(active.threads if whole else np.array(threads), seen)


class Rendezvous:
    """Named barriers, cluster barriers and warp barriers: participants learn from each other."""

    def __init__(self, threads: ClusterThreads) -> None:
        self.threads = threads
        self._open: dict[Any, Vector] = {}
        self._over: dict[Any, Vector] = {}
        # of named barriers: the epochs in which threads arrived, for this use and the one before
        self._arrivals: dict[Any, Vector] = {}
        self._last: dict[Any, Vector] = {}

    def reused(self, active: ActiveLanes, key: Any, site: Instruction) -> None:
        """Check that threads which come to a named barrier know that its last use is over.

        Otherwise they could have come during that use, in the place of others.
        """
        clocks = self.threads.clocks
        last = self._last.get(key)
        if last is not None:
            known = clocks.views(active.threads, EXEC)[:, : clocks.threads].min(axis=0)
            missing = last > known
            missing[active.ids] = False
            if missing.any():
                who = self.threads.who(int(missing.argmax()))
                self.threads.sites.find(
                    "barrier-misuse",
                    f"nothing orders this arrival at named barrier {key[-1]} "
                    f"after its last use, in which {who} took part: the two could mix",
                    site,
                    active.wg,
                    active.mask,
                )
        arrivals = self._arrivals.get(key)
        if arrivals is None:
            arrivals = self._arrivals[key] = np.zeros(clocks.threads, np.uint32)
        arrivals[active.ids] = clocks.epochs[active.threads]

    def arrive(self, active: ActiveLanes, key: Any, release: bool) -> None:
        """Threads come to the barrier ``key``."""
        clocks = self.threads.clocks
        pending = self._open.get(key)
        if pending is None:
            pending = self._open[key] = clocks.vector()
        clocks.publish(active.threads, pending, 0 if release else EXEC)

    def reset(self, key: Any) -> None:
        """All have come."""
        pending = self._open.pop(key, None)
        if pending is not None:
            self._over[key] = pending
        arrivals = self._arrivals.pop(key, None)
        if arrivals is not None:
            self._last[key] = arrivals

    def leave(self, active: ActiveLanes, key: Any, acquire: bool) -> None:
        """Threads go on."""
        done = self._over.get(key)
        if done is not None:
            self.threads.clocks.acquire(active.threads, done, 0 if acquire else EXEC)

    def warp(self, active: ActiveLanes) -> None:
        """Lanes synchronise with those of their own warp."""
        for part in self.threads.warps(active):
            if len(part.ids) > 1:
                self.threads.clocks.meet(part.threads)
