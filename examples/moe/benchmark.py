# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of a layer of OLMoE's shape: fa4gen's kernels and PyTorch's grouped products.

python benchmark.py [--tokens 64 512 4096 16384] [--seed 0] [--eager] [--load] [--small]
    [--json FILE]

Each layer is captured into a CUDA graph once and replayed with other tokens, so that every replay
has routes of its own. Its output is then compared with that of a loop over experts in float32: the
error must be at most 1.5 times that of the same loop with the roundings of bf16, or of fp8 with
scales of blocks. The exit status is 1 where it is not.

fa4gen's kernels are those of third_party/moe; with --load they are compiled here by fa4gen.load.
PyTorch's layers permute tokens, gate, quantise and sum by kernels of their own, one each, compiled
by torch.compile; with --eager by PyTorch's operators.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from layer import (
    OLMOE,
    SMALL,
    GroupedMm,
    Kernels,
    Loop,
    QuantisedKernels,
    QuantisedLoop,
    ScaledGroupedMm,
    layer,
    random_weights,
    routes_of,
)
from steps import EAGER, compiled_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layer import Experts, Routes, Shape, Weights
    from steps import Steps

HERE = Path(__file__).parent
INPUTS = 4
"""Tensors of tokens, in turn: routes change from replay to replay."""
ROUNDS, REPLAYS = 5, 20
PEERS = {"fa4gen bf16": "grouped_mm bf16", "fa4gen fp8": "grouped_mm fp8"}
"""The layer that each of fa4gen's is compared with."""
Errors = dict[str, float]
"""Relative errors of loops by their type, "bf16" and "fp8"."""


class Captured:
    """A layer in a CUDA graph, with the tokens that it reads and the output that it writes."""

    def __init__(
        self, shape: Shape, router: torch.Tensor, tokens: torch.Tensor, experts: Experts
    ) -> None:
        """Run the layer once on ``tokens``, and capture it."""
        self.tokens = tokens.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            layer(self.tokens, router, shape.chosen, experts)
        side.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._routes = routes_of(self.tokens @ router.T, shape.chosen)
            self._out = experts(self.tokens, self._routes)

    @property
    def routes(self) -> Routes:
        """The routes of the last replay; what was derived from those of another is not kept."""
        return replace(self._routes)

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


class Judge:
    """Loops over experts: in float32, and with the roundings of the layers' types."""

    def __init__(self, weights: Weights) -> None:
        """Take the weights, of the type that layers without fp8 have."""
        dtype = weights["router"].dtype
        self._exact = Loop(weights, torch.float32)
        self._rounded = {
            "bf16": Loop(weights, dtype),
            "fp8": QuantisedLoop(weights, torch.float32),
        }

    def __call__(
        self, tokens: torch.Tensor, routes: Routes, out: torch.Tensor
    ) -> tuple[float, Errors]:
        """Return the relative error of an output, and those of the loops.

        All have the routes of the output: where two logits are almost equal, other kernels may
        choose another expert.
        """
        exact = self._exact(tokens, routes)

        def error(found: torch.Tensor) -> float:
            return float((found.float() - exact).norm() / exact.norm())

        return error(out), {name: error(one(tokens, routes)) for name, one in self._rounded.items()}


