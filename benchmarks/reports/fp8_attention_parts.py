"""The tables of docs/measurements/fp8-attention.md; ``docs/update.py`` puts them there."""

from __future__ import annotations

from pathlib import Path

from measured import read_lines
from tables import table

RESULTS = Path("benchmarks/results/fp8_attention_h200.jsonl")
"""From the root."""
KERNELS = ("never", "every 16 blocks", "every 8 blocks", "bf16")


def speed(root: Path) -> str:
    """Return TFLOP/s of each problem that was timed."""
    return _figures(root, "tflops", "{:.0f}")


def errors(root: Path) -> str:
    """Return the relative errors of values that have a mean."""
    return _figures(root, "errors", "{:.4f}")


def _figures(root: Path, name: str, form: str) -> str:
    rows = [
        (line["problem"], *(form.format(found[one]) if one in found else "" for one in KERNELS))
        for line in read_lines(root / RESULTS)
        if bool(line["times_us"]) == (name == "tflops") and (found := line["details"][name])
    ]
    return table(("batch x rows", *KERNELS), rows, right=len(KERNELS))
