"""The tables of docs/measurements/grouped-products.md; ``docs/update.py`` puts them there."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measured import read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = Path("benchmarks/results/grouped_products_h200.jsonl")
"""From the root."""
GRADIENTS = Path("benchmarks/results/grouped_gradients_h200.jsonl")
GATHERED = Path("benchmarks/results/gathered_products_h200.jsonl")
GATHERED_AGAIN = Path("benchmarks/results/gathered_products_again_h200.jsonl")
"""A second run, with fewer tiles."""
BY_INDEX = ", gathered"
"""The end of the name of a tile that reads rows by an index."""
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


def gradients(root: Path) -> str:
    """Return a row for each problem: the fastest tile that writes bf16, and ratios to its time.

    Outputs of float32, written or added to C, are of the fastest tile that makes them.
    """
    rows: list[tuple[str, ...]] = []
    ratios: list[list[float]] = []
    for line in read_lines(root / GRADIENTS):
        own, tiles = line["times_us"][0], line["details"]["tiles_us"]
        others = [
            line["peers_us"]["torch_bf16"],
            min(us for name, us in tiles.items() if name.endswith(" float32")),
            min(us for name, us in tiles.items() if name.endswith(" added")),
        ]
        ratios.append([us / own for us in others])
        tflops = f"{line['details']['tflops']:.0f}"
        rows.append(
            (line["problem"], line["kernel"], f"{own:.1f}", tflops, *map(_word, ratios[-1]))
        )
    means = [_mean(column) for column in zip(*ratios, strict=True)]
    rows.append((f"all {len(rows)}", "geometric mean", "", "", *map(_word, means)))
    header = ("groups x rows, m x n", "tile", "us", "TFLOP/s", "torch._grouped_mm",
              "float32 output", "added to C")  # fmt: skip
    return table(header, rows, right=len(header) - 2)


def gathered(root: Path) -> str:
    """Return a row for each tile: its time with gathered rows over that with contiguous ones.

    A column is a problem. The last rows have the fastest tiles of each kind and PyTorch's time, and
    the ratio of the fastest tiles in a second run.
    """
    lines = read_lines(root / GATHERED)
    times = [line["details"]["tiles_us"] for line in lines]
    names = {name: None for us in times for name in us if name + BY_INDEX in us}
    rows = [(name, *(_word(_by_index(us, name)) for us in times)) for name in names]
    fastest = [_fastest(found) for found in times]
    again = {
        line["problem"]: _fastest(line["details"]["tiles_us"])
        for line in read_lines(root / GATHERED_AGAIN)
    }
    seconds = (again.get(line["problem"]) for line in lines)
    rows += [
        ("fastest, contiguous rows, us", *(f"{us:.1f}" for us, _ in fastest)),
        ("fastest, gathered rows, us", *(f"{us:.1f}" for _, us in fastest)),
        (
            "torch._grouped_mm, contiguous rows, us",
            *(f"{line['peers_us']['torch_bf16']:.1f}" for line in lines),
        ),
        ("fastest to fastest", *(_word(ours / us) for us, ours in fastest)),
        (
            "fastest to fastest, second run",
            *(_word(second and second[1] / second[0]) for second in seconds),
        ),
    ]
    header = ("tile", *(line["problem"] for line in lines))
    return table(header, rows, right=len(lines))


def _fastest(tiles_us: Mapping[str, float]) -> tuple[float, float]:
    """Return the least times with contiguous rows and with gathered ones."""
    contiguous = min(us for name, us in tiles_us.items() if not name.endswith(BY_INDEX))
    return contiguous, min(us for name, us in tiles_us.items() if name.endswith(BY_INDEX))


def _by_index(us: Mapping[str, float], name: str) -> float | None:
    return us[name + BY_INDEX] / us[name] if name + BY_INDEX in us else None


def _places(line: dict[str, Any]) -> tuple[str, str]:
    details = line["details"]
    return f"{details['tflops']:.0f}", f"{details['gbytes_s']:.0f}"


def _word(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _mean(ratios: Sequence[float | None]) -> float | None:
    known = [math.log(ratio) for ratio in ratios if ratio is not None]
    return math.exp(statistics.fmean(known)) if known else None
