"""Mutants of generated kernels: verify must refuse them on the GPU.

That each of them can still be put in, and compiles, is tested without one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fa4gen.verify.gpu import GpuBackend
from fa4gen.verify.run import VerifyOptions, verify_kernel
from tests.kernels.source_mutation import Kernel, shipped

# name: config, what is replaced, by what, cases that show it
MUTANTS = {
    "mask_off_by_one": ("d128_causal_bf16", r"column > last\[", "column > 1 + last[", "odd/333"),
    "unmasked_tail": ("d128_dense_bf16", r"bool ends = [^;]+;", "bool ends = false;", "odd/333"),
    "lse_in_log2": ("d128_dense_bf16", r"\) \* kLn2;", ");", "size/128"),
    "sum_not_rescaled": (
        "d64_dense_fp16",
        r"rows\.sum\[r\] \*= factor\[r\];",
        "",
        "data/rising_and_falling",
    ),
    "wrong_key_head": (
        "d128_causal_bf16",
        r"/ problem\.heads_per_key_head",
        "% (problem.query_heads / problem.heads_per_key_head)",
        "gqa/4",
    ),
    "rows_behind_the_end": (
        "d128_causal_bf16",
        r"const bool inside = [^;]+;",
        "const bool inside = true;",
        "odd/1111",
    ),
    "keys_not_waited_for": ("d128_causal_bf16", r"\n +keys\(\)\.wait_full\(\);", "", "size/1024"),
}
HANGS = (
    "d128_causal_bf16",
    r"const KeyRing ring\{base, kv\.producer\(\)\};",
    "const KeyRing ring{base, kv.consumer()};",
)
"""A loader that waits for the next phase instead of the one it needs."""


def mutated(config: str, pattern: str, replacement: str) -> Kernel:
    """A mutant of the kernel of ``config``."""
    kernel = shipped(config)
    code, count = re.subn(pattern, replacement, kernel.code)
    assert count >= 1, f"the kernel no longer holds {pattern}"
    return kernel.with_code(code)


def compiled(kernel: Kernel) -> Any:
    """The kernel for a GPU."""
    from fa4gen.toolchain.compile import compile_kernel

    unit = kernel.unit()
    return compile_kernel(unit.source, unit.headers, unit.arch, name=unit.name, cache=None)


@pytest.mark.compile
@pytest.mark.parametrize("mutant", [*(m[:3] for m in MUTANTS.values()), HANGS], ids=lambda m: m[1])
def test_the_mutant_can_still_be_made(mutant) -> None:
    assert re.search(mutant[1], shipped(mutant[0]).code)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_refused(gpu, name) -> None:
    config, pattern, replacement, cases = MUTANTS[name]
    kernel = mutated(config, pattern, replacement)
    options = VerifyOptions(1, (cases,))
    verdict = verify_kernel(kernel.plan, compiled(kernel), GpuBackend("sm_90a"), options)
    assert len(verdict.cases) == 1
    assert not verdict.passed


HANGING_RUN = """
import os, sys, time
sys.path.insert(0, {here!r})
from test_mutants import HANGS, compiled, mutated
from fa4gen.verify.gpu import GpuBackend
from fa4gen.verify.run import VerifyOptions, verify_kernel
kernel = mutated(*HANGS)
backend = GpuBackend("sm_90a", time_limit_s=2)
verdict = verify_kernel(kernel.plan, compiled(kernel), backend, VerifyOptions(1, ("size/*",)))
print(verdict.stopped, verdict.passed, verdict.cases[0].failures[0].message, flush=True)
os._exit(5)
"""


@pytest.mark.gpu
def test_a_hanging_kernel_is_given_up(gpu) -> None:
    """In a process of its own, which the hanging kernel must not keep from ending."""
    code = HANGING_RUN.format(here=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith("True False the kernel did not end within 2 s")
