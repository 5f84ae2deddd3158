"""Times attention over blocks that a call names against dense attention, on a GPU.

    python benchmarks/sparse_blocks.py OUT.json [--rounds 15] [--flex] [--densities 0.5,0.25,0.1]

bf16, 16 heads, depth 128, 16384 rows. Each block is named at random, apart for each head. For each
size of blocks the kernels take turns in another order in each round: the dense kernel, and for each
density the call, the call with the launch that lists left out of the figure, and flex_attention.
FLOPs are those of blocks that lists name. ``of_dense`` is the speed of a computed block relative to
the dense kernel, ``of_all`` relative to the same kernel with lists of all blocks, ``listing`` the
share of the call that is no product: the launch that turns lists into bits, and ``making`` the time
on the GPU of the launches that make lists of a mask, as a share of the call. Before each sample
256 MB are written: the host enqueues the launches meanwhile, so that its time is not in the figure.
``making_host_us`` is the host's time for one call of ``from_mask``. OUT is written after every
size; `benchmarks/measured.py` makes lines of benchmarks/results of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fa4gen
from fa4gen import given_blocks
from fa4gen.runtime.timing import TimingProtocol, time_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    Runs = dict[str, Callable[[], object]]

ROWS, HEADS, DEPTH = 16384, 16, 128
SIZES = {64: "d128_blocks64_bf16", 128: "d128_blocks128_bf16"}
DENSE = "d128_dense_bf16"
ALL = "1.0"
"""The density of lists of all blocks."""
FLEX_OPTIONS = {
    64: {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
    128: {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 2},
}
"""flex_attention's fastest on an H200 of its own choices, autotuned ones and a few others."""
PROTOCOL = TimingProtocol(warmup_s=0.002, budget_s=0.002, min_samples=4)


def seen_blocks(size: int, density: float) -> torch.Tensor:
    """Draw which blocks are named, (1, heads, blocks of rows, blocks of keys)."""
    import torch

    generator = torch.Generator("cuda").manual_seed(7)
    shape = (1, HEADS, ROWS // size, ROWS // size)
    return torch.rand(shape, generator=generator, device="cuda") < density


def flex(seen: torch.Tensor, size: int, arrays: list[torch.Tensor]) -> Callable[[], Any]:
    """Compile flex_attention with blocks of this size."""
    import torch
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

    query, key, value = (one.transpose(1, 2) for one in arrays)
    counts = seen.sum(-1, dtype=torch.int32)
    indices = seen.int().argsort(dim=-1, descending=True, stable=True).int()
    none = torch.zeros_like(counts)  # blocks that a function has to mask
    mask = BlockMask.from_kv_blocks(none, indices, counts, indices, BLOCK_SIZE=size)
    compiled = torch.compile(flex_attention, dynamic=False)

    def run() -> Any:
        return compiled(query, key, value, block_mask=mask, kernel_options=FLEX_OPTIONS[size])

    with torch.no_grad():
        run()
    return run


def runs_of(size: int, densities: list[float], with_flex: bool) -> tuple[Runs, dict[str, int]]:
    """Return what takes turns, and the computed blocks of each density."""
    import torch

    generator = torch.Generator("cuda").manual_seed(19)
    shape = (1, ROWS, HEADS, DEPTH)
    arrays = [torch.randn(shape, generator=generator, device="cuda").bfloat16() for _ in range(3)]
    kernel: Any = fa4gen.load(SIZES[size])
    dense: Any = fa4gen.load(DENSE)
    runs: Runs = {DENSE: dense.prepare(*arrays)}
    blocks = {}
    for density in (1.0, *densities):
        seen = seen_blocks(size, density)
        blocks[str(density)] = int(seen.sum())
        call = kernel.prepare(*arrays, **given_blocks.from_mask(seen))
        runs[f"{density}"] = call
        runs[f"{density} listing"] = call.before
        if density < 1.0:
            runs[f"{density} making"] = lambda seen=seen: given_blocks.from_mask(seen)  # type: ignore[misc]
            if with_flex:
                runs[f"{density} flex_attention"] = flex(seen, size, arrays)
    return runs, blocks


def host_us(run: Callable[[], object], calls: int = 200) -> float:
    """Return the host's time for a call in microseconds, the median of calls one after the other.

    The GPU is waited for between calls, outside of the figure.
    """
    import torch

    taken = []
    for _ in range(calls):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        taken.append(1e6 * (time.perf_counter() - begin))
    return round(statistics.median(taken), 1)


def figures(size: int, times: dict[str, list[float]], blocks: dict[str, int]) -> dict[str, Any]:
    """Return the figures of each density, medians over rounds."""

    def median(of_round: Callable[[int], float]) -> float:
        return round(statistics.median(map(of_round, range(len(times[DENSE])))), 4)

    every = HEADS * (ROWS // size) ** 2
    found = {}
    for density, count in blocks.items():
        own = times[density]
        share = count / every

        def of(name: str, i: int, own: list[float] = own) -> float:
            return times[name][i] / own[i]

        one: dict[str, Any] = {
            "ms": median(lambda i, own=own: own[i]),  # type: ignore[misc]
            "tflops": round(4 * DEPTH * count * size**2 / statistics.median(own) / 1e9, 1),
            "of_dense": median(lambda i, s=share: s * of(DENSE, i)),  # type: ignore[misc]
            "of_all": median(lambda i, s=share: s * of(ALL, i)),  # type: ignore[misc]
            "listing": median(lambda i, d=density: of(f"{d} listing", i)),  # type: ignore[misc]
        }
        for more in ("making", "flex_attention"):
            if f"{density} {more}" in times:
                one[more] = median(lambda i, n=f"{density} {more}": of(n, i))  # type: ignore[misc]
        found[density] = one
    return found


def results(
    size: int,
    times: Mapping[str, Sequence[float]],
    found: Mapping[str, dict[str, Any]],
    blocks: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return a row for each density: its figures, and microseconds of each round by name.

    ``times`` are milliseconds, ``found`` what ``figures`` returns.
    """
    rows = []
    for density, one in found.items():
        named = {SIZES[size]: times[density], DENSE: times[DENSE]}
        if density != ALL:
            named["all blocks"] = times[ALL]
        for more in ("listing", "making", "flex_attention"):
            if f"{density} {more}" in times:
                named[more] = times[f"{density} {more}"]
        rounds = {name: [round(1e3 * ms, 3) for ms in taken] for name, taken in named.items()}
        row = {"problem": f"{size} x {size}, density {density}", "kernel": SIZES[size]}
        rows.append({**row, "blocks": blocks[density], **one, "rounds_us": rounds})
    return rows


def main() -> None:
    """Measure both sizes of blocks."""
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--flex", action="store_true")
    parser.add_argument("--densities", default="0.5,0.25,0.1")
    options = parser.parse_args()
    densities = [float(one) for one in options.densities.split(",")]
    date = datetime.now(UTC).date().isoformat()
    out: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "date": date, "results": []}
    stream = torch.cuda.current_stream().cuda_stream
    for size in SIZES:
        runs, blocks = runs_of(size, densities, options.flex)
        timings = time_in_turn(runs, PROTOCOL, rounds=options.rounds, stream=stream)
        times = {name: [one.median_ms for one in taken] for name, taken in timings.items()}
        found = figures(size, times, blocks)
        for density, one in found.items():
            if "making" in one:
                one["making_host_us"] = host_us(runs[f"{density} making"])
            print(f"{size} x {size}, {density}: {one}", flush=True)
        out["results"] += results(size, times, found, blocks)
        options.out.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
