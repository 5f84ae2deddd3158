"""A fit of constants to measurements: a random search that keeps changes that lower the error."""

from __future__ import annotations

import math
import random
import time
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Costs = TypeVar("Costs")
ABSOLUTE = 0.4
"""Weight of an error that all kernels of a problem share: it changes no choice."""


def squared_error(problems: Sequence[Sequence[tuple[float, float, float]]]) -> float:
    """Return the mean squared error of the logarithms of times.

    By problem, for each kernel the predicted and the measured time, and a weight.
    """
    total = weights = 0.0
    for kernels in problems:
        errors = [(math.log(predicted / measured), w) for predicted, measured, w in kernels]
        weight = sum(w for _, w in errors)
        mean = sum(e * w for e, w in errors) / weight
        total += sum(w * ((e - mean) ** 2 + ABSOLUTE * e * e) for e, w in errors)
        weights += weight
    return total / weights


def search(
    costs: Costs,
    error: Callable[[Costs], float],
    seconds: float,
    seed: int,
    limits: Mapping[str, tuple[float, float]],
) -> Costs:
    """Return the best constants found in ``seconds``; ``limits`` has the ends of some of them.

    Up to three constants at a time are changed by random factors.
    """
    rng = random.Random(seed)
    data: Any = costs
    names = [field.name for field in fields(data)]
    best, begin = error(costs), time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        scale = 0.02 + 0.3 * (1 - passed / seconds)
        chosen = rng.sample(names, rng.choice((1, 2, 3)))
        new = {name: getattr(costs, name) * math.exp(rng.gauss(0, scale)) for name in chosen}
        ends = {name: limits.get(name, (0.0, math.inf)) for name in new}
        if any(not ends[name][0] <= value <= ends[name][1] for name, value in new.items()):
            continue
        changed: Any = replace(data, **new)
        its = error(changed)
        if its < best:
            best, costs, data = its, changed, changed
    return costs
