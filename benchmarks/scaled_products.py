"""Times products with scales of blocks on a GPU, and compares them with cuBLAS and without scales.

    python benchmarks/scaled_products.py OUT.jsonl [--shape MxNxK ...] [--drawn COUNT --seed SEED]
                                         [--tile KEY=VALUE,... ...]

Needs PyTorch. Operands, checks, peers and timer are those of ``fa4gen bench``. Each shape's tiles
take turns with cuBLAS's product with the same scales, its product with one scale for a tensor, and
fa4gen's without scales. Scales of A are row by row, as a quantising kernel writes them, and once
column by column.
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

import yaml

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fa4gen.bench.gemm_peers import find_gemm_peers  # noqa: E402
from fa4gen.bench.gemm_work import GemmWork  # noqa: E402
from fa4gen.bench.gemm_workload import GemmWorkload, parse_sizes  # noqa: E402
from fa4gen.bench.gpu_arrays import RandomNumbers  # noqa: E402
from fa4gen.bench.run import Bench, BenchOptions  # noqa: E402
from fa4gen.callables import compile_config  # noqa: E402
from fa4gen.config.load import load_mapping  # noqa: E402
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.bench.run import Kernel

LAYERS = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
"""n and k of the layers of a large model."""
ROWS = (64, 128, 1024, 4096)
FEW = 128
BLOCK = 128
PLAIN = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3"}
SCALED = {**PLAIN, "scales": {"a": "1x128", "b": "128x128"}}
FEW_TILES: Mapping[str, Mapping[str, object]] = {
    f"{rows}x{columns}{' split' * (split == 2)}": {
        "BM": rows, "BN": columns, "split_k": split, "evict_first": "b"
    }
    for rows in (64, 128) for columns in (32, 64, 128) for split in (1, 2)
} | {
    f"{rows}x{columns} swapped{' split' * (split == 2)}": {
        "swap_operands": True, "BM": rows, "BN": columns, "BK": 128, "split_k": split
    }
    for rows, columns in ((64, 64), (64, 128), (32, 128)) for split in (1, 2)
}  # fmt: skip
MANY_TILES: Mapping[str, Mapping[str, object]] = {
    "128x128": {},
    "128x160": {"BN": 160},
    "256x128": {"BM": 256},
    "192x128": {"BM": 192, "BN": 128, "num_consumer_warpgroups": 3},
}
PROTOCOL = TimingProtocol(warmup_s=0.002, budget_s=0.0, min_samples=11)
ROUNDS = 3


def compiled(config: Mapping[str, object], name: str) -> Kernel:
    """Return a kernel of fa4gen's with its plan."""
    words = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    chosen = compile_config(load_mapping(config, f"tile_{words}"))
    return chosen.plan, chosen.kernel


def measured(size: GemmWorkload, tiles: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Return a line of results of one shape."""
    bench = Bench(BenchOptions((size,), family="gemm"), find_gemm_peers().found)
    scaled = {name: compiled({**SCALED, **tile}, name) for name, tile in tiles.items()}
    without, first = compiled(PLAIN, "without"), next(iter(scaled))
    with_scales = bench.prepare(list(scaled.values()), size)
    with_one = bench.prepare([without], size)
    left_out = {**with_scales[2], **with_one[2]}
    for name, why in left_out.items():
        print(f"{size.at}: {name} left out: {why}")
    if len(with_scales[0]) < len(scaled) or not with_one[0]:
        raise SystemExit("a kernel of fa4gen's is wrong")
    runs = {name: with_scales[0][plan.name] for name, (plan, _) in scaled.items()}
    by_columns = GemmWork(scaled[first][0], size, RandomNumbers(0), scales_along_m=True)
    others = {
        f"{first} transposed scales": by_columns.launch(*scaled[first])[0],
        "without scales": with_one[0][without[0].name],
        **with_scales[1],
        **{f"{peer} one scale": run for peer, run in with_one[1].items()},
    }
    taken = time_in_turn({**runs, **others}, PROTOCOL, rounds=ROUNDS)
    found = {
        name: round(1e3 * statistics.median(one.median_ms for one in timings), 3)
        for name, timings in taken.items()
    }
    best = min(runs, key=found.__getitem__)
    return {
        "problem": size.at,
        "kernel": best,
        "chip": require_device("sm_90a").name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "times_us": [found[best]],
        "peers_us": {name: found[name] for name in others},
        "details": {"tiles_us": {name: found[name] for name in runs}},
    }


def commit() -> str:
    """Return the commit of the checkout, "" outside of one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def drawn(count: int, seed: int) -> Iterator[GemmWorkload]:
    """Yield shapes of 1 to 4096 rows; k in whole blocks."""
    rng = random.Random(seed)
    for _ in range(count):
        m = round(2 ** rng.uniform(0, 12))
        n, k = 16 * round(2 ** rng.uniform(5, 11)), BLOCK * round(2 ** rng.uniform(2, 7))
        yield GemmWorkload(m, n, k)


def main() -> None:
    """Measure, and write a line of JSON a shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", action="append", default=[], help="MxNxK; repeatable")
    parser.add_argument("--drawn", type=int, default=0, help="shapes to draw, in place of layers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tile", action="append", default=[], help="KEY=VALUE,...; repeatable")
    options = parser.parse_args()
    shapes = [size for text in options.shape for size in parse_sizes(text)]
    shapes += drawn(options.drawn, options.seed)
    shapes = shapes or [GemmWorkload(m, n, k) for n, k in LAYERS for m in ROWS]
    given = {
        text: yaml.safe_load(text.replace("=", ": ").replace(",", "\n")) for text in options.tile
    }
    ratios = []
    with options.out.open("a", encoding="utf-8") as file:
        for size in shapes:
            line = measured(size, given or (FEW_TILES if size.m <= FEW else MANY_TILES))
            file.write(json.dumps(line) + "\n")
            file.flush()
            ratio = line["peers_us"].get("cublas", math.nan) / line["times_us"][0]
            ratios += [ratio] if ratio > 0 else []
            print(f"{line['problem']:>18} {line['kernel']:14} {ratio:.3f} of cuBLAS's speed")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean {mean:.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
