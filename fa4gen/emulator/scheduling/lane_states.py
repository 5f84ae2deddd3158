"""The state of all lanes: ready, waiting for the rest of their warp, or waiting for an event."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.scheduling.starving import STARVING, Starved
from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.translate.outcome import Wait

if TYPE_CHECKING:
    from fa4gen.emulator.timeline.timeline import Timeline

# How often the lanes furthest behind come first, so that they catch up with the others.
_CATCH_UP: Final = 0.875
# How often the priorities of the schedule "priority" change.
_CHANGE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Parked:
    """Lanes that wait at a step."""

    wg: Warpgroup
    step: int
    wait: Wait


class LaneStates:
    """All lanes of the resident CTAs, by the key that they wait for.

    ``ready`` lanes may run; ``joint`` ones are at an instruction that the rest of their warp has
    yet to reach; ``parked`` ones wait under a key. Starved ones may run when no others are ready.
    """

    def __init__(self, random: Random, policy: str, timeline: Timeline | None) -> None:
        self.ready: dict[Warpgroup, dict[int, Lanes]] = {}
        self.joint: dict[Warpgroup, dict[int, Lanes]] = {}
        self.parked: dict[Hashable, list[Parked]] = {}
        self._random = random
        self._policy = policy
        self._timeline = timeline
        self._priority: dict[Warpgroup, float] = {}
        self._starved: Starved | None = None
        self._timed_out: set[tuple[int, int]] = set()

    def add(self, warpgroups: list[Warpgroup]) -> None:
        """Put the warpgroups of a new cluster at the entry."""
        for wg in warpgroups:
            self._priority[wg] = self._random.random()
        if self._policy in STARVING and self._timeline is None:
            self._starve(warpgroups)
        for wg in warpgroups:
            self.put(wg, 0, Lanes(None))

    def remove(self, warpgroups: list[Warpgroup]) -> None:
        """Forget the warpgroups of a cluster that has ended."""
        for wg in warpgroups:
            self._priority.pop(wg, None)

    def put(self, wg: Warpgroup, step: int, lanes: Lanes) -> None:
        """Let lanes go on at a step, together with those that stand there."""
        starved = self._starved
        if starved is None:
            self._ready(wg, step, lanes)
            return
        held, rest = starved.split(wg, lanes)
        if rest is not None:
            if starved.fed:
                self._hold_back(starved)
            self._ready(wg, step, rest)
        if held is not None:
            if starved.fed:
                self._ready(wg, step, held)
            else:
                starved.hold(step, held)

    def _ready(self, wg: Warpgroup, step: int, lanes: Lanes) -> None:
        places = self.ready.setdefault(wg, {})
        known = places.get(step)
        places[step] = lanes if known is None else known.join(lanes)

    def take(self) -> tuple[Warpgroup, int, Lanes]:
        """Choose the next lanes, by the policy and the seed."""
        wg = self._choose()
        places = self.ready[wg]
        if len(places) == 1:
            step, lanes = places.popitem()
        elif self._timeline is not None:
            step = min(places, key=lambda one: (self._behind(wg, places[one]), one))
            lanes = places.pop(step)
        else:
            behind = self._random.random() < _CATCH_UP
            step = min(places) if behind else self._random.choice(list(places))
            lanes = places.pop(step)
        if not places:
            del self.ready[wg]
        return wg, step, lanes

    def _choose(self) -> Warpgroup:
        warpgroups = list(self.ready)
        if len(warpgroups) == 1:
            return warpgroups[0]
        if self._timeline is not None:
            return min(
                warpgroups,
                key=lambda wg: min(self._behind(wg, one) for one in self.ready[wg].values()),
            )
        if self._policy == "priority":
            if self._random.random() < _CHANGE:
                self._priority[self._random.choice(warpgroups)] = self._random.random()
            return max(warpgroups, key=self._priority.__getitem__)
        return warpgroups[int(self._random.random() * len(warpgroups))]

    def _behind(self, wg: Warpgroup, lanes: Lanes) -> float:
        assert self._timeline is not None
        return self._timeline.behind(wg, lanes)

    # ---- starving

    def feed(self) -> bool:
        """Let starved lanes run until others are ready; False if no starved ones could run."""
        if self._starved is None or not self._starved.places:
            return False
        for step, lanes in self._starved.places.items():
            self._ready(self._starved.wg, step, lanes)
        self._starved.places.clear()
        self._starved.fed = True
        return True

    def _hold_back(self, starved: Starved) -> None:
        """Stop feeding: others are about to be ready."""
        starved.fed = False
        for step, lanes in self.ready.pop(starved.wg, {}).items():
            starved.hold(step, lanes)

    def starve_others(self) -> None:
        """Let the starved lanes run as the others do, which may poll for their results."""
        if self._starved is not None:
            self._starve(list(self._priority))

    def _starve(self, warpgroups: list[Warpgroup]) -> None:
        """Choose the lanes to starve from now on, in one of ``warpgroups``."""
        self.feed()
        self._starved = Starved.choose(self._policy, warpgroups, self._random)

    # ---- partners

    def join(self, wg: Warpgroup, step: int, lanes: Lanes) -> Lanes:
        """Add to lanes those that wait for partners at the same step."""
        waiting = self.joint.get(wg)
        if waiting is None or step not in waiting:
            return lanes
        lanes = lanes.join(waiting.pop(step))
        if not waiting:
            del self.joint[wg]
        return lanes

    def hold(self, wg: Warpgroup, step: int, lanes: Lanes) -> None:
        """Let lanes wait for their partners."""
        self.joint.setdefault(wg, {})[step] = lanes

    def reconsider(self, wg: Warpgroup) -> None:
        """Lanes of a warpgroup have left: those that wait for partners look again."""
        for step, lanes in self.joint.pop(wg, {}).items():
            self.put(wg, step, lanes)

    # ---- waiting

    def park(self, wg: Warpgroup, step: int, wait: Wait) -> None:
        """Let lanes wait."""
        self.parked.setdefault(wait.key, []).append(Parked(wg, step, wait))

    def wake(self, key: Hashable) -> None:
        """Lanes that wait for ``key`` execute their instruction again."""
        for one in self.parked.pop(key, ()):
            self.put(one.wg, one.step, one.wait.lanes)

    def time_out(self) -> bool:
        """Let every wait that may fail do so once; False if there is none."""
        found = False
        for key in list(self.parked):
            group = self.parked[key]
            if any(one.wait.may_fail for one in group):
                del self.parked[key]
                for one in group:
                    self._timed_out.add((id(one.wg), one.step))
                    self.put(one.wg, one.step, one.wait.lanes)
                    found = True
        return found

    def timed_out(self, wg: Warpgroup, step: int) -> bool:
        """Whether lanes at a step are there because their wait timed out; asked once."""
        if not self._timed_out:
            return False
        known = (id(wg), step) in self._timed_out
        self._timed_out.discard((id(wg), step))
        return known
