"""Times decode attention beside the read floor and, where it is given, FlashAttention-3.

    python benchmarks/decode.py RESULTS.json [FA3_LIBRARY]

One query row a sequence, or a few, against thousands of keys: GB/s of keys and values that count.
The floor is a kernel that only reads as many bytes (read_floor.cu). All are timed in turn, with a
cold L2, by the median; docs/bench_h200_decode.json has such results. Needs a Hopper GPU and
PyTorch; FA3_LIBRARY is the shared library of FlashAttention-3's PyTorch operators.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import cupy
import torch
from triton.testing import do_bench

import fa4gen

HEADS = ((128, 32, 8), (128, 64, 8), (128, 16, 1), (64, 64, 8), (256, 16, 2))
"""Depth, query heads, key heads."""
SHAPES = ((1, 1, 8192), (1, 1, 131072), (16, 1, 8192), (64, 1, 4096), (8, 4, 16384))
"""Sequences, query rows and keys of each."""
CHUNK = 16384
FLOOR_LAUNCHES = ((1, 10), (2, 4), (2, 6))
"""CTAs a multiprocessor and copies in flight: the fastest counts."""
LARGEST_DIFFERENCE = 8e-3
"""Relative Frobenius norm between FlashAttention-3's output and ours, both bf16."""
ROUNDS = 2


def milliseconds(run: Any) -> float:
    """Return the median time of a call, L2 overwritten before each."""
    return float(do_bench(run, warmup=10, rep=40, return_mode="median"))


class ReadFloor:
    """The time in which so many bytes can be read at all."""

    def __init__(self) -> None:
        source = (Path(fa4gen.__file__).parent / "bench" / "read_floor.cu").read_text("utf-8")
        module = cupy.RawModule(code=source, backend="nvrtc", options=("--std=c++17",))
        self._kernel = module.get_function("read_floor")
        self._kernel.max_dynamic_shared_size_bytes = 200 * 1024
        self._known: dict[int, float] = {}

    def milliseconds(self, size: int) -> float:
        """Return it for ``size`` bytes, rounded down to whole chunks."""
        chunks = size // CHUNK
        if chunks not in self._known:
            self._known[chunks] = min(self._time(chunks, *one) for one in FLOOR_LAUNCHES)
        return self._known[chunks]

    def _time(self, chunks: int, ctas: int, depth: int) -> float:
        memory = cupy.zeros(chunks * CHUNK, cupy.uint8)
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        grid = (ctas * torch.cuda.get_device_properties(0).multi_processor_count,)

        def run() -> None:
            with stream:
                self._kernel(grid, (128,), (memory, chunks, depth), shared_mem=depth * CHUNK)

        return milliseconds(run)


def compare(facts: dict[str, Any], calls: dict[str, Any], size: int, floor: ReadFloor) -> Any:
    """Time calls in turn and return the facts with GB/s and ratios."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(milliseconds(call))
    speed = {name: round(size / statistics.median(of) / 1e6) for name, of in times.items()}
    speed["floor"] = round(size / floor.milliseconds(size) / 1e6)
    ratios = {f"of_{name}": round(speed["fa4gen"] / speed[name], 3) for name in speed}
    return {**facts, **speed, **{name: of for name, of in ratios.items() if name != "of_fa4gen"}}


def dense(fa3: Any, floor: ReadFloor) -> Any:
    """All keys count and are contiguous."""
    for depth, heads, key_heads in HEADS:
        packed = 8 if depth == 256 else 16
        for batch, rows, keys in SHAPES:
            few = heads // key_heads * rows <= 8
            kernel = fa4gen.load(
                {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": depth,
                 "mask": "causal", "pack_heads": True, "packed_rows": 8 if few else packed}
            )  # fmt: skip
            query, key, value = (
                torch.randn(batch, length, count, depth, device="cuda", dtype=torch.bfloat16)
                for length, count in ((rows, heads), (keys, key_heads), (keys, key_heads))
            )
            calls = {"fa4gen": kernel.prepare(query, key, value)}
            if fa3 is not None:

                def peer(q: Any = query, k: Any = key, v: Any = value, n: int = rows) -> Any:
                    return fa3(q, k, v, is_causal=n > 1, num_splits=0)

                calls["fa4gen"]()
                expected, found = peer()[0].float(), calls["fa4gen"].out.float()
                difference = float((found - expected).norm() / expected.norm())
                if not difference < LARGEST_DIFFERENCE:
                    raise SystemExit(f"outputs differ by {difference}: {depth} {batch} {keys}")
                calls["fa3"] = peer
            facts = {"depth": depth, "heads": heads, "key_heads": key_heads,
                     "batch": batch, "rows": rows, "keys": keys}  # fmt: skip
            yield compare(facts, calls, 2 * key.numel() * key.element_size(), floor)


def main() -> None:
    """Time all, print each and write them."""
    fa3 = None
    if len(sys.argv) > 2:
        torch.ops.load_library(sys.argv[2])
        fa3 = torch.ops.flash_attn_3.fwd
    rows = []
    for row in dense(fa3, ReadFloor()):
        rows.append(row)
        print(json.dumps(row), flush=True)
    device = torch.cuda.get_device_name()
    results = {"device": device, "unit": "GB/s of keys and values", "results": rows}
    Path(sys.argv[1]).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
