"""Measures candidates at one problem, in shuffled rounds, until the winner is clear."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import TYPE_CHECKING

from fa4gen.tune.search.decide import EQUAL, FEWEST_ROUNDS, hopeful, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fa4gen.tune.search.timer import Rounds


@dataclass(frozen=True)
class Measured:
    """The times of the rounds."""

    winner: str
    """"" where no kernel could be timed."""
    clear: bool
    times: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By kernel or peer, microseconds in each of its rounds."""
    again: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Times of the rounds after the choice: of the winner, the baseline and the peers."""

    def figure(self, name: str) -> float | None:
        """Return the median time of ``name``, of the rounds after the choice where it had some."""
        taken = self.again.get(name) or self.times.get(name)
        return round(median(taken), 3) if taken else None


def measure(
    rounds: Rounds,
    *,
    most_rounds: int,
    seconds: float,
    existing: Collection[str] = (),
    again: int = 0,
    baseline: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Measured:
    """Time all kernels and peers in turn, each round in another order.

    Kernels and peers that are far behind are not timed again (``hopeful``), peers in three rounds.
    The first kernel, which is the likeliest, is timed a second time before it is given up for its
    first one: something else may have delayed that.
    It ends when the winner is clear, after ``most_rounds``, or once ``seconds`` have passed, which
    is looked at after each round: there is always one.

    The winner had luck, too: of many kernels as fast, the one with the best rounds wins. So it is
    timed ``again`` so often, in turn with ``baseline`` and the peers, for figures to report; where
    ``baseline`` is then as fast, it is the winner after all.
    """
    if not rounds.ours:
        return Measured("", False)
    begin = clock()
    times: dict[str, list[float]] = {name: [] for name in (*rounds.ours, *rounds.peers)}
    racing, peers = rounds.ours, rounds.peers
    state = None
    for turn in range(most_rounds):
        names = [*racing, *(peers if turn < FEWEST_ROUNDS else ())]
        Random(turn).shuffle(names)
        for name, us in rounds.time(names, turn).items():
            times[name].append(us)
        likeliest = rounds.ours[0]
        if turn == 0 and likeliest not in hopeful({name: times[name][0] for name in racing}, 1):
            times[likeliest] = [min(*times[likeliest], *rounds.time([likeliest], turn).values())]
        state = judge({name: times[name] for name in racing}, existing)
        if state.clear or clock() - begin > seconds:
            break
        racing = state.remaining
        if turn < FEWEST_ROUNDS:
            peers = hopeful({name: median(times[name]) for name in peers}, turn + 1)
    assert state is not None
    shown = [state.winner, *({baseline} & set(rounds.ours) - {state.winner}), *peers]
    later: dict[str, list[float]] = {name: [] for name in shown}
    for turn in range(most_rounds, most_rounds + again):
        Random(turn).shuffle(shown)
        for name, us in rounds.time(shown, turn).items():
            later[name].append(us)
    winner = after_all(state.winner, baseline, later)
    clear = state.clear and winner == state.winner
    return Measured(winner, clear, _taken(times), _taken(later))


def after_all(winner: str, baseline: str, again: Mapping[str, Sequence[float]]) -> str:
    """Return ``baseline`` where it is as fast as ``winner`` in the rounds after the choice."""
    if not again.get(winner) or not again.get(baseline):
        return winner
    return baseline if median(again[baseline]) <= median(again[winner]) * (1 + EQUAL) else winner


def _taken(times: Mapping[str, list[float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(taken) for name, taken in times.items() if taken}
