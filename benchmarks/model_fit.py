"""Fits constants of a cost model to measured times: what both programs of the models share.

The search is Levenberg's and Marquardt's, by the logarithms of the constants and of the times.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from measured import rows

from fa4gen.config.find import find_configs
from fa4gen.config.load import config_from_data, load_config
from fa4gen.designs.build import build_plan
from fa4gen.tune.model.agreement import Figure, compare
from fa4gen.tune.model.chips import H200, Chip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fa4gen.tune.model.prediction import Prediction

RESULTS = Path(__file__).with_name("results")
ABSOLUTE = 0.4
"""Weight of an error that all kernels of a problem share: it changes no choice."""
OUTLIER = 0.15
"""Larger errors count in proportion, no longer by their square."""
SMALLEST, LARGEST = 1e-6, 1e9
STEP = 1e-4


@dataclass(frozen=True)
class Measured:
    """The kernels that were measured on a problem in one run."""

    kind: str
    word: str
    """The shape: folds are made of shapes, whatever was measured of them."""
    problem: Any
    tiles: tuple[Any, ...]
    us: tuple[float, ...]


@dataclass(frozen=True)
class Model:
    """A cost model, and the range of its constants."""

    costs: str
    """The field of a chip that has them."""
    predict: Callable[[Any, Any, Chip], Prediction]
    tile_of: Callable[[Any], Any]
    """From a plan to the model's view of it."""
    problem: Callable[..., Any]
    """From extents to the model's problem."""
    limits: Mapping[str, tuple[float, float]]

    def tuned(
        self, path: Path, trusted: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    ) -> list[Measured]:
        """Return what tuning measured in its rounds, of kernels that are ``trusted``."""
        found = []
        for record in rows(path):
            timed = trusted([one for one in record["kernels"] if one["rounds_us"]])
            tiles = tuple(self.tile(one.get("config"), one["name"]) for one in timed)
            times = tuple(median(one["rounds_us"]) for one in timed)
            problem = self.problem(**record["extents"])
            found.append(Measured(path.stem, record["problem"], problem, tiles, times))
        return found

    def tile(self, config: Mapping[str, Any] | None, name: str = "") -> Any:
        """Return the tile of a kernel by its keys, of a shipped one without any by its name."""
        if config is None:
            return self.tile_of(build_plan(load_config(find_configs([name])[0]).config))
        keys = {key: value for key, value in config.items() if key != "name"}
        return self.tile_of(_plan(json.dumps(keys)))

    def figures(self, records: Iterable[Measured], chip: Chip = H200) -> list[list[Figure]]:
        """Return what is predicted and what was measured, by problem."""
        return [
            [
                Figure(self.predict(tile, one.problem, chip).us, us)
                for tile, us in zip(one.tiles, one.us, strict=True)
            ]
            for one in records
        ]

    def errors(self, costs: Any, records: Sequence[Measured]) -> np.ndarray:
        """Return the residuals of the least-squares fit: within problems, and of all kernels."""
        parts = []
        for one in self.figures(records, self.chip(costs)):
            if one:
                each = np.array([math.log(f.predicted_us / f.measured_us) for f in one])
                parts += [each - each.mean(), math.sqrt(ABSOLUTE) * each]
        every = np.concatenate(parts)
        shrunk = OUTLIER * np.sqrt(2 * (np.sqrt(1 + (every / OUTLIER) ** 2) - 1))
        return np.asarray(np.sign(every) * shrunk)

    def fit(self, costs: Any, records: Sequence[Measured], rounds: int = 30) -> Any:
        """Return constants with smaller errors than ``costs``."""
        names = list(asdict(costs))
        ends = np.log([self.limits.get(name, (SMALLEST, LARGEST)) for name in names])

        def costs_at(logarithms: np.ndarray) -> Any:
            return type(costs)(**dict(zip(names, map(float, np.exp(logarithms)), strict=True)))

        def at(logarithms: np.ndarray) -> np.ndarray:
            return self.errors(costs_at(logarithms), records)

        place = np.clip(np.log([max(SMALLEST, value) for value in asdict(costs).values()]), *ends.T)
        left = at(place)
        damping = 1e-2
        for _ in range(rounds):
            steps = STEP * np.eye(len(names))
            slopes = np.stack([(at(place + step) - left) / STEP for step in steps])
            square, direction = slopes @ slopes.T, slopes @ left
            for _ in range(8):
                weights = np.diag(damping * (np.diag(square) + 1e-6))
                moved = np.clip(np.linalg.solve(square + weights, -direction), -0.5, 0.5)
                there = np.clip(place + moved, *ends.T)
                then = at(there)
                if then @ then < left @ left:
                    break
                damping *= 4
            else:
                break
            gained = 1 - then @ then / (left @ left)
            place, left, damping = there, then, max(damping / 4, 1e-6)
            if gained < 1e-6:
                break
        return costs_at(place)

    def chip(self, costs: Any) -> Chip:
        """Return an H200 with these constants."""
        return replace(H200, **{self.costs: costs})

    def held_out(self, records: Sequence[Measured], count: int) -> list[tuple[Measured, Chip]]:
        """Return each record with a chip that was fitted to the other shapes."""
        words = sorted({one.word for one in records})
        random.Random(7).shuffle(words)
        fold = {word: number % count for number, word in enumerate(words)}
        found = []
        for number in range(count):
            fitted = [one for one in records if fold[one.word] != number]
            chip = self.chip(self.fit(getattr(H200, self.costs), fitted))
            found += [(one, chip) for one in records if fold[one.word] == number]
        return found


@lru_cache
def _plan(keys: str) -> Any:
    return build_plan(config_from_data(json.loads(keys), "kernel"))


def report(
    model: Model,
    records: Sequence[Measured],
    later: Sequence[Measured] = (),
    suited: Callable[[Sequence[Measured]], list[Measured]] = list,
) -> None:
    """Fit if the command line asks for it, and print how predictions agree with measurements.

    ``later`` are judged, never fitted; ``suited`` leaves the kernels that the model may choose.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", action="store_true", help="search for better constants")
    parser.add_argument("--folds", type=int, default=0, help="judge each by a fit to the others")
    arguments = parser.parse_args()
    costs = getattr(H200, model.costs)
    if arguments.fit:
        costs = model.fit(costs, records)
        print(json.dumps({name: float(f"{value:.4g}") for name, value in asdict(costs).items()}))
    chip = model.chip(costs)
    by_kind: dict[str, list[Measured]] = defaultdict(list)
    for one in records:
        by_kind[one.kind].append(one)
    by_kind["all of these"] = list(records)
    for one in later:
        by_kind[f"{one.kind}, not in the fit"].append(one)
    for kind, its in by_kind.items():
        print(f"{kind}, all kernels: {compare(model.figures(its, chip))}")
        print(f"{kind}, those it may choose: {compare(model.figures(suited(its), chip))}")
    if arguments.folds:
        held = model.held_out(records, arguments.folds)
        for words, of in (("all kernels", list), ("those it may choose", suited)):
            figures = [model.figures(of([one]), its)[0] for one, its in held]
            print(f"shapes left out of the fit, {words}: {compare(figures)}")
    ratios: dict[str, list[float]] = defaultdict(list)
    for one, its_figures in zip(records, model.figures(records, chip), strict=True):
        ratios[one.word] += [figure.predicted_us / figure.measured_us for figure in its_figures]
    for word, its_ratios in ratios.items():
        print(
            f"    {word:>24}: predicted / measured {min(its_ratios):.2f} to {max(its_ratios):.2f} "
            f"of {len(its_ratios)}"
        )
