"""The tables of docs/measurements/scaled-products.md; ``docs/update.py`` puts them there."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable

RESULTS = Path("benchmarks/results/scaled_products_h200.jsonl")
"""Layers of a large model; from the root."""
DRAWN = Path("benchmarks/results/scaled_products_drawn_h200.jsonl")
"""Random shapes."""
WITHOUT = "without scales"


def products(root: Path, results: Path = RESULTS) -> str:
    """Return a row for each shape, and the geometric means of what ran for all shapes."""
    lines = read_lines(root / results)
    ratios = [
        (_ratio(line, "cublas"), _ratio(line, "cublas one scale"), _without(line)) for line in lines
    ]
    rows: list[tuple[str, ...]] = [
        (
            line["problem"].replace("x", " x "),
            line["kernel"],
            f"{line['times_us'][0]:.1f}",
            *map(_word, found),
        )
        for line, found in zip(lines, ratios, strict=True)
    ]
    means = map(_mean, zip(*ratios, strict=True))
    rows.append((f"all {len(lines)}", "geometric mean", "", *map(_word, means)))
    header = ("m x n x k", "tile", "us", "cuBLAS", "cuBLAS, one scale", "fa4gen, no scales")
    return table(header, rows, right=4)


def _ratio(line: dict[str, Any], peer: str) -> float | None:
    """Return the time of a peer over ours; None where it did not run."""
    us = line["peers_us"].get(peer)
    return None if us is None else float(us / line["times_us"][0])


def _without(line: dict[str, Any]) -> float:
    """Return the time of fa4gen's fastest tile for the product without scales, over ours."""
    fastest = min(us for name, us in line["peers_us"].items() if name.startswith(WITHOUT))
    return float(fastest / line["times_us"][0])


def _word(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean; None where a ratio is missing."""
    known = list(ratios)
    logs = [math.log(ratio) for ratio in known if ratio is not None]
    return math.exp(statistics.fmean(logs)) if len(logs) == len(known) else None
