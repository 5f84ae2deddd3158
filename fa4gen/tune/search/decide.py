"""When a winner is clear: from the times of several rounds to what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

FEWEST_ROUNDS = 3
EQUAL = 0.01
"""Medians that differ by less, relatively, are equal: rounds differ by as much."""
HOPELESS = 0.10
"""A kernel that is so much slower after the first rounds is not timed again."""


@dataclass(frozen=True)
class State:
    """What is known after some rounds."""

    winner: str
    clear: bool
    """Whether another round would hardly change it."""
    remaining: tuple[str, ...]
    """Kernels worth another round, the fastest first."""


def judge(times: Mapping[str, Sequence[float]], existing: Collection[str] = ()) -> State:
    """Judge kernels by their times, one for each round; no kernel has none.

    Of kernels as fast as the fastest within ``EQUAL``, one of ``existing`` wins, the fastest of
    them: a new kernel has to be worth it. The winner is clear where no other kernel is that close
    and none was faster in as many rounds, after three rounds at least.
    """
    medians = {name: median(taken) for name, taken in times.items()}
    order = sorted(medians, key=lambda name: medians[name])
    best = medians[order[0]]
    alike = [name for name in order if medians[name] <= best * (1 + EQUAL)]
    winner = next((name for name in alike if name in existing), order[0])
    rounds = min(len(times[name]) for name in alike)
    if rounds < FEWEST_ROUNDS:
        return State(winner, False, tuple(order))
    remaining = tuple(name for name in order if medians[name] <= best * (1 + HOPELESS))
    others = [name for name in remaining if name != winner]
    clear = all(
        medians[name] > medians[winner] * (1 + EQUAL) and _mostly(times[winner], times[name])
        for name in others
    )
    return State(winner, clear, remaining)


def _mostly(winner: Sequence[float], other: Sequence[float]) -> bool:
    """Whether ``winner`` was the faster one in more than three of four rounds."""
    pairs = list(zip(winner, other, strict=False))
    return sum(one < two for one, two in pairs) > 0.75 * len(pairs)
