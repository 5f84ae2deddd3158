"""Measures candidates at one problem, in shuffled rounds, until the winner is clear."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from fa4gen.tune.search.decide import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from fa4gen.tune.search.timer import Rounds


@dataclass(frozen=True)
class Measured:
    """What the rounds gave."""

    winner: str
    """"" where no kernel could be timed."""
    clear: bool
    times: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By kernel or peer, microseconds in each of its rounds."""


def measure(
    rounds: Rounds,
    *,
    most_rounds: int,
    seconds: float,
    existing: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Measured:
    """Time all kernels and peers in turn, each round in another order.

    Kernels that are far behind after three rounds are not timed again; peers are timed in three.
    It ends when the winner is clear, after ``most_rounds``, or once ``seconds`` have passed, which
    is looked at after each round: there is always one.
    """
    if not rounds.ours:
        return Measured("", False)
    begin = clock()
    times: dict[str, list[float]] = {name: [] for name in (*rounds.ours, *rounds.peers)}
    racing = rounds.ours
    state = None
    for turn in range(most_rounds):
        names = [*racing, *(rounds.peers if turn < 3 else ())]
        Random(turn).shuffle(names)
        for name, us in rounds.time(names, turn).items():
            times[name].append(us)
        state = judge({name: times[name] for name in racing}, existing)
        if state.clear or clock() - begin > seconds:
            break
        racing = state.remaining
    assert state is not None
    return Measured(
        state.winner, state.clear, {name: tuple(taken) for name, taken in times.items() if taken}
    )
