"""The tables of merging and of largest logits; ``docs/update.py`` puts them into the documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from measured import read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

MERGE = Path("benchmarks/results/merge_h200.jsonl")
"""From the root."""
MAX_LOGITS = Path("benchmarks/results/max_logits_h200.jsonl")


def merge(root: Path) -> str:
    """Return the share of a copy's speed for each merging, by rows in flight."""
    rows = []
    for line in read_lines(root / MERGE):
        us = line["details"]["us"]
        shares = (f"{us['copy'] / us[count]:.2f}" if count in us else "" for count in "124")
        words = line["problem"].rpartition(", 16384 rows")[0]
        rows.append((words, f"{line['times_us'][0]:.0f}", *shares))
    return table(("parts", "us", "1 row", "2 rows", "4 rows"), rows, right=4)


def max_logits(root: Path) -> str:
    """Return by how much a kernel takes longer with ``max_logits``, by rows of a sequence."""
    found: dict[str, dict[int, float]] = {}
    for kernel, rows, ratio in _ratios(root):
        found.setdefault(kernel, {})[rows] = ratio
    lengths = sorted({rows for ratios in found.values() for rows in ratios})
    lines = [
        (kernel, *(f"{100 * (ratios[rows] - 1):+.1f} %" for rows in lengths))
        for kernel, ratios in found.items()
    ]
    return table(("kernel", *(f"{rows} rows" for rows in lengths)), lines, right=len(lengths))


def _ratios(root: Path) -> Iterator[tuple[str, int, float]]:
    for line in read_lines(root / MAX_LOGITS):
        kernel = line["problem"].rpartition(", ")[0]
        yield kernel, line["details"]["rows"], line["details"]["ratio"]
