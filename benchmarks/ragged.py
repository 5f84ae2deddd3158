"""Ragged batches and keys in pages on a Hopper GPU, beside FlashAttention-3 in one run.

python benchmarks/ragged.py FA3_LIBRARY [--json FILE] [--rounds 15]

FA3_LIBRARY is the shared library with its PyTorch operators (``flash_attn_3``), as in the wheels of
xformers; its CUDA runtime has to be loadable. Kernels are timed one by one in shuffled rounds, each
after 256 MB were written so that nothing is left in L2; ratios of the medians are what to compare.
TFLOP/s count what the mask leaves; ``error`` is the relative Frobenius distance from FA3's output.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import fa4gen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Runs = dict[str, "Callable[[], Any]"]
SHAPES = ((64, 64, 8), (128, 32, 8), (256, 16, 8))
"""Depth, query heads, key heads."""
PREFILL = (2, 512, 16384, 128, 32, 8)
"""Sequences, new rows, keys, depth, query heads, key heads."""
PAGES = (16, 64, 256)
TILES: tuple[dict[str, int], ...] = ({}, {"BM": 128, "BN": 128}, {"BM": 128, "BN": 176})
COLD_BYTES = 256 << 20


def config(depth: int, *, causal: bool, **keys: Any) -> dict[str, Any]:
    """Return the keys of a kernel for Hopper."""
    mask = "causal" if causal else "none"
    base = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": depth, "mask": mask}
    return {**base, **keys}


def all_configs() -> Iterator[dict[str, Any]]:
    """Yield every kernel that is timed."""
    for depth, _, _ in SHAPES:
        for causal in (False, True):
            yield config(depth, causal=causal)
            yield config(depth, causal=causal, batching="ragged")
    for tile in TILES:
        yield config(128, causal=True, **tile)
        for page in PAGES:
            yield config(128, causal=True, keys="paged", page_size=page, **tile)


def batches() -> dict[str, list[int]]:
    """Return lengths of sequences by name; the first is drawn."""
    rng = random.Random(5)
    drawn: list[int] = []
    while sum(drawn) < 32768:
        drawn.append(min(8192, max(20, int(rng.lognormvariate(6.5, 1.0)))))
    return {
        "log-normal": drawn,
        "equal": [2048] * 16,
        "one giant": [16384] + [33] * 400,
        "dwarfs": [48] * 1024,
    }


def normal(*shape: int) -> torch.Tensor:
    """Return N(0, 1) numbers in bf16."""
    return torch.randn(*shape, device="cuda").to(torch.bfloat16)


def medians(runs: Runs, rounds: int) -> dict[str, float]:
    """Return milliseconds by name."""
    cold = torch.empty(COLD_BYTES, dtype=torch.int8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 3):
        for name in random.sample(list(runs), len(runs)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            cold.zero_()
            begin.record()
            runs[name]()
            end.record()
            torch.cuda.synchronize()
            if number >= 3:
                times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(taken) for name, taken in times.items()}


def ragged(fa3: Any, rounds: int) -> Iterator[dict[str, Any]]:
    """Time batches of each shape."""
    for depth, heads, key_heads in SHAPES:
        for name, lengths in batches().items():
            rows, longest = sum(lengths), max(lengths)
            ends = torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)
            query = normal(rows, heads, depth)
            key, value = normal(rows, key_heads, depth), normal(rows, key_heads, depth)
            for causal in (False, True):
                tables = {"query_offsets": ends, "key_offsets": ends}
                kernel = fa4gen.load(config(depth, causal=causal, batching="ragged"))
                peer = partial(
                    fa3,
                    *(query, key, value),
                    cu_seqlens_q=ends,
                    cu_seqlens_k=ends,
                    max_seqlen_q=longest,
                    max_seqlen_k=longest,
                    is_causal=causal,
                    num_splits=1,
                )
                runs: Runs = {"fa4gen": kernel.prepare(query, key, value, **tables), "fa3": peer}
                if name == "equal":
                    dense = fa4gen.load(config(depth, causal=causal))
                    batch = [x.view(len(lengths), longest, -1, depth) for x in (query, key, value)]
                    runs["dense"] = dense.prepare(*batch)
                seen = sum(n * (n + 1) // 2 if causal else n * n for n in lengths)
                about = {"batch": name, "depth": depth, "causal": causal}
                yield measured(about, runs, 4 * heads * depth * seen, rounds)


def paged(fa3: Any, rounds: int) -> Iterator[dict[str, Any]]:
    """Time chunked prefill over contiguous keys and over pages of them."""
    batch, rows, keys, depth, heads, key_heads = PREFILL
    query = normal(batch, rows, heads, depth)
    key, value = normal(batch, keys, key_heads, depth), normal(batch, keys, key_heads, depth)
    lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32)
    work = 4 * batch * heads * depth * (keys * rows - rows * (rows - 1) // 2)
    for page in PAGES:
        pages = batch * keys // page
        order = torch.randperm(pages, device="cuda")
        cache = [torch.empty(pages, page, key_heads, depth, device="cuda").to(query) for _ in "kv"]
        for store, x in zip(cache, (key, value), strict=True):
            store[order] = x.view(pages, page, key_heads, depth)
        table = order.to(torch.int32).view(batch, keys // page)

        peer = partial(fa3, query, *cache, page_table=table, seqused_k=lengths, is_causal=True)
        for tile in TILES:
            kernel = fa4gen.load(config(depth, causal=True, keys="paged", page_size=page, **tile))
            contiguous = fa4gen.load(config(depth, causal=True, **tile))
            runs: Runs = {
                "fa4gen": kernel.prepare(query, *cache, key_lengths=lengths, page_table=table),
                "fa3": peer,
                "contiguous": contiguous.prepare(query, key, value),
                "fa3 contiguous": partial(fa3, query, key, value, is_causal=True, num_splits=1),
            }
            yield measured({"page_size": page, **tile}, runs, work, rounds)


def measured(about: dict[str, Any], runs: Runs, work: int, rounds: int) -> dict[str, Any]:
    """Return a row: TFLOP/s by kernel, the ratio to FA3, and the distance from its output."""
    ours: Any = runs["fa4gen"]
    ours()
    theirs = runs["fa3"]()[0].float()
    error = (ours.out.float() - theirs).norm() / theirs.norm()
    times = medians(runs, rounds)
    speeds = {name: round(work / taken / 1e9, 1) for name, taken in times.items()}
    ratio = round(times["fa3"] / times["fa4gen"], 3)
    return {**about, **speeds, "ratio": ratio, "error": float(error)}


def main() -> None:
    """Time everything, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.ops.load_library(options.library)
    fa3 = torch.ops.flash_attn_3.fwd
    with ThreadPoolExecutor() as pool:  # compiled once, side by side; the cache has them then
        list(pool.map(fa4gen.load, all_configs()))
    rows = []
    for part in (ragged, paged):
        for row in part(fa3, options.rounds):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.json:
        gpu = torch.cuda.get_device_name()
        options.json.write_text(json.dumps({"gpu": gpu, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
