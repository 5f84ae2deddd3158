"""Times products of few rows beside cuBLAS and the read floor: the weights only stream.

    python benchmarks/few_rows.py OUT.jsonl [--candidates 2] [--rounds 5] [--seconds 60]

The floor is what `fa4gen bench` calls so, a kernel that only reads, here as many bytes as the
weights have. Of each problem the kernels are the one that the chip's table names (`--table-of`
another chip's), and the first that the model predicts. Kernels are compiled before anything is
timed, and each is compared with float64 and with cuBLAS. A line for each problem: medians of all
rounds, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from gemm_sets import FEW, LAYERS

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.bench.machine import describe_versions
from fa4gen.bench.read_floor import ReadFloor
from fa4gen.callables import compile_config
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.timing import TimingProtocol, time_in_turn
from fa4gen.tune.candidates import find_candidates, rank
from fa4gen.tune.committed import config_for, find_table
from fa4gen.tune.family import family_called
from fa4gen.tune.model.chips import chip_for
from fa4gen.tune.search.run import named_candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.tune.candidates import Candidate

Extents = tuple[int, int, int]
BASE = "gemm_bf16_sm90"
WEIGHT_BYTES = 2
PROTOCOL = TimingProtocol(warmup_s=0.002, budget_s=0.008, min_samples=8, max_samples=40)


def main() -> None:
    """Compile, then measure until all is done or time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--candidates", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--table-of", default="", metavar="CHIP")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    chip = require_device("sm_90a").name
    problems = [(m, n, k) for n, k in LAYERS for m in FEW]
    chosen = _kernels(problems, chip, arguments.table_of or chip, arguments.candidates)
    every = {one.name: one for ones in chosen.values() for one in ones}
    for one in every.values():
        compile_config(one.loaded, one.plan)  # into the cache
    print(f"{chip}: {len(every)} kernels compiled", flush=True)
    family = family_called("gemm")
    bench, floor = family.bench(), ReadFloor()
    for number, (extents, ones) in enumerate(chosen.items()):
        if time.monotonic() > end:
            print(f"time is up: {len(chosen) - number} problems are left", flush=True)
            return
        record = _measure(extents, ones, bench, floor, arguments.rounds)
        record = {"chip": chip, **record, "versions": describe_versions()}
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        best = min(record["kernels"].values())
        ratio, share = record["cublas"] / best, record["floor"] / best
        print(f"{record['problem']}: {best} us, {ratio:.3f} of cuBLAS, {share:.3f} of the floor")


def _kernels(
    problems: Sequence[Extents], chip: str, table_of: str, count: int
) -> dict[Extents, list[Candidate]]:
    """Return for each problem the first kernels of the model, and the table's."""
    base = load_config(find_configs([BASE])[0])
    family = family_called("gemm")
    candidates, table = find_candidates(base), find_table(base, table_of)
    chosen = {}
    for extents in problems:
        word = "x".join(map(str, extents))
        ranked = rank(candidates, family.parse_problem(word), chip_for("sm_90a", chip))
        found = [one.candidate for one in ranked[:count]]
        path = None if table is None else config_for(table, word)
        if path is not None:
            named = named_candidate(str(path))
            if not any(named.is_same(one) for one in found):
                found.append(named)
        chosen[extents] = found
    return chosen


def _measure(
    extents: Extents,
    ones: list[Candidate],
    bench: Any,
    floor: ReadFloor,
    rounds: int,
) -> dict[str, Any]:
    """Return the medians of a problem."""
    m, n, k = extents
    kernels = [(one.plan, compile_config(one.loaded, one.plan)) for one in ones]
    ours, peers, left_out = bench.prepare(kernels, GemmWorkload(m, n, k, 1))
    memory = load_cupy().zeros(n * k * WEIGHT_BYTES, "uint8")
    floors = floor.launches("sm_90a", memory, memory.nbytes)
    runs: dict[str, Callable[[], Any]] = {**ours, **peers, **floors}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds):
        names = Random(turn).sample(list(runs), len(runs))
        timings = time_in_turn({name: runs[name] for name in names}, PROTOCOL, rounds=1)
        for name, taken in timings.items():
            times[name].append(round(1000 * taken[0].median_ms, 3))
    figures = {name: round(median(taken), 3) for name, taken in times.items()}
    return {
        "problem": f"{m}x{n}x{k}",
        "floor": min(figures[name] for name in floors),
        "cublas": min(figures[name] for name in peers),
        "kernels": {name: figures[name] for name in ours},
        "left_out": left_out,
        "rounds_us": times,
    }


if __name__ == "__main__":
    main()
