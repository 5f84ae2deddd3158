"""Times attention in fp8 and bf16 with other libraries on a GPU, and measures errors by keys.

    python benchmarks/fp8_attention.py speed OUT.jsonl [--depth D ...] [--drawn COUNT --seed SEED]
                                             [--fa3 LIBRARY] [--set KEY=VALUE ...]
    python benchmarks/fp8_attention.py errors OUT.jsonl [--keys N ...] [--fa3 LIBRARY]
                                             [--set KEY=VALUE ...]
    python benchmarks/fp8_attention.py model OUT.jsonl [--keys N ...]
    python benchmarks/fp8_attention.py plot OUT.svg FILE.jsonl ...

``model`` needs no GPU: it is verify's model of sums that keep 13 bits. ``plot`` draws the errors
that ``model`` or ``errors`` wrote. The others need PyTorch; cuDNN takes part where its Python
frontend is installed, FlashAttention-3 where flash_attn_interface is, or with ``--fa3`` by the
library flash_ops of sglang-kernel. Each line says what was left out and why. fa4gen's kernels are
fp8 with the default promotion, without any, and with values with contiguous keys. Inputs are drawn
from N(0, 1) and rounded to e4m3 with one scale a tensor. Kernels of a problem take turns, each call
with a cold L2. Errors are relative Frobenius errors against float64 on the same rounded inputs,
with values from N(0, 1), where sums of few bits show nothing, and from N(1, 1), where they lose
what is small compared with the sum so far.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
for _folder in (ROOT / "benchmarks", ROOT / "benchmarks/reports", ROOT):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from fp8_errors_picture import MODEL, errors_picture  # noqa: E402
from fp8_peers import peers_of  # noqa: E402
from fp8_problem import Inputs, Shape, error, exact  # noqa: E402
from measured import read_lines  # noqa: E402

from fa4gen.callables import as_callable, compile_config  # noqa: E402
from fa4gen.config.load import load_mapping  # noqa: E402
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402
from fa4gen.verify.cut_sums import CutSums  # noqa: E402
from fa4gen.verify.rounding import round_to  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ARCH = "sm_90a"
ROWS = (2048, 4096, 8192, 16384, 32768)
KEYS = (4096, 8192, 16384, 32768, 65536, 131072)
OURS: Mapping[str, Mapping[str, object]] = {
    "fp8": {},
    "fp8, never promoted": {"promote_every": "never"},
    "fp8, contiguous keys": {"value_major": "keys"},
}
"""The keys of fa4gen's kernels that are timed."""
PROMOTIONS: tuple[int | str, ...] = ("never", "auto", 1, 4, 16, 64)
"""The values of ``promote_every`` for which errors are measured."""
CHECKED_ROWS = 256
MODEL_ROWS, MODEL_COLUMNS = 32, 32
PROTOCOL = TimingProtocol(warmup_s=0.01, budget_s=0.05, min_samples=11)
ROUNDS = 3


def kernel_of(shape: Shape, dtype: str, keys: Mapping[str, object]) -> Any:
    """Return the kernel for a shape, compiled."""
    config = {
        "kernel": "attention",
        "arch": ARCH,
        "dtype": dtype,
        "depth": shape.depth,
        "mask": "causal" if shape.causal else "none",
        **keys,
    }
    chosen = compile_config(load_mapping(config, f"fp8_attention_{dtype}"))
    return as_callable(chosen.plan, chosen.kernel.cubin)


def ours(kernel: Any, inputs: Inputs, out: Any, *, narrow: bool) -> Callable[[], Any]:
    """Return a launch of one of fa4gen's kernels."""
    import torch

    if not narrow:
        return kernel.prepare(*inputs.wide, out=out)  # type: ignore[no-any-return]
    shape = (inputs.narrow[1].shape[0], inputs.narrow[1].shape[2])
    scales = {
        f"{name}_descale": torch.full(shape, scale, device="cuda")
        for name, scale in zip(("query", "key", "value"), inputs.scales, strict=True)
    }
    query, key, value = (x.view(torch.uint8) for x in inputs.narrow)
    if kernel.plan.has_lines_of_keys:
        value = with_contiguous_keys(value)
    return kernel.prepare(query, key, value, out=out, **scales)  # type: ignore[no-any-return]


