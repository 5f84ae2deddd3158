"""Fits the cost model of matrix products to measured times, and prints what is left over.

    python benchmarks/fit_gemm_model.py                 # residuals of the constants in chips.py
    python benchmarks/fit_gemm_model.py --seconds 120   # search for better ones, and print them
    python benchmarks/fit_gemm_model.py --seconds 120 --without 48x5120x5120,200x5000x3000

The search changes up to three constants at a time, at random, and keeps what lowers the error.
``--without`` leaves shapes out of it and judges them apart. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.tune.model.agreement import Figure, compare
from fa4gen.tune.model.chips import H200, Chip, GemmCosts
from fa4gen.tune.model.fitting import search, squared_error
from fa4gen.tune.model.gemm import GemmProblem, GemmTile, predict_gemm

if TYPE_CHECKING:
    from collections.abc import Sequence

FIGURES = Path(__file__).with_name("gemm_model_h200.json")
KINDS = ("fa4gen", "written by hand")
BY_HAND = 0.6
"""Weight of a figure of a kernel that fa4gen did not make."""
LIMITS = {
    "ghz": (1.7, 1.98),
    "overlap": (2.0, 14.0),
    "droop": (0.0, 0.6),
    "droop_us": (0.0, 400.0),
}
Record = dict[str, Any]


def read_records() -> list[Record]:
    """Return the problems of FIGURES, each with its kernels as GemmTiles."""
    records: list[Record] = json.loads(FIGURES.read_text())["figures"]
    for record in records:
        extents = {name: record[name] for name in ("m", "n", "k", "row_elements")}
        record["problem"] = GemmProblem(**extents)
        for kernel in record["kernels"]:
            kernel["tile"] = GemmTile(**kernel["tile"])
    return records


def word(record: Record) -> str:
    """Return the shape as --without takes it."""
    return "{m}x{n}x{k}".format(**record)


def figures_of(records: Sequence[Record], chip: Chip, kind: str) -> list[list[Figure]]:
    """Return what is predicted and what was measured, by problem, for kernels of ``kind``."""
    return [
        [
            Figure(
                predict_gemm(kernel["tile"], record["problem"], chip).us,
                kernel["us"],
                f"{kernel['tile'].BM}x{kernel['tile'].BN}",
            )
            for kernel in record["kernels"]
            if kernel["kernel"] == kind
        ]
        for record in records
    ]


def error(costs: GemmCosts, records: Sequence[Record]) -> float:
    """Return the error that is to be small."""
    chip = replace(H200, gemm=costs)
    return squared_error(
        [
            [
                (
                    predict_gemm(kernel["tile"], record["problem"], chip).us,
                    kernel["us"],
                    1.0 if kernel["kernel"] == "fa4gen" else BY_HAND,
                )
                for kernel in record["kernels"]
            ]
            for record in records
        ]
    )


def print_residuals(records: Sequence[Record], costs: GemmCosts, title: str) -> None:
    """Print how predictions agree with measurements, and the residuals by shape."""
    chip = replace(H200, gemm=costs)
    print(title)
    for kind in KINDS:
        groups = figures_of(records, chip, kind)
        if any(len(group) > 1 for group in groups):
            print(f"  {kind}: {compare(groups)}")
    by_shape: dict[str, list[float]] = defaultdict(list)
    for kind in KINDS:
        for record, group in zip(records, figures_of(records, chip, kind), strict=True):
            by_shape[word(record)] += [one.predicted_us / one.measured_us for one in group]
    for shape, ratios in by_shape.items():
        print(
            f"    {shape:>18}: predicted / measured {min(ratios):.2f} to {max(ratios):.2f}, "
            f"mean {sum(ratios) / len(ratios):.2f}, of {len(ratios)}"
        )


def main() -> None:
    """Fit if asked to, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="shapes MxNxK, separated by commas")
    arguments = parser.parse_args()
    records = read_records()
    left_out = set(filter(None, arguments.without.split(",")))
    fitted = [record for record in records if word(record) not in left_out]
    costs = search(
        H200.gemm,
        lambda costs: error(costs, fitted),
        arguments.seconds,
        arguments.seed,
        LIMITS,
    )
    if arguments.seconds:
        print(json.dumps({name: round(value, 4) for name, value in asdict(costs).items()}))
    print_residuals(fitted, costs, "fitted:" if left_out else "all:")
    if left_out:
        held = [record for record in records if word(record) in left_out]
        print_residuals(held, costs, "left out of the fit:")


if __name__ == "__main__":
    main()
