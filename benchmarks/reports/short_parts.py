"""The tables of merging, largest logits, sparse blocks and dependent launches.

``docs/update.py`` puts them into the documents.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MERGE = Path("benchmarks/results/merge_h200.jsonl")
"""From the root."""
MAX_LOGITS = Path("benchmarks/results/max_logits_h200.jsonl")
SPARSE = Path("benchmarks/results/sparse_blocks_h200.jsonl")
DEPENDENT = Path("benchmarks/results/dependent_launches_h200.jsonl")
CHAIN = Path("benchmarks/results/transformer_chain_h200.jsonl")
SPARSE_HEADER = (
    *("blocks, density", "ms", "TFLOP/s", "of dense", "of all blocks", "flex_attention / ours"),
    *("bits, us", "lists on the GPU, us", "on the host, us"),
)


def merge(root: Path) -> str:
    """Return the share of a copy's speed for each merging, by rows in flight."""
    lines = read_lines(root / MERGE)
    counts = [one for one in "124" if any(one in line["details"]["us"] for line in lines)]
    rows = []
    for line in lines:
        us = line["details"]["us"]
        shares = (f"{us['copy'] / us[count]:.2f}" if count in us else "" for count in counts)
        words = line["problem"].rpartition(", 16384 rows")[0]
        rows.append((words, f"{line['times_us'][0]:.0f}", *shares))
    heads = ("1 row" if count == "1" else f"{count} rows" for count in counts)
    return table(("parts", "us", *heads), rows, right=1 + len(counts))


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


def sparse(root: Path) -> str:
    """Return the figures of each size of blocks and density, and the notes of the lines."""
    lines = read_lines(root / SPARSE)
    rows = []
    for line in lines:
        found, peers = line["details"], line["peers_us"]
        rows.append(
            (
                line["problem"].replace("density ", ""),
                f"{found['ms']:.3f}",
                f"{found['tflops']:.0f}",
                f"{found['of_dense']:.3f}",
                f"{found['of_all']:.3f}",
                _number(found.get("flex_attention"), 2),
                _number(peers["listing"], 1),
                _number(peers.get("making"), 1),
                _number(found.get("making_host_us"), 0),
            )
        )
    return _noted(table(SPARSE_HEADER, rows, right=len(SPARSE_HEADER) - 1), lines)


def dependent(root: Path) -> str:
    """Return the times of both graphs in each run, and what a pair of kernels saves."""
    lines = read_lines(root / DEPENDENT)
    rows = [
        (
            _run(line),
            "short" if line["details"].get("short_rings") else "whole",
            f"{line['peers_us']['apart']:.1f}",
            f"{statistics.median(line['times_us']):.1f}",
            f"{line['details']['saved_us_a_pair']:+.2f}",
            line["details"].get("note", ""),
        )
        for line in lines
    ]
    header = ("run", "rings", "without the key, us", "with it, us", "saved a pair, us", "note")
    return table(header, rows)


def steps(root: Path) -> str:
    """Return a row for each variant of a step: tokens per second, and over those of PyTorch.

    Raises ValueError for a variant with logits that are not right.
    """
    lines = read_lines(root / CHAIN)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    problems = list(dict.fromkeys(line["problem"] for line in lines))
    for line in lines:
        if not line["details"]["holds"]:
            raise ValueError(f"{CHAIN}: {line['problem']}, {line['kernel']}: logits not right")
        found.setdefault(line["kernel"], {})[line["problem"]] = line["details"]
    rows = [
        (
            f"`{kernel}`",
            *(
                f"{by[problem]['tokens_per_s']:,.0f}, {by[problem]['times_pytorch']:.3f}"
                if problem in by
                else ""
                for problem in problems
            ),
        )
        for kernel, by in found.items()
    ]
    return _noted(table(("variant", *problems), rows, right=len(problems)), lines)


def _noted(text: str, lines: Sequence[dict[str, Any]]) -> str:
    """Return a table with the runs and the notes of its lines below."""
    runs = dict.fromkeys(_run(line) for line in lines)
    notes = dict.fromkeys(line["details"].get("note", "") for line in lines)
    below = [
        f"Run on {'; '.join(runs)}.",
        *(f"{note[0].upper()}{note[1:]}." for note in notes if note),
    ]
    return f"{text}\n\n{' '.join(below)}"


def _run(line: dict[str, Any]) -> str:
    """Return the date of a line, and the commit that it has."""
    return f"{line['date']}, commit {line['commit']}" if line["commit"] else str(line["date"])


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
