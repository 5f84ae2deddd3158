"""In place of a GPU: times that are looked up, with noise that repeats."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass
class FakeRounds:
    ours: tuple[str, ...]
    peers: tuple[str, ...]
    left_out: dict[str, str]
    times: Callable[[str], float]
    log: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def time(self, names: Sequence[str], turn: int) -> dict[str, float]:
        self.log.append((turn, tuple(names)))
        noise = {name: random.Random(f"{name} {turn}").uniform(0.998, 1.002) for name in names}
        return {name: self.times(name) * noise[name] for name in names}


@dataclass
class FakeTimer:
    """``us`` gives the time of a kernel or peer; those it lacks are left out as wrong."""

    us: Mapping[str, float]
    peers: tuple[str, ...] = ("cublas",)
    chip: str = "NVIDIA H200"
    prepared: list[tuple[tuple[str, ...], Any]] = field(default_factory=list)
    rounds: list[FakeRounds] = field(default_factory=list)

    def prepare(self, kernels: Sequence[tuple[Any, Any]], problem: Any) -> FakeRounds:
        names = tuple(plan.name for plan, _ in kernels)
        self.prepared.append((names, problem))
        left_out = {name: "its output is wrong" for name in names if name not in self.us}
        ours = tuple(name for name in names if name in self.us)
        self.rounds.append(FakeRounds(ours, self.peers, left_out, lambda name: self.us[name]))
        return self.rounds[-1]


def inline(function: Any, tasks: Any) -> Any:
    """Run tasks here, one after the other."""
    for task in tasks:
        yield task, function(task)
