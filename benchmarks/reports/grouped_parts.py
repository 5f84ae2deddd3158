"""The tables of docs/measurements/grouped-products.md; ``docs/update.py`` puts them there."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS = Path("benchmarks/results/grouped_products_h200.jsonl")
"""From the root."""
PEERS = {
    "bf16": {"torch_bf16": "torch._grouped_mm"},
    "fp8": {"torch_row_fp8": "torch, a scale a row", "torch_bf16": "torch, bf16"},
}
"""The peers that are shown, by the type of the operands, and their words."""
DEEPGEMM = "deepgemm_estimated_us"


def grouped(root: Path, dtype: str, groups: str) -> str:
    """Return a row for each problem with operands and groups of one kind, and the means."""
    lines = [
        line
        for line in read_lines(root / RESULTS)
        if (line["details"]["dtype"], line["details"]["groups"]) == (dtype, groups)
    ]
    peers = PEERS[dtype]
    rows: list[tuple[str, ...]] = []
    ratios: list[list[float | None]] = []
    for line in lines:
        own = line["times_us"][0]
        found = [line["peers_us"].get(peer) for peer in peers] + [line["details"].get(DEEPGEMM)]
        ratios.append([None if us is None else us / own for us in found])
        rows.append(
            (line["problem"], line["kernel"], f"{own:.1f}", *_places(line), *map(_word, ratios[-1]))
        )
    means = [_mean(column) for column in zip(*ratios, strict=True)]
    rows.append((f"all {len(lines)}", "geometric mean", "", "", "", *map(_word, means)))
    header = ("groups x rows, n x k", "tile", "us", "TFLOP/s", "GB/s", *peers.values(), "DeepGEMM")
    return table(header, rows, right=len(header) - 2)


def _places(line: dict[str, Any]) -> tuple[str, str]:
    details = line["details"]
    return f"{details['tflops']:.0f}", f"{details['gbytes_s']:.0f}"


def _word(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _mean(ratios: Sequence[float | None]) -> float | None:
    known = [math.log(ratio) for ratio in ratios if ratio is not None]
    return math.exp(statistics.fmean(known)) if known else None
