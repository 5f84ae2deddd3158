"""The emulator's speed: time per block of attention kernels, of matrix products, and memory.

python benchmarks/emulator.py [--json FILE] [--rounds N]

The kernels are shipped ones, small ones of tests/emulator/mutations, and one of Triton's where
Triton is installed; neither a GPU nor a CUDA toolkit is needed. Times are CPU times, the best of
the rounds, on one core; what verify takes is wall time. The exit status is 1 where one is above its
bar.
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
    sys.path.insert(0, str(ROOT))

DEPTH = 4096  # of the matrix products
BLOCKS = (2, 6)  # of keys: what a block costs is the difference
MEMORY_CTAS = 8


@dataclass(frozen=True)
class Result:
    """One figure; ``bar`` is its upper limit, if it has one."""

    name: str
    value: float
    unit: str
    bar: float | None = None

    @property
    def above(self) -> bool:
        """Whether it is above its limit."""
        return self.bar is not None and self.value > self.bar


@dataclass(frozen=True)
class Run:
    """The best time of a launch, in seconds of CPU, and how many instructions warps executed."""

    seconds: float
    instructions: float


@dataclass(frozen=True)
class Shipped:
    """A shipped kernel of which a block of keys is measured; bars are milliseconds."""

    config: str
    bar: float | None = None
    bar_with_checks: float | None = None


SHIPPED = (
    Shipped("attention/sm_100a/fa4_d128_dense_bf16", 30.0, 60.0),
    Shipped("attention/sm_100a/depth512_dense_bf16"),
    Shipped("attention/sm_90a/d128_dense_bf16"),
    Shipped("attention/sm_90a/d512_dense_bf16"),
)
VERIFIED = "attention/sm_100a/fa4_d128_dense_bf16"
VERIFY_BAR = 12.0


def best_run(name: str, make: Any, checks: bool, rounds: int, **options: Any) -> Run:
    """Launch a kernel on fresh data several times."""
    from fa4gen.emulator import Limits, Program
    from tests.emulator.mutations.kernels import KERNELS, compiled

    kernel = KERNELS[name]
    program = Program(compiled(kernel.entry, kernel.source, kernel.arch))
    best = Run(float("inf"), 0)
    for round_ in range(rounds + 1):  # the first also translates the kernel
        data = make(round_)
        begin = time.process_time()
        report = kernel.launch(program, data, checks=checks, limits=Limits(), **options)
        seconds = time.process_time() - begin
        assert report.verdict.value == "clean", str(report)
        assert kernel.is_right(data)
        if round_ and seconds < best.seconds:
            best = Run(seconds, report.instructions / 32)
    return best


class Launcher:
    """A program that verify launches, with or without checks; keeps the last report."""

    def __init__(self, program: Any, checks: bool) -> None:
        self.program, self.checks = program, checks
        self.report: Any = None

    def launch(self, *arguments: Any, **options: Any) -> Any:
        """Launch as requested, except for the checks."""
        options["checks"] = self.checks
        self.report = self.program.launch(*arguments, **options)
        return self.report


def shipped_results(rounds: int) -> list[Result]:
    """Cost of a block of keys in one CTA of shipped kernels."""
    from fa4gen.config.find import find_configs
    from fa4gen.emulator import Program
    from fa4gen.verify.build import build_kernel
    from fa4gen.verify.cases import Case
    from fa4gen.verify.emulator import EmulatedKernel
    from fa4gen.verify.family import family_of

    results = []
    for one in SHIPPED:
        built = build_kernel(str(find_configs([one.config])[0]))
        assert built.compiled is not None, built.problems
        plan: Any = built.plan
        program: Any = Program(built.compiled.ptx)

        def run(blocks: int, checks: bool, plan: Any = plan, program: Any = program) -> float:
            case = Case("block", 1, 1, 1, plan.BM, blocks * plan.BN)
            memory = family_of(plan).draw(case, 0).memory
            best = float("inf")
            for round_ in range(rounds + 1):  # the first also translates the kernel
                launcher: Any = Launcher(program, checks)
                kernel = EmulatedKernel(plan, launcher)
                begin = time.process_time()
                kernel.run(memory)
                seconds = time.process_time() - begin
                assert launcher.report.verdict.value == "clean", str(launcher.report)
                best = min(best, seconds) if round_ else best
            return best

        for checks, bar in ((False, one.bar), (True, one.bar_with_checks)):
            few, many = (run(blocks, checks) for blocks in BLOCKS)
            each = (many - few) / (BLOCKS[1] - BLOCKS[0]) * 1e3
            name = f"{plan.name}, block of {plan.BM} x {plan.BN}, {_with(checks)} checks"
            results.append(Result(name, each, "ms", bar))
    return results


def triton_results(rounds: int) -> list[Result]:
    """Cost of a block of keys of Triton's attention; nothing where Triton is not installed."""
    try:
        from tests.emulator.triton import compiling, kernels_products
    except ImportError:
        return []
    import numpy as np

    height, width, depth, scale = 128, 64, 128, 128**-0.5
    results = []
    for checks in (False, True):
        best = {blocks: float("inf") for blocks in BLOCKS}
        for round_ in range(rounds + 1):
            for blocks in BLOCKS:
                random = np.random.default_rng(round_)
                columns = blocks * width
                query, key, value = (
                    random.standard_normal((1, rows, depth)).astype(np.float16)
                    for rows in (height, columns, columns)
                )
                out, lse = np.zeros_like(query), np.zeros((1, height), np.float32)
                arguments = (query, key, value, out, lse, height, columns, scale)
                begin = time.process_time()
                compiling.launch(
                    kernels_products.attention, 100, (1, 1), arguments, warps=4, checks=checks,
                    CAUSAL=False, D=depth, HEIGHT=height, WIDTH=width,
                )  # fmt: skip
                seconds = time.process_time() - begin
                best[blocks] = min(best[blocks], seconds) if round_ else best[blocks]
        each = (best[BLOCKS[1]] - best[BLOCKS[0]]) / (BLOCKS[1] - BLOCKS[0]) * 1e3
        name = f"Triton's attention, block of {height} x {width}, {_with(checks)} checks"
        results.append(Result(name, each, "ms"))
    return results


