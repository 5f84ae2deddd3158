"""Times products with scales of blocks on a GPU, and compares them with cuBLAS and without scales.

    python benchmarks/scaled_products.py OUT.jsonl [--shape MxNxK ...] [--drawn COUNT --seed SEED]

Needs PyTorch. Each shape's tiles take turns with cuBLAS's product with the same scales, its product
with one scale for a tensor, and fa4gen's without scales; every call is timed alone after 512 MB
were written (cold L2), and the median of the rounds counts. Values differ in size from block to
block; outputs are compared with float64 first, and a tile that is wrong ends the program. Scales of
A are row by row, as a quantising kernel writes them, and once transposed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as functional

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import fa4gen  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Run = Callable[[], object]

LAYERS = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
"""n and k of the layers of a large model."""
ROWS = (64, 128, 1024, 4096)
FEW = 128
BLOCK = 128
PLAIN = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3"}
SCALED = {**PLAIN, "scales": {"a": "1x128", "b": "128x128"}}
FEW_TILES: dict[str, dict[str, object]] = {
    f"{rows}x{columns}{' split' * (split == 2)}": {
        "BM": rows, "BN": columns, "split_k": split, "evict_first": "b"
    }
    for rows in (64, 128) for columns in (32, 64, 128) for split in (1, 2)
}  # fmt: skip
MANY_TILES: dict[str, dict[str, object]] = {
    "128x128": {},
    "128x160": {"BN": 160},
    "256x128": {"BM": 256},
    "192x128": {"BM": 192, "BN": 128, "num_consumer_warpgroups": 3},
}
FLUSHED_BYTES = 512 << 20
COMPARED_ROWS = 96
WRONG = 2.5e-3
"""The relative error of a bf16 output is 1.7e-3."""
ROUNDS = 11


@dataclass(frozen=True)
class Operands:
    """A product's operands, quantised, and some rows of the result in float64."""

    a: Any
    b: Any
    scale_a: Any
    scale_b: Any
    rows: Any
    expected: Any

    @property
    def m(self) -> int:
        """Rows of A."""
        return int(self.a.shape[0])


