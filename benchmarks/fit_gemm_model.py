"""Fits the cost model of matrix products to measured times, and prints what is left over.

    python benchmarks/fit_gemm_model.py                 # residuals of the constants in chips.py
    python benchmarks/fit_gemm_model.py --fit           # search for better ones, and print them
    python benchmarks/fit_gemm_model.py --folds 5       # judge each fifth by a fit to the others

The search is Levenberg's and Marquardt's, by the logarithms of the constants and of the times. The
products of layers that `fa4gen tune` measured are judged, never fitted. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.tune.model.agreement import Figure, compare
from fa4gen.tune.model.chips import H200, Chip, GemmCosts
from fa4gen.tune.model.gemm import GemmProblem, GemmTile, predict_gemm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))

from measured import document
from measured import rows as rows_of

HERE = Path(__file__).parent
RESULTS = HERE / "results"
FIGURES = RESULTS / "products_fit_h200.jsonl"
SHAPES = RESULTS / "product_shapes_h200.jsonl"
RANDOM_EARLIER = RESULTS / "random_products_fit_h200.jsonl"
TUNED = RESULTS / "tuned_products_h200.jsonl"
TUNED_RESIDUAL = RESULTS / "tuned_products_residual_h200.jsonl"
TUNED_FP8 = RESULTS / "tuned_products_fp8_h200.jsonl"
RANDOM = RESULTS / "tuned_random_products_h200.jsonl"
KINDS = ("earlier runs", "no residual", "residual", "drawn", "fp8")
UNSEEN = RESULTS / "tuned_random_products_not_fitted_h200.jsonl"
LATER = (TUNED, TUNED_RESIDUAL, UNSEEN)
"""Of other runs, never fitted."""
ONCE = 1.5
"""A kernel that was timed once and took so many times as long as its tile with other hints is left
out: something else took that time."""
ABSOLUTE = 0.4
"""Weight of an error that all kernels of a problem share: it changes no choice."""
OUTLIER = 0.15
"""Larger errors count in proportion, no longer by their square."""
LIMITS = {
    "ghz": (1.7, 1.98),
    "overlap": (2.0, 14.0),
    "droop": (1e-6, 0.6),
    "droop_us": (20.0, 600.0),
    "held": (1e-6, 1.6),
    "store_slots": (1e-6, 4.0),
    "read_c_slots": (1e-6, 6.0),
    "reads_overlap": (4.0, 40.0),
}
SMALLEST, LARGEST = 1e-6, 1e9
STEP = 1e-4


@dataclass(frozen=True)
class Measured:
    """The kernels that were measured on a problem in one run."""

    kind: str
    problem: GemmProblem
    tiles: tuple[GemmTile, ...]
    us: tuple[float, ...]

    @property
    def word(self) -> str:
        """The shape: folds are made of shapes, whatever was measured of them."""
        return f"{self.problem.m}x{self.problem.n}x{self.problem.k}"


def read_records() -> list[Measured]:
    """Return what constants are fitted to."""
    found = _read_figures(FIGURES, "earlier runs") + _read_figures(RANDOM_EARLIER, "drawn")
    found += [replace(one, kind="drawn") for one in read_tuned(RANDOM)]
    found += [replace(one, kind="fp8") for one in read_tuned(TUNED_FP8)]
    data = document(SHAPES)
    tiles_of: dict[tuple[str, str], GemmTile] = {}
    rows: dict[tuple[Any, ...], list[tuple[GemmTile, float]]] = defaultdict(list)
    for row in data["rows"]:
        if "kernel" not in row:
            continue
        key = row["residual"], row["kernel"]
        if key not in tiles_of:
            changes = data["kernels"][row["kernel"]]
            tiles_of[key] = _tile(data["kernels_have"] | {"residual": row["residual"]} | changes)
        rows[row["residual"], row["m"], row["n"], row["k"]].append((tiles_of[key], row["us"]))
    for (residual, m, n, k), kernels in rows.items():
        kind = "no residual" if residual == "none" else "residual"
        padded = GemmProblem(m, n, k, row_elements=-(-k // 8) * 8)
        tiles, times = zip(*kernels, strict=True)
        found.append(Measured(kind, padded, tiles, times))
    return found


def _read_figures(path: Path, kind: str) -> list[Measured]:
    found = []
    for record in document(path)["figures"]:
        extents = {name: record[name] for name in ("m", "n", "k", "row_elements")}
        tiles = tuple(GemmTile(**kernel["tile"]) for kernel in record["kernels"])
        times = tuple(kernel["us"] for kernel in record["kernels"])
        found.append(Measured(kind, GemmProblem(**extents), tiles, times))
    return found


def read_tuned(path: Path = TUNED) -> list[Measured]:
    """Return what tuning measured in its rounds."""
    found = []
    for record in rows_of(path):
        extents = {name: record["extents"][name] for name in ("m", "n", "k", "batch")}
        timed = _trusted([one for one in record["kernels"] if one["rounds_us"]])
        tiles = tuple(_tile(one["config"]) for one in timed)
        times = tuple(median(one["rounds_us"]) for one in timed)
        found.append(Measured(path.stem, GemmProblem(**extents), tiles, times))
    return found


def _trusted(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the kernels without those that only ``ONCE`` can explain."""
    alike: dict[tuple[Any, ...], float] = {}
    for one in kernels:
        tile = _alike(one)
        alike[tile] = min(median(one["rounds_us"]), alike.get(tile, math.inf))
    return [
        one
        for one in kernels
        if len(one["rounds_us"]) > 1 or one["rounds_us"][0] < ONCE * alike[_alike(one)]
    ]


