"""Times a captured graph of decode attention and products, with dependent launches and without.

    python benchmarks/dependent_launches.py OUT.jsonl [--layers N] [--sequences N] [--keys N]
        [--short]

Needs PyTorch. A layer is attention of one row a sequence, then three products of its output by
weights of a model of 8B. Each kernel takes the output of the one before. The same layers are
captured twice, of kernels with ``dependent_launch`` and without; both graphs have to give the same
bits as launches one after the other, and are then timed in turn, L2 cold each time. With --short
the products with the key have rings of half a multiprocessor's shared memory: the next kernel's CTA
starts where the one before still runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fa4gen.callables import as_callable, compile_config  # noqa: E402
from fa4gen.config.load import load_mapping  # noqa: E402
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADS, KEY_HEADS, DEPTH, INNER = 32, 8, 128, 14336
HIDDEN = HEADS * DEPTH
PRODUCTS = ((HIDDEN, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER))
"""n and k of the products of a layer: each k is the n of the one before."""
KERNELS = 1 + len(PRODUCTS)
ATTENTION = {"kernel": "attention", "depth": DEPTH, "mask": "causal", "pack_heads": True}
PRODUCT = {"kernel": "gemm", "swap_operands": True, "BM": 16, "BN": 64, "split_k": 2}
"""Split, so that each product has CTAs for about all multiprocessors: in 64 CTAs, a product of
4096 x 4096 took 13.0 us with dependent launches and 12.3 us without."""
SHORT = {"num_stages": 5}
"""Two CTAs of such a product fit a multiprocessor of Hopper."""
HOPPER = {"arch": "sm_90a", "dtype": "bf16"}
PROTOCOL = TimingProtocol(min_samples=51, budget_s=0.2)
ROUNDS, CHECKED = 5, 20
MOST_ERROR = 1e-2
"""The most that the layers with the key may differ from those without: roundings to bf16 add up."""


def compiled(keys: dict[str, object], *, dependent: bool) -> Any:
    """Return a kernel of fa4gen's."""
    config = {**HOPPER, **keys, "dependent_launch": dependent}
    name = f"{keys['kernel']}{'_dependent' * dependent}"
    chosen = compile_config(load_mapping(config, name))
    return as_callable(chosen.plan, chosen.kernel.cubin)


class Layers:
    """Weights, keys and values of some layers, and the outputs between their kernels."""

    def __init__(self, layers: int, sequences: int, keys: int) -> None:
        """Draw them; rows of the products are one a sequence."""
        import torch

        self._torch = torch
        torch.manual_seed(0)

        def draw(*shape: int, scale: float = 1.0) -> Any:
            return scale * torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

        self._first = draw(sequences, HIDDEN)
        self._keys = [draw(sequences, keys, KEY_HEADS, DEPTH) for _ in range(layers)]
        self._values = [draw(sequences, keys, KEY_HEADS, DEPTH) for _ in range(layers)]
        self._weights = [[draw(n, k, scale=k**-0.5) for n, k in PRODUCTS] for _ in range(layers)]
        self._shape = (sequences, 1, HEADS, DEPTH)

    def launches(self, attention: Any, product: Any) -> tuple[list[Callable[[], None]], Any]:
        """Return prepared calls, and the output of the last; each reads what the last one wrote."""
        found, rows = [], self._first
        for keys, values, weights in zip(self._keys, self._values, self._weights, strict=True):
            attended = self._torch.empty_like(rows)
            query, out = rows.view(self._shape), attended.view(self._shape)
            found.append(attention.prepare(query, keys, values, out=out))
            rows = attended
            for weight in weights:
                before, rows = rows, rows.new_empty(len(rows), len(weight))
                found.append(product.prepare(before, weight.T, out=rows))
        return found, rows

    def captured(self, *, dependent: bool, short: bool = False) -> tuple[Callable[[], None], Any]:
        """Return the graph of all layers and its output, once it gives the bits of launches apart.

        SystemExit where it does not.
        """
        torch = self._torch
        product = {**PRODUCT, **SHORT} if short else PRODUCT
        kernels = [compiled(keys, dependent=dependent) for keys in (ATTENTION, product)]
        launches, out = self.launches(*kernels)
        for launch in launches:
            launch()
            torch.cuda.synchronize()  # before the next one starts, whatever its attribute
        apart = out.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for launch in launches:
                launch()
        for run in range(CHECKED):
            out.fill_(float("nan"))
            graph.replay()
            torch.cuda.synchronize()
            if not torch.equal(out, apart):
                raise SystemExit(f"dependent_launch: {dependent}: run {run} has other bits")
        self._kept = [*getattr(self, "_kept", ()), *kernels, graph, launches]
        return graph.replay, apart


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Return the line of results."""
    import torch

    layers = Layers(options.layers, options.sequences, options.keys)
    apart, expected = layers.captured(dependent=False)
    dependent, found = layers.captured(dependent=True, short=options.short)
    error = float((found - expected).float().norm() / expected.float().norm())
    if not error <= MOST_ERROR:
        raise SystemExit(f"kernels with dependent_launch differ from those without by {error:.3g}")
    runs = {"dependent": dependent, "apart": apart}
    stream = torch.cuda.current_stream().cuda_stream
    taken = time_in_turn(runs, PROTOCOL, rounds=ROUNDS, stream=stream)
    us = {name: [round(1e3 * one.median_ms, 3) for one in times] for name, times in taken.items()}
    saved = statistics.median(us["apart"]) - statistics.median(us["dependent"])
    pairs = KERNELS * options.layers - 1
    return {
        "problem": f"{options.layers} layers, {options.sequences} sequences, {options.keys} keys",
        "kernel": "dependent_launch",
        "chip": require_device("sm_90a").name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "times_us": us["dependent"],
        "peers_us": {"apart": statistics.median(us["apart"])},
        "details": {
            "us": us,
            "kernels": pairs + 1,
            "saved_us_a_pair": round(saved / pairs, 3),
            "short_rings": options.short,
        },
    }


def commit() -> str:
    """Return the commit of the checkout, "" outside of one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the time saved for each pair of kernels, and add a line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--sequences", type=int, default=16, choices=range(1, 17))
    parser.add_argument("--keys", type=int, default=1024)
    parser.add_argument("--short", action="store_true", help="short rings with the key")
    options = parser.parse_args(arguments)
    line = measured(options)
    with options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(f"{line['problem']}: {line['details']['saved_us_a_pair']} us saved a pair of kernels")


if __name__ == "__main__":
    main()