def values(rows: int, k: int) -> Any:
    """Draw random numbers; each block has a magnitude of its own."""
    size = torch.randint(-3, 4, (rows, k // BLOCK), device="cuda").float()
    return torch.randn(rows, k, device="cuda") * torch.exp2(size).repeat_interleave(BLOCK, 1)


def quantised(x: Any, rows: int) -> tuple[Any, Any]:
    """Return e4m3 elements and the scales of blocks of ``rows`` x 128."""
    count, k = x.shape
    padded = functional.pad(x, (0, 0, 0, -count % rows)).view(-1, rows, k // BLOCK, BLOCK)
    scales = padded.abs().amax((1, 3)).clamp(1e-9) / 448
    return (x / spread(scales, rows, count)).to(torch.float8_e4m3fn), scales


def spread(scales: Any, rows: int, count: int) -> Any:
    """Return the scale of each element."""
    return scales.repeat_interleave(rows, 0)[:count].repeat_interleave(BLOCK, 1)


def draw(m: int, n: int, k: int) -> Operands:
    """Draw a product."""
    a, scale_a = quantised(values(m, k), 1)
    b, scale_b = quantised(values(n, k), BLOCK)
    rows = torch.unique(torch.cat([torch.arange(min(m, COMPARED_ROWS)), torch.arange(m)[-96:]]))
    rows = rows.cuda()
    exact = a[rows].double() * spread(scale_a[rows], 1, len(rows)).double()
    expected = exact @ (b.double() * spread(scale_b, BLOCK, n).double()).T
    return Operands(a, b, scale_a, scale_b, rows, expected)


def ours(operands: Operands, config: Mapping[str, object], out: Any, scale_a: Any = None) -> Run:
    """Return a launch of a kernel of fa4gen's, its output compared if it has scales."""
    scales = {}
    if "scales" in config:
        of_a = operands.scale_a if scale_a is None else scale_a
        scales = {"scale_a": of_a, "scale_b": operands.scale_b.t()}
    out.fill_(float("nan"))
    kernel = fa4gen.load(config)
    bits = operands.a.view(torch.uint8), operands.b.view(torch.uint8).t()
    run: Run = kernel.prepare(*bits, out=out, **scales)
    run()
    if scales:
        compare(operands, out, str(config))
    return run


def compare(operands: Operands, out: Any, word: str) -> None:
    """Compare some rows with float64."""
    error = (out[operands.rows].double() - operands.expected).norm() / operands.expected.norm()
    if not float(error) < WRONG:
        raise SystemExit(f"{word}: a relative error of {float(error):.2e}")


def peers(operands: Operands) -> Iterator[tuple[str, Run]]:
    """Yield cuBLAS's products: with the scales of blocks, where it takes them, and with one."""
    a, b = operands.a, operands.b.t()
    one = torch.ones((), device="cuda")
    kind = functional.ScalingType
    by_row = operands.scale_a.t().contiguous().t()
    padded = functional.pad(operands.scale_b, (0, -operands.scale_b.shape[1] % 4)).t()
    forms = by_row, kind.BlockWise1x128, padded, kind.BlockWise128x128
    yield "cublas", lambda: functional.scaled_mm(a, b, *forms, output_dtype=torch.bfloat16)
    yield (
        "cublas one scale",
        lambda: torch._scaled_mm(
            a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        ),
    )


def times(runs: Mapping[str, Run]) -> dict[str, float]:
    """Return the median time of each in microseconds; they take turns."""
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for number in range(ROUNDS):
        for name, run in runs.items():
            flushed.fill_(number)
            pair = tuple(torch.cuda.Event(enable_timing=True) for _ in range(2))
            pair[0].record()
            run()
            pair[1].record()
            events[name].append(pair)  # type: ignore[arg-type]
    torch.cuda.synchronize()
    return {
        name: statistics.median(1e3 * begin.elapsed_time(end) for begin, end in pairs)
        for name, pairs in events.items()
    }


def measured(m: int, n: int, k: int) -> dict[str, Any]:
    """Return a line of results of one shape."""
    operands = draw(m, n, k)
    out = torch.empty((m, n), device="cuda", dtype=torch.bfloat16)
    tiles = FEW_TILES if m <= FEW else MANY_TILES
    runs = {name: ours(operands, {**SCALED, **tile}, out) for name, tile in tiles.items()}
    across = functional.pad(operands.scale_a, (0, 0, 0, -m % 4)).t().contiguous()[:, :m].t()
    first = next(iter(tiles))
    others = {
        f"{first} transposed scales": ours(operands, {**SCALED, **tiles[first]}, out, across),
        "without scales": ours(operands, PLAIN, out),
        **dict(peers(operands)),
    }
    found = times({**runs, **others})
    best = min(runs, key=found.__getitem__)
    return {
        "problem": f"{m}x{n}x{k}",
        "kernel": best,
        "chip": torch.cuda.get_device_name(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "times_us": [round(found[best], 3)],
        "peers_us": {name: round(found[name], 3) for name in others},
        "details": {"tiles_us": {name: round(found[name], 3) for name in runs}},
    }


def commit() -> str:
    """Return the commit of the checkout, "" outside of one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


@dataclass(frozen=True)
class Shape:
    """The extents of a product."""

    m: int
    n: int
    k: int


def drawn(count: int, seed: int) -> Iterator[Shape]:
    """Yield shapes of 1 to 4096 rows; k in whole blocks."""
    rng = random.Random(seed)
    for _ in range(count):
        m = round(2 ** rng.uniform(0, 12))
        n, k = 16 * round(2 ** rng.uniform(5, 11)), BLOCK * round(2 ** rng.uniform(2, 7))
        yield Shape(m, n, k)


def main() -> None:
    """Measure, and write a line of JSON a shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", action="append", default=[], help="MxNxK; repeatable")
    parser.add_argument("--drawn", type=int, default=0, help="shapes to draw, in place of layers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    shapes = [Shape(*map(int, text.split("x"))) for text in options.shape]
    shapes += drawn(options.drawn, options.seed)
    shapes = shapes or [Shape(m, n, k) for n, k in LAYERS for m in ROWS]
    ratios = []
    with options.out.open("a", encoding="utf-8") as file:
        for shape in shapes:
            line = measured(**asdict(shape))
            file.write(json.dumps(line) + "\n")
            file.flush()
            ratios.append(line["peers_us"]["cublas"] / line["times_us"][0])
            print(f"{line['problem']:>18} {line['kernel']:14} {ratios[-1]:.3f} of cuBLAS's speed")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
