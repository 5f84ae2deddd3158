"""What the residual costs: pairs of configs of one run that compute the same without and with C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.bench.results import ConfigResult

PROBLEM = ("arch", "dtype", "out_dtype", "a_major", "b_major", "activation")
"""Facts that have to agree: everything but the residual that a kernel computes."""


@dataclass(frozen=True)
class ResidualCost:
    """How much longer a config with a residual takes than one without."""

    config: str
    without: str
    """The config that it is compared with."""
    sizes: Mapping[str, float]
    """By the size's word: 0.04 for 4 % more time."""


def residual_costs(results: Iterable[ConfigResult]) -> tuple[ResidualCost, ...]:
    """Compare each config that has a residual with the one without that is most like it."""
    measured = [result for result in results if result.sizes and "residual" in result.facts]
    plain = [result for result in measured if result.facts["residual"] == "none"]
    costs = []
    for result in measured:
        if result.facts["residual"] == "none":
            continue
        other = _most_alike(result, plain)
        if other is None:
            continue
        times = {size.word: size.ours.median_ms for size in other.sizes}
        sizes = {
            size.word: size.ours.median_ms / times[size.word] - 1
            for size in result.sizes
            if size.word in times
        }
        if sizes:
            costs.append(ResidualCost(result.name, other.name, sizes))
    return tuple(costs)


def _most_alike(result: ConfigResult, plain: Sequence[ConfigResult]) -> ConfigResult | None:
    """Return which of ``plain`` computes the same and shares most of the other facts, tiles above.

    The first of equals; None when none computes the same.
    """
    facts = result.facts
    same = [other for other in plain if all(other.facts[key] == facts[key] for key in PROBLEM)]
    return max(
        same,
        key=lambda other: sum(other.facts.get(key) == value for key, value in facts.items()),
        default=None,
    )