def with_contiguous_keys(value: Any) -> Any:
    """Return values (batch, keys, heads, depth) in memory with keys contiguous, 16 bytes a step."""
    import torch

    batch, keys, heads, depth = value.shape
    lines = torch.zeros(batch, heads, depth, -(-keys // 16) * 16, device="cuda", dtype=value.dtype)
    transposed = lines[..., :keys].permute(0, 3, 1, 2)
    transposed.copy_(value)
    return transposed


def measure_speed(shape: Shape, keys: Mapping[str, object], library: Path | None) -> dict[str, Any]:
    """Return a line of results of one shape."""
    import torch

    inputs = Inputs.draw(shape, shape.rows, 0.0)
    rows = torch.arange(shape.rows - min(shape.rows, CHECKED_ROWS), shape.rows, device="cuda")
    wanted = exact(inputs, shape, rows)
    size = (shape.batch, shape.rows, shape.heads, shape.depth)
    peers = peers_of(shape, inputs, wanted, library)
    runs, results = dict(peers.runs), dict(peers.results)
    kernels = {name: ("fp8_e4m3", {**keys, **own}) for name, own in OURS.items()}
    for name, (dtype, own) in {**kernels, "bf16": ("bf16", {})}.items():
        out = torch.full(size, math.nan, device="cuda", dtype=torch.bfloat16)
        kernel = kernel_of(shape, dtype, own)
        runs[name] = ours(kernel, inputs, out, narrow=dtype != "bf16")
        results[name] = (out, 1.0)
    for run in runs.values():
        run()
    torch.cuda.synchronize()
    errors = {
        name: error(out.float() * scale, wanted, rows) for name, (out, scale) in results.items()
    }
    taken = time_in_turn(
        runs, PROTOCOL, rounds=ROUNDS, stream=torch.cuda.current_stream().cuda_stream
    )
    times = {
        name: statistics.median(one.median_ms for one in timings) for name, timings in taken.items()
    }
    return {
        "problem": shape.words,
        **about(keys),
        "times_us": {name: round(1e3 * time, 2) for name, time in times.items()},
        "tflops": {name: round(shape.operations / time / 1e9, 1) for name, time in times.items()},
        "errors": {name: round(found, 5) for name, found in errors.items()},
        "left_out": peers.left_out,
    }


def measure_errors(
    keys_of_row: int, keys: Mapping[str, object], library: Path | None
) -> Iterator[dict[str, Any]]:
    """Yield lines of results for one number of keys: each way to promote, and other libraries."""
    import torch

    shape = Shape(1, keys_of_row, 2, 1, 128, causal=False)
    rows = torch.arange(CHECKED_ROWS, device="cuda")
    kernels = {
        f"promote_every {every}": kernel_of(shape, "fp8_e4m3", {**keys, "promote_every": every})
        for every in PROMOTIONS
    }
    for mean in (0.0, 1.0):
        inputs = Inputs.draw(shape, CHECKED_ROWS, mean)
        wanted = exact(inputs, shape, rows)
        size = (1, CHECKED_ROWS, shape.heads, shape.depth)
        peers = peers_of(shape, inputs, wanted, library)
        results = dict(peers.results)
        for name, kernel in kernels.items():
            out = torch.full(size, math.nan, device="cuda", dtype=torch.bfloat16)
            ours(kernel, inputs, out, narrow=True)()
            results[name] = (out, 1.0)
        yield {
            "problem": f"{keys_of_row} keys, values from N({mean:g}, 1)",
            **about(keys),
            "errors": {
                name: round(error(out.float() * scale, wanted, rows), 5)
                for name, (out, scale) in results.items()
            },
            "left_out": peers.left_out,
        }


def model_errors(keys_of_row: int) -> Iterator[dict[str, Any]]:
    """Yield lines of what sums of 13 bits do by verify's model of them, without a GPU."""
    rng = np.random.default_rng(keys_of_row)
    weights = np.exp(rng.standard_normal((MODEL_ROWS, keys_of_row)))
    weights = np.ldexp(weights / weights.max(axis=1, keepdims=True), 6)
    rounded = round_to(weights.astype(np.float32), "fp8_e4m3").astype(np.float64)
    for mean in (0.0, 1.0):
        drawn = rng.standard_normal((keys_of_row, MODEL_COLUMNS), np.float32) + np.float32(mean)
        values = round_to(drawn, "fp8_e4m3").astype(np.float64)
        wanted = weights @ values
        errors = {}
        for every in (None, 64, 16, 8, 4, 1):
            part = None if every is None else 128 * every
            got = CutSums().products(rounded, values, np, part=part)
            found = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
            errors[f"promote_every {every or 'never'}"] = round(float(found), 5)
        problem = f"{keys_of_row} keys, values from N({mean:g}, 1)"
        yield {"problem": problem, "chip": MODEL, "errors": errors}


def about(keys: Mapping[str, object]) -> dict[str, Any]:
    """Return what a line says of where it was measured."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "chip": require_device(ARCH).name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": done.stdout.strip(),
        "keys": dict(keys),
    }


def shapes_of(options: argparse.Namespace) -> Iterator[Shape]:
    """Yield the shapes to time: those drawn, or a table."""
    if options.drawn:
        rng = random.Random(options.seed)
        for _ in range(options.drawn):
            rows = round(2 ** rng.uniform(6, 14))
            key_heads = rng.choice((1, 2, 4, 8))
            heads = key_heads * rng.choice((1, 2, 4, 8))
            batch = max(1, min(16, 32768 // rows))
            yield Shape(batch, rows, heads, key_heads, 128, rng.random() < 0.5)
        return
    for depth in options.depth or (128, 64, 256):
        for causal in (False, True):
            if depth == 128:
                yield from (Shape(1, rows, 64, 8, depth, causal) for rows in ROWS)
            else:
                heads = 2048 // depth
                for rows in (1024, 2048, 4096, 8192, 16384):
                    yield Shape(16384 // rows, rows, heads, heads, depth, causal)


def main() -> None:
    """Measure, and append a line of JSON a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "errors", "model", "plot"))
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="*", help="plot: what model or errors wrote")
    parser.add_argument("--fa3", type=Path, help="the library flash_ops of sglang-kernel")
    parser.add_argument("--depth", type=int, action="append", default=[])
    parser.add_argument("--keys", type=int, action="append", default=[])
    parser.add_argument("--drawn", type=int, default=0, help="shapes to draw, in place of a table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of our fp8 kernel")
    options = parser.parse_args()
    pairs = (text.partition("=") for text in options.set)
    keys = {key: yaml.safe_load(value) for key, _, value in pairs}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.what == "plot":
        known = [line for file in options.files for line in read_lines(file)]
        options.out.write_text(errors_picture(known), encoding="utf-8")
        return
    with options.out.open("a") as file:
        lines: Iterator[dict[str, Any]]
        if options.what == "speed":
            lines = (measure_speed(shape, keys, options.fa3) for shape in shapes_of(options))
        elif options.what == "model":
            lines = (line for n in options.keys or KEYS for line in model_errors(n))
        else:
            lines = (
                line for n in options.keys or KEYS for line in measure_errors(n, keys, options.fa3)
            )
        for line in lines:
            print(json.dumps(line), flush=True)
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
