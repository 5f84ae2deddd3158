"""The decision on a winner: from the times of several rounds to the next step."""

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
"""A kernel that is so much slower after ``FEWEST_ROUNDS`` is not timed again."""


@dataclass(frozen=True)
class State:
    """The state after some rounds."""

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
    remaining = hopeful(medians, rounds)
    others = [name for name in remaining if name != winner]
    clear = rounds >= FEWEST_ROUNDS and all(
        medians[name] > medians[winner] * (1 + EQUAL) and _mostly(times[winner], times[name])
        for name in others
    )
    return State(winner, clear, remaining)


def hopeful(medians: Mapping[str, float], rounds: int) -> tuple[str, ...]:
    """Return the kernels worth another round after ``rounds`` rounds, the fastest first.

    A kernel that is ``HOPELESS`` behind after three rounds is not, nor one three times as far
    behind after one, or half as far after six.
    """
    behind = HOPELESS * FEWEST_ROUNDS / rounds
    limit = min(medians.values(), default=0.0) * (1 + behind)
    return tuple(
        name for name in sorted(medians, key=medians.__getitem__) if medians[name] <= limit
    )


def _mostly(winner: Sequence[float], other: Sequence[float]) -> bool:
    """Whether ``winner`` was the faster one in more than three of four rounds."""
    pairs = list(zip(winner, other, strict=False))
    return sum(one < two for one, two in pairs) > 0.75 * len(pairs)
