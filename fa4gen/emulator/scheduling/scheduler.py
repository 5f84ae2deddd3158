"""The scheduler: cooperative and seeded, over lanes, until the end of a launch.

Lanes of a warpgroup that are at the same step run together. Which warpgroup, which step and
whether an asynchronous operation takes effect first is the seed's choice, within the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from fa4gen.emulator.instructions.sync.barriers import (
    CLUSTER_BARRIER,
    member_mask,
    next_use,
    settle_cluster,
    settle_named,
)
from fa4gen.emulator.instructions.sync.control import check_reallocations
from fa4gen.emulator.ptx.syntax import Instruction, Label
from fa4gen.emulator.report import Severity
from fa4gen.emulator.scheduling import divergence
from fa4gen.emulator.scheduling.complete_warps import complete_lanes
from fa4gen.emulator.scheduling.deadlock import Standstill, report_deadlock
from fa4gen.emulator.scheduling.jumps import jump
from fa4gen.emulator.scheduling.lane_states import LaneStates, Parked
from fa4gen.emulator.scheduling.limits import Watch
from fa4gen.emulator.scheduling.residents import Residents
from fa4gen.emulator.state.findings import Stop
from fa4gen.emulator.state.lanes import PARTIAL, WARPGROUP, Lanes
from fa4gen.emulator.state.machine import Machine, Warpgroup
from fa4gen.emulator.state.special_registers import set_specials
from fa4gen.emulator.state.tally import BOTH
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.entry_code import Code
from fa4gen.emulator.translate.outcome import Waiting
from fa4gen.emulator.translate.steps import Run, Step

if TYPE_CHECKING:
    from fa4gen.emulator.timeline.timeline import Timeline

# Steps that lanes may take in a row before the choice is made anew.
_STRETCH: Final = 8
# Steps without any visible effect after which polling threads are suspected.
_IDLE: Final = 2_000


class Scheduler:
    """Runs the clusters of a launch to their end."""

    def __init__(
        self,
        machine: Machine,
        code: Code,
        waiting: Mapping[int, Waiting],
        policy: str,
        residents: Residents,
        watch: Watch,
        timeline: Timeline | None = None,
    ) -> None:
        self.machine = machine
        self.code = code
        self.policy = policy
        self.instructions = 0
        self.steps = 0
        self.finished_ctas = 0
        self._waiting = waiting
        self._random = machine.random
        self._limits = watch.limits
        self._watch = watch
        self.residents = residents
        self.lanes = LaneStates(machine.random, policy, timeline)
        self._timeline = timeline
        self._effects_at_timeout = -1
        self._reach = machine.tally.reach
        self._sides = machine.tally.sides
        self._readers: dict[int, Callable[[Warpgroup], object]] = {}

    # ---- calls of the machine

    def wake(self, key: Hashable) -> None:
        """Lanes that wait for ``key`` execute their instruction again."""
        self.lanes.wake(key)

    def waiting_at(self, key: Hashable) -> bool:
        """Whether lanes wait for ``key``."""
        return key in self.lanes.parked

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Take the next cluster off the grid."""
        return self.residents.cancel()

    def _parked(self) -> list[Parked]:
        """All waiting lanes, for a report."""
        return [one for group in self.lanes.parked.values() for one in group]

    def _joining(self) -> list[tuple[Warpgroup, Step, Lanes]]:
        """Lanes that stand at an instruction which the rest of their warp has not reached."""
        return [
            (wg, self.code.steps[index], lanes)
            for wg, places in self.lanes.joint.items()
            for index, lanes in places.items()
        ]

    # ---- the loop

    def run(self) -> None:
        """Run until every thread has left; raises Stop after a fatal finding."""
        machine, random = self.machine, self._random
        engine = machine.engine
        lazy = self.policy == "lazy"
        mark, idle_from = -1, 0
        while True:
            if self.lanes.ready:
                self._check_limits(self.steps - idle_from)
                if len(engine) and not lazy and random.random() < 0.25:
                    engine.complete_random()
                self._run_one()
                self.steps += 1
                if machine.effects != mark:
                    mark, idle_from = machine.effects, self.steps
                elif self.steps - idle_from >= _IDLE and (self.steps - idle_from) % 256 == 0:
                    self._unblock_pollers()
                if self.steps % 512 == 0:
                    self._watch.look(self.finished_ctas)
            elif len(engine):
                engine.complete_random()
            elif not self.lanes.feed() and not self._start_or_finish():
                return

    def _start_or_finish(self) -> bool:
        """Nothing is ready: start a cluster, let waits time out, or end. False at the end."""
        running = self.residents.alive()
        if self.residents.can_start():
            self._watch.check_memory(self.finished_ctas)  # nothing ends: they add up
            self._start_cluster()
            return True
        if not running:
            return False
        if self._effects_at_timeout != self.machine.effects and self.lanes.time_out():
            self._effects_at_timeout = self.machine.effects
            return True
        code = self.code
        report_deadlock(
            Standstill(self.machine, code.instructions, code.steps, self._parked(), self._joining())
        )
        raise Stop("deadlock")

    def _unblock_pollers(self) -> None:
        """Let operations happen that threads may be polling memory for."""
        if len(self.machine.engine):
            self.machine.engine.complete_random()
        elif self.residents.can_start():
            self._start_cluster()
        else:
            self.lanes.starve_others()

    def _check_limits(self, idle: int) -> None:
        """End a run that has taken all its steps, or too many without an effect."""
        if self.steps >= self._limits.steps:
            self._give_up(f"{self.steps} steps were taken, which is the limit (max_steps)")
        if idle >= self._limits.idle_steps and not (
            len(self.machine.engine) or self.residents.can_start()
        ):
            self._give_up(f"{idle} steps were taken without a store, an arrival or a copy")

    def _give_up(self, why: str) -> None:
        wg, places = next(iter(self.lanes.ready.items()))
        step, lanes = next(iter(places.items()))
        site = self._site(self.code.steps[step])
        self.machine.log.add(
            "step-limit",
            Severity.INCOMPLETE,
            f"{why}: the kernel seems to spin here",
            site,
            self.machine.who(wg, lanes.mask),
        )
        raise Stop("step-limit")

    def _site(self, step: Step) -> Instruction | None:
        if step.end is not None:
            return step.end
        at = min(step.start, len(self.code.instructions) - 1)
        return self.code.instructions[at] if at >= 0 else None

    # ---- clusters

    def start(self) -> None:
        """Start as many clusters as are wanted side by side."""
        while self.residents.wants_more():
            self._start_cluster()

    def _start_cluster(self) -> None:
        machine = self.machine
        cluster = self.residents.start()
        machine.progress()
        machine.observer.cluster_starts(cluster)
        warpgroups = [wg for cta in cluster.ctas for wg in cta.warpgroups]
        for wg in warpgroups:
            set_specials(wg)
        self.lanes.add(warpgroups)

    # ---- one step

    def _run_one(self) -> None:
        wg, step, lanes = self.lanes.take()
        # with a timeline the lanes furthest behind come next, after every step
        for _ in range(_STRETCH if self._timeline is None else 1):
            follow = self._execute(wg, step, lanes)
            if follow < 0:
                return
            step = follow
            if wg in self.lanes.ready:
                break
        self.lanes.put(wg, step, lanes)

    def _execute(self, wg: Warpgroup, index: int, lanes: Lanes) -> int:
        """Run lanes from a step on; the step they all go on to, or -1 when they were placed."""
        code = self.code
        step = code.steps[index]
        if step.guard is not None:
            return self._split(wg, step, step.guard, lanes, index + 1, step.skip)
        level = lanes.level(wg)
        if step.joint > level:
            complete, rest = self._meet(wg, step, lanes)
            if rest is not None:
                self.lanes.hold(wg, index, rest)
            if complete is not None:
                self._go(wg, complete, step)
            return -1
        joined = self.lanes.join(wg, index, lanes)
        if joined is not lanes:
            self.lanes.put(wg, index, joined)
            return -1
        run, last, count = code.run_of(step, level, lanes.mask is not None)
        if step.joint:
            divergence.converge(wg, lanes)
        if self._reach[index] < last:
            self._reach[index] = last
        if count:
            self._run(run, wg, lanes, step.start, code.steps[last].stop)
            if wg.diverged and any(one.joint for one in code.steps[index + 1 : last + 1]):
                divergence.converge(wg, lanes)
        return self._finish(wg, lanes, last)

    def _go(self, wg: Warpgroup, lanes: Lanes, step: Step) -> None:
        """Run lanes that have just converged at a joint instruction: this step only."""
        run, last, _ = self.code.run_of(step, PARTIAL, lanes.mask is not None)
        divergence.converge(wg, lanes)
        if self._reach[step.index] < last:
            self._reach[step.index] = last
        self._run(run, wg, lanes, step.start, self.code.steps[last].stop)
        follow = self._finish(wg, lanes, last)
        if follow >= 0:
            self.lanes.put(wg, follow, lanes)

    def _run(self, run: Run, wg: Warpgroup, lanes: Lanes, start: int, stop: int) -> None:
        """Run the function of the instructions ``start`` to ``stop``."""
        timeline = self._timeline
        if timeline is not None:
            timeline.begins(wg, lanes, start, stop)
        self.instructions += (stop - start) * lanes.count(wg)
        run(wg, lanes.mask)
        if wg.deferred:
            deferred, wg.deferred = wg.deferred, []
            for action in deferred:
                action()
        if timeline is not None:
            timeline.ran(wg, lanes)

    def _finish(self, wg: Warpgroup, lanes: Lanes, index: int) -> int:
        """Carry out the effects at the end of a step."""
        step = self.code.steps[index]
        end = step.end
        if end is None:
            if index + 1 == len(self.code.steps):
                self._leave(wg, lanes)
                return -1
            return index + 1
        self.instructions += lanes.count(wg)
        if end.opcode == "bra":
            label = end.operands[0]
            assert isinstance(label, Label)
            target = self.code.target(label)
            if end.guard is None:
                return target
            return self._split(wg, step, end, lanes, target, index + 1)
        if end.opcode in ("ret", "exit"):
            self._leave(wg, lanes)
            return -1
        if end.opcode == "brx":
            for target, part in jump(self.machine, self.code, wg, lanes, end):
                divergence.diverge(wg, lanes, (part,))
                self.lanes.put(wg, target, part)
            return -1
        if end.opcode == "trap":
            self.machine.fault("trap", "the kernel executed trap", end, wg, lanes.mask)
        return self._wait(wg, lanes, index)

    def _split(
        self, wg: Warpgroup, step: Step, condition: Instruction, lanes: Lanes, yes: int, no: int
    ) -> int:
        """Send lanes on by the guard of a step: to ``yes`` where it holds, to ``no`` elsewhere."""
        assert condition.guard is not None
        holds = wg.P[condition.guard.index]
        if condition.guard_negated:
            holds = ~holds
        if lanes.mask is not None:
            holds = holds & lanes.mask
            count, total = int(np.count_nonzero(holds)), int(np.count_nonzero(lanes.mask))
        else:
            count, total = int(np.count_nonzero(holds)), wg.lanes
        if self._sides[step.index] != BOTH:
            self.machine.tally.split(step.index, wg, lanes.mask, holds, total, self.machine.names)
        if count == total:
            return yes
        if count == 0:
            return no
        chosen = Lanes(holds.copy())
        divergence.diverge(wg, lanes, (chosen,))
        self.lanes.put(wg, yes, chosen)
        self.lanes.put(wg, no, lanes.minus(holds, wg))
        return -1

    def _meet(self, wg: Warpgroup, step: Step, lanes: Lanes) -> tuple[Lanes | None, Lanes | None]:
        """Join lanes with those already at a joint instruction: (lanes that go, ones that wait)."""
        lanes = self.lanes.join(wg, step.index, lanes)
        if lanes.level(wg) >= step.joint:
            return lanes, None
        if step.joint == WARPGROUP:
            return None, lanes
        instruction = self.code.instructions[step.start]
        members = member_mask(instruction)
        values = None
        if members is not None:
            if step.index not in self._readers:
                emitter = Emitter(self.code.layout, True, {})
                emitter.instruction = instruction
                self._readers[step.index] = emitter.reader(members, "u32")
            values = self._readers[step.index](wg)
        return complete_lanes(wg, lanes, values)

    def _wait(self, wg: Warpgroup, lanes: Lanes, index: int) -> int:
        """Execute an instruction at which lanes may wait."""
        step = self.code.steps[index]
        timed_out = self.lanes.timed_out(wg, index)
        outcome = self._waiting[index](wg, lanes, timed_out)
        for wait in outcome.waits:
            self.lanes.park(wg, index, wait)
        if step.end is not None and step.end.opcode in ("bar", "barrier"):
            self._settle(wg)
        divergence.diverge(wg, lanes, (wait.lanes for wait in outcome.waits))
        if outcome.done is None:
            return -1
        if not outcome.waits and outcome.done.mask is lanes.mask:
            return index + 1
        self.lanes.put(wg, index + 1, outcome.done)
        return -1

    def _settle(self, wg: Warpgroup) -> None:
        """Let lanes through named barriers that everyone has reached."""
        for key in settle_named(wg.cta):
            self.machine.tally.named.add(key[-1])
            self.machine.observer.rendezvous_reset(key)
            self.machine.progress()
            for parked in self.lanes.parked.pop(key, ()):
                lanes = parked.wait.lanes
                self.machine.observer.rendezvous_leave(parked.wg, lanes.mask, key, True)
                self.lanes.put(parked.wg, parked.step + 1, lanes)
            self.wake(next_use(key))

    def _leave(self, wg: Warpgroup, lanes: Lanes) -> None:
        """Threads leave the kernel: barriers no longer count on them."""
        machine = self.machine
        machine.observer.lanes_leave(wg, lanes.mask)
        wg.leave(lanes.mask)
        machine.progress()
        if not wg.alive and machine.observer.enabled:
            check_reallocations(wg)
        self.lanes.reconsider(wg)
        cta = wg.cta
        self._settle(wg)
        if len(cta.cluster.ctas) > 1 or CLUSTER_BARRIER.known(cta.cluster):
            settle_cluster(cta.cluster)
        if cta.alive:
            return
        self.finished_ctas += 1
        if cta.tensor_memory is not None:
            cta.tensor_memory.check_exit(cta.label, machine)
        if not cta.cluster.alive:
            machine.observer.cluster_ends(cta.cluster)
            machine.tally.ended(cta.cluster.ctas)
            self.lanes.remove([one for each in cta.cluster.ctas for one in each.warpgroups])
            if self.residents.wants_more():
                self._start_cluster()
