"""What the emulator costs: time per block of an attention kernel, of matrix products, and memory.

python benchmarks/emulator.py [--json FILE] [--rounds N]

The kernels are those of tests/emulator/mutations, compiled by NVRTC; neither a GPU nor a CUDA
toolkit is needed. Times are the best of the rounds, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):  # one core; NumPy must not be loaded yet
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

DEPTH = 4096  # of the matrix products
BLOCKS = (2, 6)  # of keys: what a block costs is the difference
MEMORY_CTAS = 8


@dataclass(frozen=True)
class Result:
    """One figure; ``bar`` is what it has to stay below, if there is one."""

    name: str
    value: float
    unit: str
    bar: float | None = None


@dataclass(frozen=True)
class Run:
    """The best time of a launch, in seconds, and how many instructions warps executed."""

    seconds: float
    instructions: float


def best_run(name: str, make: Any, checks: bool, rounds: int, **options: Any) -> Run:
    """Launch a kernel on fresh data several times."""
    from fa4gen.emulator import Limits, Program
    from tests.emulator.mutations.kernels import KERNELS, compiled

    kernel = KERNELS[name]
    program = Program(compiled(kernel.entry, kernel.source, kernel.arch))
    best = Run(float("inf"), 0)
    for round_ in range(rounds + 1):  # the first also translates the kernel
        data = make(round_)
        begin = time.perf_counter()
        report = kernel.launch(program, data, checks=checks, limits=Limits(), **options)
        seconds = time.perf_counter() - begin
        assert report.verdict.value == "clean", str(report)
        assert kernel.is_right(data)
        if round_ and seconds < best.seconds:
            best = Run(seconds, report.instructions / 32)
    return best


def attention_results(rounds: int) -> list[Result]:
    """Cost of a block of 128 keys for a CTA with 256 queries."""
    from ml_dtypes import bfloat16

    from tests.emulator.mutations.kernels import attention_data

    results = []
    for checks, bar in ((False, 20.0), (True, 60.0)):
        few, many = (
            best_run(
                "attention_sm100",
                attention_data(256, 128 * blocks, 128, bfloat16, 4),
                checks,
                rounds,
            )
            for blocks in BLOCKS
        )
        seconds, count = many.seconds - few.seconds, BLOCKS[1] - BLOCKS[0]
        rate = (many.instructions - few.instructions) / seconds / 1e6
        with_checks = "with" if checks else "without"
        results += [
            Result(f"attention, block of 128 keys, {with_checks} checks", seconds / count * 1e3,
                   "ms", bar),
            Result(f"attention, warp-instructions, {with_checks} checks", rate, "million/s"),
        ]  # fmt: skip
    return results


def product_results(rounds: int) -> list[Result]:
    """128 x 128 x 4096 as two tiles of one CTA."""
    from tests.emulator.mutations.kernels import product_data

    results = []
    for name, words in (("gemm_sm90", "wgmma"), ("gemm_sm100", "tcgen05")):
        for checks in (False, True):
            run = best_run(name, _random(product_data, DEPTH), checks, rounds)
            with_checks = "with" if checks else "without"
            results.append(
                Result(f"product 128x128x{DEPTH}, {words}, {with_checks} checks", run.seconds,
                       "s", 1.0)
            )  # fmt: skip
    return results


def _random(product_data: Any, depth: int) -> Any:
    """Make data whose products do not outgrow the tolerance of the kernels."""

    def make(seed: int) -> Any:
        data = product_data(128, 128, depth)(seed)
        for name in "ab":
            data[name] = (data[name] / 8).astype(data[name].dtype)
        return data

    return make


def peak_memory() -> float:
    """Peak memory of a process that runs 8 CTAs of attention side by side, in GB."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak"], check=True, capture_output=True, text=True
    )
    return float(done.stdout) / 1e6


def print_own_peak() -> None:
    """Run the launch whose memory is measured, and print this process' peak in kB."""
    from dataclasses import replace

    from ml_dtypes import bfloat16

    from fa4gen.emulator import Limits, Program
    from tests.emulator.mutations.kernels import KERNELS, attention_data, compiled

    kernel = replace(KERNELS["attention_sm100"], grid=MEMORY_CTAS)
    program = Program(compiled(kernel.entry, kernel.source, kernel.arch))
    data = attention_data(256 * MEMORY_CTAS, 256, 128, bfloat16, 4)(0)
    report = kernel.launch(program, data, limits=Limits(), resident_clusters=MEMORY_CTAS)
    assert report.verdict.value == "clean", str(report)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> int:
    """Measure, print a table, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="times to measure: 5")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_own_peak()
        return 0
    results = [
        *attention_results(options.rounds),
        *product_results(options.rounds),
        Result(f"peak memory, {MEMORY_CTAS} CTAs of attention", peak_memory(), "GB", 1.0),
    ]
    width = max(len(result.name) for result in results)
    for result in results:
        bar = "" if result.bar is None else f"  (bar {result.bar:g})"
        print(f"{result.name:{width}}  {result.value:8.3f} {result.unit}{bar}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
