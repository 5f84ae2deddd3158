"""The emulator's speed: time per block of shipped kernels and of one of Triton's, and memory.

python benchmarks/emulator.py [--json FILE] [--rounds N]

A block is one of keys, or of a matrix product one along k, of one CTA. Triton's kernel is measured
where Triton is installed; neither a GPU nor a CUDA toolkit is needed. Times are CPU times, the best
of the rounds, on one core; what verify takes is wall time, and its memory that of the largest
process. The exit status is 1 where one is above its bar.
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

for library in ("OMP", "OPENBLAS", "MKL"):  # one core; NumPy must not be loaded yet
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

BLOCKS = (2, 6)
"""What a block costs is the difference."""


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


VERIFIED = "fa4_d128_dense_bf16"
VERIFY_BAR, MEMORY_BAR = 12.0, 1.0
SHIPPED: dict[str, tuple[float | None, float | None]] = {
    VERIFIED: (30.0, 60.0),
    "depth512_dense_bf16": (None, None),
    "d128_dense_bf16": (None, None),
    "d512_dense_bf16": (None, None),
    "gemm_bf16": (15.0, 15.0),
    "gemm_bf16_sm90": (15.0, 15.0),
}
"""Bars of a block without and with checks, in milliseconds."""


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


def block_result(
    name: str, run: Callable[[int, int], None], rounds: int, bar: float | None = None
) -> Result:
    """Measure the cost of a block; ``run`` takes the number of blocks and the data of a round."""
    best = dict.fromkeys(BLOCKS, float("inf"))
    for round_ in range(rounds + 1):  # the first also translates the kernel
        for blocks in BLOCKS:
            begin = time.process_time()
            run(blocks, round_)
            seconds = time.process_time() - begin
            best[blocks] = min(best[blocks], seconds) if round_ else best[blocks]
    few, many = (best[blocks] for blocks in BLOCKS)
    return Result(name, (many - few) / (BLOCKS[1] - BLOCKS[0]) * 1e3, "ms", bar)


def shipped_results(rounds: int) -> Iterator[Result]:
    """Yield the cost of a block in one CTA of shipped kernels."""
    from fa4gen.config.find import find_configs
    from fa4gen.emulator import Program
    from fa4gen.verify.build import build_kernel
    from fa4gen.verify.emulator import EmulatedKernel
    from fa4gen.verify.family import family_of

    for config, bars in SHIPPED.items():
        built = build_kernel(str(find_configs([config])[0]))
        assert built.compiled is not None, built.problems
        plan: Any = built.plan
        program: Any = Program(built.compiled.ptx)
        memory = {
            blocks: family_of(plan).draw(block_case(plan, blocks), 0).memory for blocks in BLOCKS
        }
        for checks, bar in zip((False, True), bars, strict=True):
            launcher: Any = Launcher(program, checks)
            kernel = EmulatedKernel(plan, launcher)

            def run(
                blocks: int,
                round_: int,
                kernel: Any = kernel,
                launcher: Any = launcher,
                memory: Any = memory,
            ) -> None:
                del round_
                kernel.run(memory[blocks])
                assert launcher.report.verdict.value == "clean", str(launcher.report)

            name = f"{config}, block of {plan.BM} x {plan.BN}, {_with(checks)} checks"
            yield block_result(name, run, rounds, bar)


def block_case(plan: Any, blocks: int) -> Any:
    """Return a problem of one tile with this number of blocks."""
    from fa4gen.verify.cases import Case
    from fa4gen.verify.gemm.case import GemmCase

    if plan.kernel == "gemm":
        return GemmCase("block", plan.BM, plan.BN, blocks * plan.BK)
    return Case("block", 1, 1, 1, plan.BM, blocks * plan.BN)


def triton_results(rounds: int) -> Iterator[Result]:
    """Yield the cost of a block of Triton's attention; nothing where Triton is not installed."""
    try:
        from tests.emulator.triton import compiling, kernels_products
    except ImportError:
        return
    import numpy as np

    height, width, depth, scale = 128, 64, 128, 128**-0.5
    for checks in (False, True):

        def run(blocks: int, round_: int, checks: bool = checks) -> None:
            random = np.random.default_rng(round_)
            columns = blocks * width
            query, key, value = (
                random.standard_normal((1, rows, depth)).astype(np.float16)
                for rows in (height, columns, columns)
            )
            out, lse = np.zeros_like(query), np.zeros((1, height), np.float32)
            arguments = (query, key, value, out, lse, height, columns, scale)
            compiling.launch(
                kernels_products.attention, 100, (1, 1), arguments, warps=4, checks=checks,
                CAUSAL=False, D=depth, HEIGHT=height, WIDTH=width,
            )  # fmt: skip

        name = f"Triton's attention, block of {height} x {width}, {_with(checks)} checks"
        yield block_result(name, run, rounds)


def verify_results() -> Iterator[Result]:
    """Yield how long verify takes for one kernel by two processes, and the memory of the larger."""
    command = [sys.executable, "-m", "fa4gen", "verify", VERIFIED, "-j", "2"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    name = f"fa4gen verify {VERIFIED}, two processes"
    yield Result(name, time.perf_counter() - begin, "s", VERIFY_BAR)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    yield Result(f"{name}, peak memory of one", peak, "GB", MEMORY_BAR)


def _with(checks: bool) -> str:
    return "with" if checks else "without"


def main() -> int:
    """Measure, print each figure, and write them if requested."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="times to measure: 5")
    options = parser.parse_args()
    results = []
    makers = (shipped_results(options.rounds), triton_results(options.rounds), verify_results())
    for maker in makers:
        for result in maker:
            results.append(result)
            bar = "" if result.bar is None else f"  (bar {result.bar:g})"
            bar += ": too much" if result.above else ""
            print(f"{result.value:8.3f} {result.unit}  {result.name}{bar}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 1 if any(result.above for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
