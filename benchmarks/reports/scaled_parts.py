"""The table of docs/measurements/scaled-products.md; ``docs/update.py`` puts it there."""

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
"""From the root."""
WITHOUT = "without scales"


def products(root: Path) -> str:
    """Return a row for each shape, and the geometric means."""
    lines = read_lines(root / RESULTS)
    rows: list[tuple[str, ...]] = [
        (
            line["problem"].replace("x", " x "),
            line["kernel"],
            f"{line['times_us'][0]:.1f}",
            f"{_ratio(line, 'cublas'):.3f}",
            f"{_ratio(line, 'cublas one scale'):.3f}",
            f"{_fastest_without(line) / line['times_us'][0]:.3f}",
        )
        for line in lines
    ]
    means = (
        _mean(_ratio(line, "cublas") for line in lines),
        _mean(_ratio(line, "cublas one scale") for line in lines),
        _mean(_fastest_without(line) / line["times_us"][0] for line in lines),
    )
    rows.append((f"all {len(lines)}", "geometric mean", "", *(f"{mean:.3f}" for mean in means)))
    header = ("m x n x k", "tile", "us", "cuBLAS", "cuBLAS, one scale", "fa4gen, no scales")
    return table(header, rows, right=4)


def _ratio(line: dict[str, Any], peer: str) -> float:
    return float(line["peers_us"][peer] / line["times_us"][0])


def _fastest_without(line: dict[str, Any]) -> float:
    """Return the time of fa4gen's fastest tile for the product without scales."""
    return float(min(us for name, us in line["peers_us"].items() if name.startswith(WITHOUT)))


def _mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