def verify_result() -> Result:
    """How long verify takes for one kernel for Blackwell, by two processes."""
    config = VERIFIED
    command = [sys.executable, "-m", "fa4gen", "verify", config, "-j", "2"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    name = f"fa4gen verify {VERIFIED.rpartition('/')[2]}, two processes"
    return Result(name, time.perf_counter() - begin, "s", VERIFY_BAR)


def _with(checks: bool) -> str:
    return "with" if checks else "without"


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
        with_checks = _with(checks)
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
            with_checks = _with(checks)
            results.append(
                Result(f"product 128x128x{DEPTH}, {words}, {with_checks} checks", run.seconds,
                       "s", 1.0)
            )  # fmt: skip
    return results


def _random(product_data: Any, depth: int) -> Any:
    """Make data whose products stay within the tolerance of the kernels."""

    def make(seed: int) -> Any:
        data = product_data(128, 128, depth)(seed)
        for name in "ab":
            data[name] = (data[name] / 8).astype(data[name].dtype)
        return data

    return make


def peak_memory() -> float:
    """Peak memory of a process that runs 8 resident CTAs of attention, in GB."""
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
    """Measure, print a table, and write the figures if requested."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="times to measure: 5")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_own_peak()
        return 0
    results = [
        *shipped_results(options.rounds),
        *triton_results(options.rounds),
        verify_result(),
        *attention_results(options.rounds),
        *product_results(options.rounds),
        Result(f"peak memory, {MEMORY_CTAS} CTAs of attention", peak_memory(), "GB", 1.0),
    ]
    width = max(len(result.name) for result in results)
    for result in results:
        bar = "" if result.bar is None else f"  (bar {result.bar:g})"
        if result.above:
            bar += ": too much"
        print(f"{result.name:{width}}  {result.value:8.3f} {result.unit}{bar}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 1 if any(result.above for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
