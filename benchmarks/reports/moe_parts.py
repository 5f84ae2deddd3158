"""The table of examples/moe/README.md; ``docs/update.py`` puts it there."""

from __future__ import annotations

from pathlib import Path

from measured import read_lines
from tables import table

RESULTS = Path("benchmarks/results/moe_h200.jsonl")
"""From the root."""
OWN, PEER = "fa4gen", "grouped_mm"
DTYPES = ("bf16", "fp8")


def layers(root: Path) -> str:
    """Return a row for each number of tokens: tokens per second of both layers, and ratios.

    Raises ValueError for a layer with an output that is not right: its speed is none.
    """
    found: dict[str, dict[str, float]] = {}
    for line in read_lines(root / RESULTS):
        if not line["details"]["holds"]:
            raise ValueError(f"{RESULTS}: {line['problem']}, {line['kernel']}: output not right")
        found.setdefault(line["problem"], {})[line["kernel"]] = line["details"]["tokens_per_s"]
    rows = [
        (problem.removesuffix(" tokens"), *(cell for dtype in DTYPES for cell in _cells(by, dtype)))
        for problem, by in found.items()
    ]
    header = ["tokens"]
    for dtype in DTYPES:
        header += [f"{dtype}: fa4gen, tokens/s", f"{dtype}: PyTorch, tokens/s", "ratio"]
    return table(header, rows, right=len(header))


def _cells(by: dict[str, float], dtype: str) -> tuple[str, str, str]:
    own, peer = by[f"{OWN} {dtype}"], by[f"{PEER} {dtype}"]
    return f"{own:,.0f}", f"{peer:,.0f}", f"{own / peer:.2f}"
