"""Fits the cost model of matrix products to measured times, and prints what is left over.

    python benchmarks/fit_gemm_model.py                 # residuals of the constants in chips.py
    python benchmarks/fit_gemm_model.py --fit           # search for better ones, and print them
    python benchmarks/fit_gemm_model.py --folds 5       # judge each fifth by a fit to the others

The products of layers that `fa4gen tune` measured are judged, never fitted. No GPU is needed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from measured import document
from model_fit import RESULTS, Measured, Model, report

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.tune.model.gemm import GemmTile, predict_gemm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FIGURES = RESULTS / "products_fit_h200.jsonl"
SHAPES = RESULTS / "product_shapes_h200.jsonl"
RANDOM_EARLIER = RESULTS / "random_products_fit_h200.jsonl"
TUNED = RESULTS / "tuned_products_h200.jsonl"
TUNED_RESIDUAL = RESULTS / "tuned_products_residual_h200.jsonl"
TUNED_FP8 = RESULTS / "tuned_products_fp8_h200.jsonl"
RANDOM = RESULTS / "tuned_random_products_h200.jsonl"
UNSEEN = RESULTS / "tuned_random_products_not_fitted_h200.jsonl"
LATER = (TUNED, TUNED_RESIDUAL, UNSEEN)
"""Of other runs, never fitted."""
ONCE = 1.5
"""A kernel that was timed once and took so many times as long as its tile with other hints is left
out: something else took that time."""
MODEL = Model(
    "gemm",
    predict_gemm,
    GemmTile.of,
    GemmWorkload,
    {
        "ghz": (1.7, 1.98),
        "overlap": (2.0, 14.0),
        "droop": (1e-6, 0.6),
        "droop_us": (20.0, 600.0),
        "held": (1e-6, 1.6),
        "store_slots": (1e-6, 4.0),
        "read_c_slots": (1e-6, 6.0),
        "reads_overlap": (4.0, 40.0),
    },
)


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
            keys = data["kernels_have"] | {"residual": row["residual"]} | changes
            tiles_of[key] = MODEL.tile(keys)
        rows[row["residual"], row["m"], row["n"], row["k"]].append((tiles_of[key], row["us"]))
    for (residual, m, n, k), kernels in rows.items():
        kind = "no residual" if residual == "none" else "residual"
        padded = GemmWorkload(m, n, k, row_elements=-(-k // 8) * 8)
        tiles, times = zip(*kernels, strict=True)
        found.append(Measured(kind, f"{m}x{n}x{k}", padded, tiles, times))
    return found


def _read_figures(path: Path, kind: str) -> list[Measured]:
    found = []
    for record in document(path)["figures"]:
        problem = GemmWorkload(**{name: record[name] for name in ("m", "n", "k", "row_elements")})
        tiles = tuple(GemmTile(**kernel["tile"]) for kernel in record["kernels"])
        times = tuple(kernel["us"] for kernel in record["kernels"])
        word = f"{problem.m}x{problem.n}x{problem.k}"
        found.append(Measured(kind, word, problem, tiles, times))
    return found


def read_tuned(path: Path) -> list[Measured]:
    """Return what tuning measured in its rounds."""
    return MODEL.tuned(path, _trusted)


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


if __name__ == "__main__":
    later = [one for path in LATER for one in read_tuned(path)]
    report(MODEL, read_records(), later, suited)