def main() -> int:
    """Measure and judge; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 512, 4096, 16384])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="no torch.compile")
    parser.add_argument("--load", action="store_true", help="compile the configs by fa4gen.load")
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
    judge = Judge(weights)
    kinds: dict[str, Experts] = {}
    if not options.small:
        kernels = loaded() if options.load else vendored()
        kinds = layers(weights, kernels, EAGER if options.eager else compiled_steps())
    rows: list[dict[str, Any]] = []
    for count in options.tokens:
        inputs = [
            torch.randn(count, shape.hidden, dtype=dtype, device=device) for _ in range(INPUTS)
        ]
        if options.small:
            rows += small(shape, weights, inputs, judge)
        else:
            rows += timed(shape, weights["router"], inputs, kinds, judge)
    for row in rows:
        print(in_words(row))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["holds"] for row in rows) else 1


def layers(weights: Weights, kernels: Mapping[str, Any], steps: Steps) -> dict[str, Experts]:
    """Return the products of all experts by name; those of a PEERS pair are of one type."""
    return {
        "fa4gen bf16": Kernels(weights, kernels),
        "grouped_mm bf16": GroupedMm(weights, steps),
        "fa4gen fp8": QuantisedKernels(weights, kernels, steps),
        "grouped_mm fp8": ScaledGroupedMm(weights, steps),
    }


def vendored(folder: Path = HERE / "third_party/moe/adapters/torch") -> dict[str, Any]:
    """Return the functions of the vendored adapter, by the names of the configs."""
    sys.path.insert(0, str(folder))
    import moe_torch

    return {path.stem: getattr(moe_torch, path.stem) for path in HERE.glob("*.yaml")}


def loaded() -> dict[str, Any]:
    """Return the kernels of this folder's configs, compiled where no cache has them."""
    import fa4gen

    paths = sorted(HERE.glob("*.yaml"))
    with ThreadPoolExecutor() as pool:
        return dict(zip((one.stem for one in paths), pool.map(fa4gen.load, paths), strict=True))


def small(
    shape: Shape, weights: Weights, inputs: list[torch.Tensor], judge: Judge
) -> list[dict[str, Any]]:
    """Judge the loops by themselves: they need no GPU."""
    routes = routes_of(inputs[0] @ weights["router"].T, shape.chosen)
    loops = {
        "loop bf16": Loop(weights, torch.float32),
        "loop fp8": QuantisedLoop(weights, torch.float32),
    }
    return [
        figures(name, inputs[0], 0.0, judge(inputs[0], routes, loop(inputs[0], routes)))
        for name, loop in loops.items()
    ]


def timed(
    shape: Shape,
    router: torch.Tensor,
    inputs: list[torch.Tensor],
    kinds: Mapping[str, Experts],
    judge: Judge,
) -> list[dict[str, Any]]:
    """Time the layer with each kind of experts in turn, and judge the outputs for all inputs."""
    captured = {name: Captured(shape, router, inputs[0], one) for name, one in kinds.items()}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(1 + ROUNDS):
        for name, one in captured.items():
            times[name].append(one.microseconds(inputs))
    rows = {}
    for name, one in captured.items():
        judged = []
        for tokens in inputs:
            out = one(tokens)
            judged.append(judge(tokens, one.routes, out))
        worst = max(judged, key=lambda found: found[0])
        rows[name] = figures(name, inputs[0], statistics.median(times[name][1:]), worst)
    for name, peer in PEERS.items():
        rows[name]["times_peer"] = rows[peer]["microseconds"] / rows[name]["microseconds"]
    return list(rows.values())


def figures(
    name: str, tokens: torch.Tensor, microseconds: float, errors: tuple[float, Errors]
) -> dict[str, Any]:
    """Return a row of the results; the type is the last word of the name."""
    error, loop = errors[0], errors[1][name.split()[-1]]
    return {
        "experts": name,
        "tokens": len(tokens),
        "microseconds": microseconds,
        "tokens_per_s": 1e6 * len(tokens) / microseconds if microseconds else 0.0,
        "error": error,
        "loop_error": loop,
        "holds": error <= 1.5 * loop + 1e-6,
    }


def in_words(row: Mapping[str, Any]) -> str:
    """Return a row of the results as a line."""
    ratio = f", {row['times_peer']:.2f} x {PEERS[row['experts']]}" if "times_peer" in row else ""
    return (
        f"{row['tokens']:6} tokens, {row['experts']:15} {row['tokens_per_s']:12.0f} tokens/s"
        f"{ratio}; error {row['error']:.2e}, of a loop so rounded {row['loop_error']:.2e}: "
        f"{'holds' if row['holds'] else 'DOES NOT HOLD'}"
    )


if __name__ == "__main__":
    sys.exit(main())
