# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of a layer of OLMoE's shape, by whose kernels its experts are computed.

python benchmark.py [--tokens 64 512 4096 16384] [--seed 0] [--small] [--json FILE]

Each layer is captured into a CUDA graph once and replayed with other tokens, so that every replay
has routes of its own. Its output is then compared with that of a loop over experts in float32: the
error must be at most 1.5 times that of the same loop in the layer's type. The exit status is 1
where it is not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from layer import (
    OLMOE,
    SMALL,
    GroupedMm,
    Kernels,
    Loop,
    layer,
    random_weights,
    routed,
    routes_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layer import Experts, Routes, Shape

INPUTS = 4
"""Tensors of tokens, in turn: routes change from replay to replay."""
ROUNDS, REPLAYS = 5, 20


class Captured:
    """A layer in a CUDA graph, with the tokens that it reads and the output that it writes."""

    def __init__(
        self, shape: Shape, weights: Mapping[str, torch.Tensor], tokens: int, experts: Experts
    ) -> None:
        """Run the layer once, and capture it."""
        router = weights["router"]
        self.tokens = torch.zeros(tokens, shape.hidden, dtype=router.dtype, device=router.device)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            layer(self.tokens, weights, shape.chosen, experts)
        side.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            logits = self.tokens @ weights["router"].T
            self.routes = routes_of(logits, shape.chosen)
            self._out = routed(self.tokens, weights, self.routes, experts)

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """Replay with these tokens; the output is overwritten by the next call."""
        self.tokens.copy_(tokens)
        self._graph.replay()
        return self._out

    def microseconds(self, inputs: list[torch.Tensor]) -> float:
        """Return the time of a replay, a copy of its tokens included, over inputs in turn."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for number in range(REPLAYS):
            self(inputs[number % len(inputs)])
        end.record()
        end.synchronize()
        return 1000 * float(start.elapsed_time(end)) / REPLAYS


def judged(
    weights: Mapping[str, torch.Tensor],
    tokens: torch.Tensor,
    routes: Routes,
    out: torch.Tensor,
) -> tuple[float, float]:
    """Return the relative errors of an output, and of a loop in its type, against float32.

    All have the routes of the output: where two logits are almost equal, other kernels may choose
    another expert.
    """
    exact = routed(tokens, weights, routes, Upcast())
    plain = routed(tokens, weights, routes, Loop())

    def error(found: torch.Tensor) -> float:
        return float((found.float() - exact).norm() / exact.norm())

    return error(out), error(plain)


class Upcast(Loop):
    """The loop in float32."""

    def out(self, hidden: torch.Tensor, down: torch.Tensor, routes: Routes) -> torch.Tensor:
        """See Experts."""
        return super().out(hidden.float(), down.float(), routes)


def main() -> int:
    """Measure and judge; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 512, 4096, 16384])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a small layer on the CPU, no kernels")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    if not options.small and not torch.cuda.is_available():
        sys.exit("benchmark.py: no GPU to run on; --small needs none")
    torch.backends.cuda.matmul.allow_tf32 = False
    shape = SMALL if options.small else OLMOE
    dtype, device = (torch.float32, "cpu") if options.small else (torch.bfloat16, "cuda")
    weights = random_weights(shape, options.seed, dtype, device)
    torch.manual_seed(options.seed + 1)
    rows = []
    for count in options.tokens:
        inputs = [
            torch.randn(count, shape.hidden, dtype=dtype, device=device) for _ in range(INPUTS)
        ]
        rows += small(shape, weights, inputs) if options.small else timed(shape, weights, inputs)
    for row in rows:
        print(
            f"{row['tokens']:6} tokens, {row['experts']:10} {row['tokens_per_s']:12.0f} tokens/s, "
            f"error {row['error']:.2e}, of a loop in the same type {row['loop_error']:.2e}: "
            f"{'holds' if row['holds'] else 'DOES NOT HOLD'}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["holds"] for row in rows) else 1


def small(
    shape: Shape, weights: Mapping[str, torch.Tensor], inputs: list[torch.Tensor]
) -> list[dict[str, object]]:
    """Judge the loop by itself, which is what there is without a GPU."""
    routes = routes_of(inputs[0] @ weights["router"].T, shape.chosen)
    out = routed(inputs[0], weights, routes, Loop())
    return [figures("loop", inputs[0], 0.0, judged(weights, inputs[0], routes, out))]


def timed(
    shape: Shape, weights: Mapping[str, torch.Tensor], inputs: list[torch.Tensor]
) -> list[dict[str, object]]:
    """Time the layer with each kind of experts in turn, and judge their last outputs."""
    kinds: dict[str, Experts] = {"fa4gen": Kernels(), "grouped_mm": GroupedMm()}
    captured = {name: Captured(shape, weights, len(inputs[0]), one) for name, one in kinds.items()}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(1 + ROUNDS):
        for name, one in captured.items():
            times[name].append(one.microseconds(inputs))
    rows = []
    for name, one in captured.items():
        errors = [judged(weights, tokens, one.routes, one(tokens)) for tokens in inputs]
        middle = statistics.median(times[name][1:])
        rows.append(figures(name, inputs[0], middle, max(errors)))
    return rows


def figures(
    name: str, tokens: torch.Tensor, microseconds: float, errors: tuple[float, float]
) -> dict[str, object]:
    """Return a row of the results."""
    error, loop = errors
    return {
        "experts": name,
        "tokens": len(tokens),
        "microseconds": microseconds,
        "tokens_per_s": 1e6 * len(tokens) / microseconds if microseconds else 0.0,
        "error": error,
        "loop_error": loop,
        "holds": error <= 1.5 * loop + 1e-6,
    }


if __name__ == "__main__":
    sys.exit(main())