def _alike(kernel: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(kernel["config"].get(key) for key in ("BM", "BN", "swap_operands", "ping_pong"))


def suited(records: Sequence[Measured]) -> list[Measured]:
    """Return the records with those kernels alone that the model may choose."""
    found = []
    for one in records:
        kept = [i for i, tile in enumerate(one.tiles) if tile.suits(one.problem)]
        tiles, us = tuple(one.tiles[i] for i in kept), tuple(one.us[i] for i in kept)
        found.append(replace(one, tiles=tiles, us=us))
    return found


def figures_of(records: Sequence[Measured], chip: Chip) -> list[list[Figure]]:
    """Return what is predicted and what was measured, by problem."""
    return [
        [
            Figure(predict_gemm(tile, one.problem, chip).us, us, f"{tile.BM}x{tile.BN}")
            for tile, us in zip(one.tiles, one.us, strict=True)
        ]
        for one in records
    ]


def errors(costs: GemmCosts, records: Sequence[Measured]) -> np.ndarray:
    """Return the errors whose squares are to be small: within problems, and of all kernels."""
    chip = replace(H200, gemm=costs)
    parts = []
    for one in figures_of(records, chip):
        if one:
            each = np.array([math.log(f.predicted_us / f.measured_us) for f in one])
            parts += [each - each.mean(), math.sqrt(ABSOLUTE) * each]
    every = np.concatenate(parts)
    shrunk = OUTLIER * np.sqrt(2 * (np.sqrt(1 + (every / OUTLIER) ** 2) - 1))
    return np.asarray(np.sign(every) * shrunk)


def fit(costs: GemmCosts, records: Sequence[Measured], rounds: int = 30) -> GemmCosts:
    """Return constants with smaller errors than ``costs``."""
    names = list(asdict(costs))
    ends = np.log([LIMITS.get(name, (SMALLEST, LARGEST)) for name in names])

    def at(logarithms: np.ndarray) -> np.ndarray:
        return errors(_costs(names, logarithms), records)

    place = np.clip(np.log([max(SMALLEST, value) for value in asdict(costs).values()]), *ends.T)
    left = at(place)
    damping = 1e-2
    for _ in range(rounds):
        slopes = np.stack([(at(place + step) - left) / STEP for step in STEP * np.eye(len(names))])
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
    return _costs(names, place)


def print_residuals(records: Sequence[Measured], chip: Chip, title: str) -> None:
    """Print how predictions agree with measurements."""
    for words, chosen in (("all kernels", records), ("those it may choose", suited(records))):
        print(f"{title}, {words}: {compare(figures_of(chosen, chip))}")


def main() -> None:
    """Fit if asked to, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--folds", type=int, default=0)
    arguments = parser.parse_args()
    records = read_records()
    costs = fit(H200.gemm, records) if arguments.fit else H200.gemm
    if arguments.fit:
        print(json.dumps({name: float(f"{value:.4g}") for name, value in asdict(costs).items()}))
    chip = replace(H200, gemm=costs)
    for kind in KINDS:
        print_residuals([one for one in records if one.kind == kind], chip, kind)
    print_residuals(records, chip, "all of these")
    for path in LATER:
        print_residuals(read_tuned(path), chip, f"{path.stem}, not in the fit")
    if arguments.folds:
        print_folds(records, arguments.folds)
    ratios: dict[str, list[float]] = defaultdict(list)
    for one, figures in zip(records, figures_of(records, chip), strict=True):
        ratios[one.word] += [figure.predicted_us / figure.measured_us for figure in figures]
    for shape, its in ratios.items():
        print(
            f"    {shape:>18}: predicted / measured {min(its):.2f} to {max(its):.2f}, "
            f"mean {sum(its) / len(its):.2f}, of {len(its)}"
        )


def print_folds(records: Sequence[Measured], count: int) -> None:
    """Print how shapes agree with a fit to the others."""
    words = sorted({one.word for one in records})
    random.Random(7).shuffle(words)
    fold = {word: number % count for number, word in enumerate(words)}
    every: list[list[Figure]] = []
    chosen: list[list[Figure]] = []
    for number in range(count):
        fitted = [one for one in records if fold[one.word] != number]
        held = [one for one in records if fold[one.word] == number]
        chip = replace(H200, gemm=fit(H200.gemm, fitted))
        every += figures_of(held, chip)
        chosen += figures_of(suited(held), chip)
    print(f"shapes left out of the fit, all kernels: {compare(every)}")
    print(f"shapes left out of the fit, those it may choose: {compare(chosen)}")


def _tile(config: Mapping[str, Any]) -> GemmTile:
    keys = {key: value for key, value in config.items() if key != "name"}
    plan: Any = build_plan(config_from_data(keys, "kernel"))
    return GemmTile.of(plan)


def _costs(names: Sequence[str], logarithms: np.ndarray) -> GemmCosts:
    return GemmCosts(**dict(zip(names, map(float, np.exp(logarithms)), strict=True)))


if __name__ == "__main__":
    main()
