"""Fits the cost model of attention to measured times, and prints what is left over.

    python benchmarks/fit_attention_model.py                 # residuals of the constants
    python benchmarks/fit_attention_model.py --seconds 120   # search for better ones, print them

What `fa4gen tune` and benchmarks/attention_sets.py measured is printed apart; --seconds has it in
the fit, too. No GPU is needed: plans are made of the configs that the figures name.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from fa4gen.config.find import find_configs
from fa4gen.config.load import config_from_data, load_config
from fa4gen.designs.build import build_plan
from fa4gen.tune.model.agreement import Figure, compare
from fa4gen.tune.model.attention import AttentionProblem, AttentionTile, predict_attention
from fa4gen.tune.model.chips import H200, Chip
from fa4gen.tune.model.fitting import search, squared_error

if TYPE_CHECKING:
    from collections.abc import Sequence

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))

from measured import document
from measured import rows as rows_of

FIGURES = Path(__file__).parent / "results/attention_fit_h200.jsonl"
RESULTS = Path(__file__).with_name("results")
TUNED = tuple(
    RESULTS / f"tuned_{name}_h200.jsonl"
    for name in ("attention", "random_attention", "random_attention_second_seed")
)
EXTENTS = ("batch", "heads", "key_heads", "rows", "keys")
LIMITS = {
    "ghz": (1.4, 1.9),
    "overlap": (2.0, 8.0),
    "droop": (0.0, 0.4),
    "droop_us": (20.0, 600.0),
    "launch": (2.0, 6.0),
    "hiding": (0.5, 3.0),
    "softmax": (0.05, 0.12),
    "exposed": (0.2, 1.2),
    "overlapped_tile": (0.3, 1.1),
    "memory": (3.0, 4.2),
}
Record = dict[str, Any]


def read_records() -> list[Record]:
    """Return the problems of FIGURES, each with its kernels as AttentionTiles."""
    records: list[Record] = document(FIGURES)["figures"]
    for record in records:
        record["problem"] = AttentionProblem(**{name: record[name] for name in EXTENTS})
        for kernel in record["kernels"]:
            plan: Any = build_plan(config_from_data(kernel["config"], "kernel"))
            kernel["tile"] = AttentionTile.of(plan)
    return records


def read_tuned(path: Path) -> list[Record]:
    """Return what tuning measured in its rounds."""
    found: list[Record] = []
    for record in rows_of(path):
        timed = [kernel for kernel in record["kernels"] if kernel["rounds_us"]]
        kernels = [
            {"tile": _tile(one["name"], json.dumps(one.get("config"))), "us": median(us)}
            for one, us in ((one, one["rounds_us"]) for one in timed)
        ]
        problem = AttentionProblem(**{name: record["extents"][name] for name in EXTENTS})
        found.append({"problem": problem, "kernels": kernels})
    return found


@lru_cache
def _tile(name: str, config: str) -> AttentionTile:
    """Return the tile of a new kernel by its keys, of a shipped one by its name."""
    keys = json.loads(config)
    if keys is None:
        loaded = load_config(find_configs([name])[0]).config
    else:
        loaded = config_from_data({k: v for k, v in keys.items() if k != "name"}, "kernel")
    plan: Any = build_plan(loaded)
    return AttentionTile.of(plan)


def figures_of(records: Sequence[Record], chip: Chip) -> list[list[Figure]]:
    """Return what is predicted and what was measured, by problem."""
    return [
        [
            Figure(predict_attention(kernel["tile"], record["problem"], chip).us, kernel["us"])
            for kernel in record["kernels"]
        ]
        for record in records
    ]


def error(records: Sequence[Record], chip: Chip) -> float:
    """Return the error that is to be small."""
    figures = figures_of(records, chip)
    return squared_error([[(f.predicted_us, f.measured_us, 1.0) for f in one] for one in figures])


def main() -> None:
    """Fit if asked to, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    records = read_records()
    tuned = {path.stem: read_tuned(path) for path in TUNED}
    every = [*records, *(one for its in tuned.values() for one in its)]
    costs = search(
        H200.attention,
        lambda costs: error(every, replace(H200, attention=costs)),
        arguments.seconds,
        arguments.seed,
        LIMITS,
    )
    if arguments.seconds:
        print(json.dumps({name: round(value, 4) for name, value in asdict(costs).items()}))
    figures = figures_of(records, replace(H200, attention=costs))
    print(compare(figures))
    for stem, its in tuned.items():
        print(f"{stem}: {compare(figures_of(its, replace(H200, attention=costs)))}")
    for record, group in zip(records, figures, strict=True):
        config = record["kernels"][0]["config"]
        ratios = [figure.predicted_us / figure.measured_us for figure in group]
        print(
            f"  {record['batch']}x{record['heads']}/{record['key_heads']}x{record['rows']}x"
            f"{record['keys']} depth {config['depth']} {config['mask']}: predicted / measured "
            f"{min(ratios):.2f} to {max(ratios):.2f} of {len(ratios)}"
        )


if __name__ == "__main__":
    main()
