"""Times prefill with tiles of one head and of several, where rows just pass a tile.

    python benchmarks/packed_heads.py OUT.jsonl [--fa3 LIB] [--cudart LIB] [--rounds 12]

Beside them are kernels that pack all heads, made for a few rows, and FlashAttention-3, which packs
the heads of a key head there. Outputs are compared with those of tiles of one head. A line of JSON
each problem, with every round in us, cold L2.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import fa4gen

if TYPE_CHECKING:
    from collections.abc import Callable

PROBLEMS = (
    (192, "none", 16, 64, 16, 385, 1071),
    (256, "causal", 24, 32, 8, 272, 652),
    (128, "causal", 11, 64, 16, 276, 3462),
)
"""Depth, mask, batch, heads, key heads, rows, keys."""
PREFILL = "kernel: attention\narch: sm_90a\ndtype: bf16\n"
PACKED = f"{PREFILL}packed_rows: 64\npack_heads: true\n"
FLUSH = 64 << 20
"""Words that are written before a launch: more than L2 holds."""
MOST = 0.05
"""Outputs differ by less."""


def _output(found: Any) -> Any:
    return found[0] if isinstance(found, tuple | list) else found


def _fa3(library: str, cudart: str) -> Any:
    import ctypes

    import torch

    if cudart:
        ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    torch.ops.load_library(library)
    return torch.ops.flash_attn_3.fwd


def measure(problem: tuple[Any, ...], folder: Path, fa3: Any, rounds: int) -> dict[str, Any]:
    """Return every round of every kernel."""
    import torch

    depth, mask, batch, heads, key_heads, rows, keys = problem
    word = "dense" if mask == "none" else mask
    shapes = ((rows, heads), (keys, key_heads), (keys, key_heads))
    query, key, value = (
        torch.randn(batch, n, h, depth, device="cuda", dtype=torch.bfloat16) for n, h in shapes
    )
    its = f"depth: {depth}\nmask: {mask}\n"
    texts = {f"heads{n}": f"{PREFILL}{its}tile_heads: {n}\n" for n in (2, 4)}
    texts["packed"] = f"{PACKED}{its}"
    runs: dict[str, Callable[[], Any]] = {}
    runs["plain"] = partial(fa4gen.load(f"d{depth}_{word}_bf16"), query, key, value)
    for name, text in texts.items():
        config = folder / f"{name}_d{depth}_{word}.yaml"
        config.write_text(text, encoding="utf-8")
        runs[name] = partial(fa4gen.load(str(config)), query, key, value)
    if fa3 is not None:
        options = {"is_causal": mask == "causal", "num_splits": 1}
        runs["fa3"] = partial(fa3, query, key, value, **options)
    wanted = _output(next(iter(runs.values()))()).float()
    for name, run in runs.items():
        assert float((_output(run()).float() - wanted).abs().max()) < MOST, name
    flush = torch.empty(FLUSH, dtype=torch.int32, device="cuda")
    us: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            flush.zero_()
            begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            us[name].append(round(begin.elapsed_time(end) * 1e3, 1))
    word = f"{batch}x{heads}/{key_heads}x{rows}x{keys}"
    return {"problem": word, "depth": depth, "mask": mask, "us": us}


def main() -> None:
    """Measure and print."""
    import tempfile

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--fa3", default="")
    parser.add_argument("--cudart", default="")
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    fa3 = _fa3(arguments.fa3, arguments.cudart) if arguments.fa3 else None
    with tempfile.TemporaryDirectory() as folder, arguments.out.open("a") as file:
        for problem in PROBLEMS:
            found = measure(problem, Path(folder), fa3, arguments.rounds)
            file.write(json.dumps(found) + "\n")
            medians = {name: median(taken) for name, taken in found["us"].items()}
            print(found["problem"], medians, flush=True)


if __name__ == "__main__":
    main()
