"""Times sums over the rows of groups on a GPU: the gradients of grouped weights.

    python benchmarks/grouped_gradients.py OUT.jsonl [--case NAME ...] [--shape MxN ...]

Needs PyTorch. The cases are those of ``grouped_products.py``; an output is (groups, m, n), of bf16,
or of float32 and added to C. Each tile is checked against float64 on some groups; then the tiles
take turns with ``torch._grouped_mm`` of the same operands, and with one product over as many rows
without groups, L2 cold each time.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent
for folder in (ROOT.parent, ROOT):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from grouped_problems import HOPPER, Problem, draws  # noqa: E402
from grouped_products import (  # noqa: E402
    MOST_ERROR,
    PROTOCOL,
    ROUNDS,
    commit,
    compiled,
    runs,
)

from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import time_in_turn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

SHAPES = ((4096, 7168), (7168, 2048))
"""m and n: the extents of the weights of the two products of an expert."""
PLAIN = {**HOPPER, "dtype": "bf16", "a_major": "m", "b_major": "n"}
TILES: Mapping[str, Mapping[str, object]] = {
    "128x256": {},
    "128x256 two slots": {"num_epi_stages": 2},
    "256x128": {"BM": 256},
    "128x192": {"BN": 192},
    "128x128": {"BN": 128},
    "128x256 float32": {"out_dtype": "fp32", "num_epi_stages": 2},
    "128x256 added": {"out_dtype": "fp32", "residual": "matrix", "num_epi_stages": 2},
    "128x128 added": {"BN": 128, "out_dtype": "fp32", "residual": "matrix", "num_epi_stages": 2},
}
"""Configs by name; those that add to C read and write twice the bytes."""
CHECKED_COLUMNS = 256


class Gradients:
    """Random operands of a problem: A (m, rows) and B (rows, n), both with rows outermost."""

    def __init__(self, problem: Problem) -> None:
        """Draw them; k of the problem is m."""
        import torch

        torch.manual_seed(0)
        self.torch, self.problem = torch, problem
        kinds: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16}
        self.a = torch.randn(problem.rows, problem.k, **kinds)
        self.b = torch.randn(problem.rows, problem.n, **kinds)
        self.offsets = torch.tensor(problem.offsets, device="cuda", dtype=torch.int32)

    def launch(self, kernel: Any) -> Any:
        """Return a prepared call, after it was checked on some groups."""
        plan, problem, torch = kernel.plan, self.problem, self.torch
        dtype = torch.float32 if plan.out_dtype == "fp32" else torch.bfloat16
        shape = len(problem.counts), problem.k, problem.n
        out = torch.full(shape, 0.0 if plan.c.exists else math.nan, device="cuda", dtype=dtype)
        c = (out,) if plan.c.exists else ()
        launch = kernel.prepare(self.a.mT, self.b, *c, row_offsets=self.offsets, out=out)
        launch()
        error = self.error(out)
        if not error <= MOST_ERROR:
            raise SystemExit(f"{problem.name}, {plan.name}: an error of {error:.3g}")
        return launch

    def error(self, out: Any) -> float:
        """Return the largest relative error of some groups' first columns."""
        counts, worst = self.problem.counts, 0.0
        for group in {0, len(counts) - 1, counts.index(max(counts)), counts.index(min(counts))}:
            begin, end = self.problem.offsets[group : group + 2]
            b = self.b[begin:end, :CHECKED_COLUMNS].double()
            exact = self.a[begin:end].double().mT @ b
            wrong = float((out[group, :, :CHECKED_COLUMNS].double() - exact).norm())
            worst = max(worst, wrong / max(float(exact.norm()), 1e-9))
        return worst

    def others(self) -> dict[str, Any]:
        """Return PyTorch's grouped product of these operands, and one product over all rows."""
        ends = self.offsets[1:].contiguous()
        whole = compiled(PLAIN, "one sum").prepare(self.a.mT, self.b)
        found = {
            "torch_bf16": lambda: self.torch._grouped_mm(self.a.mT, self.b, offs=ends),
            "one sum": whole,
        }
        return {name: run for name, run in found.items() if runs(name, run)}


def measured(problem: Problem) -> dict[str, Any]:
    """Return a line of results of one problem."""
    operands = Gradients(problem)
    launches = {}
    for name, tile in TILES.items():
        kernel = compiled({**PLAIN, "groups": "k_offsets", **tile}, f"gradient_{name}")
        launches[name] = operands.launch(kernel)
    others = operands.others()
    taken = time_in_turn({**launches, **others}, PROTOCOL, rounds=ROUNDS)
    found = {
        name: round(1e3 * statistics.median(one.median_ms for one in timings), 3)
        for name, timings in taken.items()
    }
    plain = [name for name, tile in TILES.items() if "out_dtype" not in tile]
    best = min(plain, key=found.__getitem__)
    return {
        "problem": f"{problem.name}, {problem.k}x{problem.n}",
        "kernel": best,
        "chip": require_device("sm_90a").name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "times_us": [found[best]],
        "peers_us": {name: found[name] for name in others},
        "details": {
            "groups": "k_offsets",
            "rows": problem.rows,
            "tiles_us": {name: found[name] for name in launches},
            "tflops": round(2e-6 * problem.rows * problem.n * problem.k / found[best], 1),
        },
    }


def main() -> None:
    """Measure, and write a line of JSON a problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--case", action="append", default=[], help="a name, such as 32x256")
    parser.add_argument("--shape", action="append", default=[], help="MxN; repeatable")
    options = parser.parse_args()
    cases = draws()
    shapes = [tuple(map(int, text.split("x"))) for text in options.shape] or SHAPES
    with options.out.open("a", encoding="utf-8") as file:
        for name in options.case or cases:
            for m, n in shapes:
                line = measured(Problem(name, cases[name], n, m))
                file.write(json.dumps(line) + "\n")
                file.flush()
                time, peers = line["times_us"][0], line["peers_us"]
                ratios = ", ".join(f"{name} {us / time:.3f}" for name, us in peers.items())
                print(f"{line['problem']:>28} {line['kernel']:20} {time:9.2f} us; {ratios}")


if __name__ == "__main__":
    main()
