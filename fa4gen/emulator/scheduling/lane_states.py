"""Where lanes stand: ready to go on, waiting for partners, or waiting for something to happen."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Gang
from fa4gen.emulator.translate.outcome import Wait

if TYPE_CHECKING:
    from fa4gen.emulator.timeline.timeline import Timeline

# How often the lanes that are furthest behind come first, so that they catch up with the others.
_CATCH_UP: Final = 0.875
# How often the priorities of the schedule "priority" change.
_CHANGE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Parked:
    """Lanes that wait at a step."""

    gang: Gang
    step: int
    wait: Wait


class Places:
    """All lanes of the resident CTAs, by what keeps them.

    ``ready`` lanes may run; ``joint`` ones stand at an instruction that the rest of their warp has
    yet to reach; ``parked`` ones wait under a key.
    """

    def __init__(self, random: Random, policy: str, timeline: Timeline | None) -> None:
        self.ready: dict[Gang, dict[int, Lanes]] = {}
        self.joint: dict[Gang, dict[int, Lanes]] = {}
        self.parked: dict[Hashable, list[Parked]] = {}
        self._random = random
        self._policy = policy
        self._timeline = timeline
        self._priority: dict[Gang, float] = {}
        self._starved: Gang | None = None
        self._timed_out: set[tuple[int, int]] = set()

    def add(self, gangs: list[Gang]) -> None:
        """Put the gangs of a new cluster at the entry."""
        for gang in gangs:
            self._priority[gang] = self._random.random()
            self.put(gang, 0, Lanes(None))
        if self._policy == "starve":
            self._starved = self._random.choice(gangs)

    def remove(self, gangs: list[Gang]) -> None:
        """Forget the gangs of a cluster that has ended."""
        for gang in gangs:
            self._priority.pop(gang, None)

    def put(self, gang: Gang, step: int, lanes: Lanes) -> None:
        """Let lanes go on at a step, together with those that stand there."""
        places = self.ready.setdefault(gang, {})
        known = places.get(step)
        places[step] = lanes if known is None else known.join(lanes)

    def take(self) -> tuple[Gang, int, Lanes]:
        """Choose who runs next, by the policy and the seed."""
        gang = self._choose()
        places = self.ready[gang]
        if len(places) == 1:
            step, lanes = places.popitem()
        elif self._timeline is not None:
            step = min(places, key=lambda one: (self._behind(gang, places[one]), one))
            lanes = places.pop(step)
        else:
            behind = self._random.random() < _CATCH_UP
            step = min(places) if behind else self._random.choice(list(places))
            lanes = places.pop(step)
        if not places:
            del self.ready[gang]
        return gang, step, lanes

    def _choose(self) -> Gang:
        gangs = list(self.ready)
        if len(gangs) == 1:
            return gangs[0]
        if self._timeline is not None:
            return min(
                gangs,
                key=lambda gang: min(self._behind(gang, one) for one in self.ready[gang].values()),
            )
        if self._policy == "priority":
            if self._random.random() < _CHANGE:
                self._priority[self._random.choice(gangs)] = self._random.random()
            return max(gangs, key=self._priority.__getitem__)
        if self._starved in self.ready:
            gangs.remove(self._starved)
        return gangs[int(self._random.random() * len(gangs))]

    def _behind(self, gang: Gang, lanes: Lanes) -> float:
        assert self._timeline is not None
        return self._timeline.behind(gang, lanes)

    # ---- partners

    def join(self, gang: Gang, step: int, lanes: Lanes) -> Lanes:
        """Add to lanes those that wait for partners at the same step."""
        waiting = self.joint.get(gang)
        if waiting is None or step not in waiting:
            return lanes
        lanes = lanes.join(waiting.pop(step))
        if not waiting:
            del self.joint[gang]
        return lanes

    def hold(self, gang: Gang, step: int, lanes: Lanes) -> None:
        """Let lanes wait for their partners."""
        self.joint.setdefault(gang, {})[step] = lanes

    def reconsider(self, gang: Gang) -> None:
        """Lanes of a gang have left: those that wait for partners look again."""
        for step, lanes in self.joint.pop(gang, {}).items():
            self.put(gang, step, lanes)

    # ---- waiting

    def park(self, gang: Gang, step: int, wait: Wait) -> None:
        """Let lanes wait."""
        self.parked.setdefault(wait.key, []).append(Parked(gang, step, wait))

    def wake(self, key: Hashable) -> None:
        """Lanes that wait for ``key`` execute their instruction again."""
        for one in self.parked.pop(key, ()):
            self.put(one.gang, one.step, one.wait.lanes)

    def time_out(self) -> bool:
        """Let every wait that may fail do so once; False if there is none."""
        found = False
        for key in list(self.parked):
            group = self.parked[key]
            if any(one.wait.may_fail for one in group):
                del self.parked[key]
                for one in group:
                    self._timed_out.add((id(one.gang), one.step))
                    self.put(one.gang, one.step, one.wait.lanes)
                    found = True
        return found

    def timed_out(self, gang: Gang, step: int) -> bool:
        """Whether lanes at a step are there because their wait timed out; asked once."""
        if not self._timed_out:
            return False
        known = (id(gang), step) in self._timed_out
        self._timed_out.discard((id(gang), step))
        return known
