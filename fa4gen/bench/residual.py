"""The cost of the residual: the same product without C is timed in the same rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.epilogues import residual_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.bench.results import ConfigResult

PROBLEM = (
    *("arch", "dtype", "b_dtype", "scales", "rows", "out_dtype", "a_major", "b_major"),
    "activation",
)
"""Facts that must agree: all that determines the result, except for the residual."""


@dataclass(frozen=True)
class ResidualCost:
    """Additional time of a config with a residual over one without."""

    config: str
    without: str
    """The config that it is compared with."""
    sizes: Mapping[str, float]
    """By the size's word: 0.04 for 4 % more time."""


def residual_costs(results: Iterable[ConfigResult]) -> tuple[ResidualCost, ...]:
    """Return the measured costs by config."""
    costs = []
    for result in results:
        by_name: dict[str, dict[str, float]] = {}
        for size in result.sizes:
            if size.without is not None:
                name, series = size.without
                more = size.ours.median_ms / series.median_ms - 1
                by_name.setdefault(name, {})[size.size.word] = more
        costs += [ResidualCost(result.name, name, sizes) for name, sizes in by_name.items()]
    return tuple(costs)


def most_alike(facts: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the index of the config among ``others`` to compare a config with, by their facts.

    It has the function of the config of ``facts`` without the residual, and shares most of the
    other facts, tiles above all; the first of equals. None for a config without a residual, and
    where none compares.
    """
    if not residual_of(facts["residual"]).exists:
        return None
    shared = {
        place: sum(other.get(key) == value for key, value in facts.items())
        for place, other in enumerate(others)
        if not residual_of(other["residual"]).exists
        and all(other.get(key) == facts.get(key) for key in PROBLEM)
    }
    return max(shared, key=lambda place: shared[place], default=None)
