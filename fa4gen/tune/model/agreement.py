"""The agreement of predictions with measurements: the cost of choosing by the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DIFFERENT = 1.05
"""Times that differ by less are equal: a measurement repeats to 2 or 3 %."""


@dataclass(frozen=True)
class Figure:
    """One kernel on one problem, both times in microseconds."""

    predicted_us: float
    measured_us: float
    name: str = ""


@dataclass(frozen=True)
class Agreement:
    """The agreement of predicted and measured times over several problems."""

    figures: int
    median_error: float
    """0.04: half of the predictions are within 4 % of the measurement."""
    error_of_90: float
    """The error that 90 % of the predictions stay within."""
    pairs: int
    """The pairs of kernels of one problem with measured times that differ by more than 5 %."""
    pairs_right: int
    """The number of these pairs that the predictions put into the measured order."""
    choices: tuple[float, ...]
    """By problem: the best measured time over that of the kernel predicted to be the fastest."""

    @property
    def order(self) -> float:
        """The share of pairs in the right order; 1 without pairs."""
        return self.pairs_right / self.pairs if self.pairs else 1.0

    @property
    def mean_choice(self) -> float:
        """1 where every choice is the best."""
        return sum(self.choices) / len(self.choices)

    def __str__(self) -> str:
        return (
            f"{self.figures} figures, half within {self.median_error:.1%}, 90 % within "
            f"{self.error_of_90:.1%}; order right in {self.order:.1%} of {self.pairs} pairs; "
            f"first choice of {len(self.choices)} problems: mean {self.mean_choice:.3f}, worst "
            f"{min(self.choices):.3f} of the best"
        )


def compare(problems: Iterable[Sequence[Figure]]) -> Agreement:
    """Compare predicted with measured times; problems of one kernel are left out.

    ValueError where no problem is left.
    """
    errors: list[float] = []
    choices: list[float] = []
    pairs = right = 0
    for figures in problems:
        if len(figures) < 2:
            continue
        errors += [abs(math.log(one.predicted_us / one.measured_us)) for one in figures]
        for one, other in combinations(figures, 2):
            low, high = sorted((one, other), key=lambda figure: figure.measured_us)
            if high.measured_us > DIFFERENT * low.measured_us:
                pairs += 1
                right += low.predicted_us < high.predicted_us
        chosen = min(figures, key=lambda figure: figure.predicted_us)
        choices.append(min(figure.measured_us for figure in figures) / chosen.measured_us)
    if not choices:
        raise ValueError("no problem has two kernels to compare")
    errors.sort()
    return Agreement(
        figures=len(errors),
        median_error=math.expm1(errors[len(errors) // 2]),
        error_of_90=math.expm1(errors[int(0.9 * len(errors))]),
        pairs=pairs,
        pairs_right=right,
        choices=tuple(choices),
    )
