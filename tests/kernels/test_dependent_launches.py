"""Kernels that start before the previous one ends, and mutants that touch memory too early."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.kernels.source_mutation import (
    ANYWHERE,
    Change,
    Found,
    Kernel,
    Mutant,
    assert_right,
    failure,
    kernel_in,
    line,
    mutated,
)

GEMM: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "BM": 128, "BN": 128}
ATTENTION: Final = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
DECODE: Final = {**ATTENTION, "pack_heads": True}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "product": {**GEMM, "residual": "matrix"},
    "groups": {**GEMM, "groups": "offsets"},
    "scattered": {**GEMM, "groups": "offsets", "out_rows": "scattered"},
    "amax": {**GEMM, "output_scales": "amax"},
    "scales": {**GEMM, "dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}},
    "decode": DECODE,
    "decode of lengths": {**DECODE, "key_lengths": True},
    "splits": {**DECODE, "split_keys": {"keys": 256}},
    "prefill": {**ATTENTION, "scheduler": "dynamic", "sinks": True},
    "ragged": {**ATTENTION, "batching": "ragged"},
}
CASES: Final = {"product": "size/33*", "groups": "size/33*", "scales": "size/33*"} | {
    "scattered": "size/33*",
    "amax": "size/33*",
    "splits": "split/rows_and_heads",
}
"""Cases by config; the others run on one row of queries."""
WAIT: Final = r"wait_for_previous_kernel\(\)"


def kernel_of(config: str) -> Kernel:
    return kernel_in(json.dumps({**CONFIGS[config], "dependent_launch": True}))


def early(config: str, about: str, who: str, *changes: Change) -> Mutant:
    """Return a mutant in which threads of a role touch memory before the wait."""
    found = Found("race", ANYWHERE, who, "the grid before may still be writing")
    return Mutant(config, about, changes, (found,), CASES.get(config, "size/1"))


def before_the_wait(statement: str) -> Change:
    """Return a change that puts a statement before the wait of the role that claims tiles."""
    return Change(
        rf"\n( *{WAIT}; *// orders its accesses before all loads)", rf"\n  {statement}\n\1"
    )


MUTANTS: Final = {
    "operands loaded early": early(
        "product", "the loader does not wait", "load",
        Change(line(WAIT) + r"(?=\n +if \(elect_one)"),
    ),
    "residual loaded early": early(
        "product", "the transfer warp waits for nobody before it loads C", "transfer",
        Change(line(WAIT) + r"(?=\n  OutputPipeline)"),
    ),
    "rows of groups read early": early(
        "groups", "the warp that lists groups does not wait", "",
        Change(line(WAIT) + r"(?=\n  const int32 lane)"),
    ),
    "scales read early": early(
        "scales", "consumers do not wait", "consume",
        Change(line(WAIT) + r"(?=\n    const BlockScales)"),
    ),
    "query read early": early(
        "decode", "only the warp that loads keys waits", "consume",
        Change(WAIT + ";", "if (warp == kNumConsumerWarps) wait_for_previous_kernel();"),
    ),
    "waited after the first keys": early(
        "decode", "the loader lets the next kernel start, and then waits itself", "load",
        Change(WAIT + ";", "if (warp < kNumConsumerWarps) wait_for_previous_kernel();"),
        Change(r"  launch_dependents\(\);", r"\g<0>\n  wait_for_previous_kernel();"),
    ),
    "lengths read early": early(
        "decode of lengths", "the wait comes after the lengths are summed", "",
        Change(line(WAIT)),
        Change(r"\n  const Line line\(problem, base\);", r"\n  wait_for_previous_kernel();\g<0>"),
    ),
    "tickets reset early": early(
        "splits", "a launch makes ready the workspace that the last one still uses", "",
        before_the_wait("if (threadIdx.x == 0) partials[kPartialStride * blockIdx.x] = 0;"),
    ),
    "counter reset early": early(
        "prefill", "a launch resets the counter from which the last one still claims tiles", "load",
        before_the_wait("if (blockIdx.x == 0) tile_counter[0] = 0;"),
    ),
    "sinks read early": early(
        "prefill", "consumers do not wait", "consume",
        Change(line(WAIT) + r"(?=\n    const int32 consumer)"),
        Change(r"\n    increase_registers<kConsumerRegisters>\(\);",
               r'\g<0>\n    if (sinks[0] > 1e30f) asm volatile("trap;");'),
    ),
    "list written early": early(
        "ragged", "the launch that lists tiles does not wait", "",
        Change(line(WAIT) + r"(?=\n  __syncthreads)"),
    ),
}  # fmt: skip
NOBODY: Final = Mutant(
    "decode", "nobody waits", (Change(line(WAIT)),),
    (Found("missing-grid-wait", "", "all threads", "may end before the one before it"),),
    CASES.get("decode", "size/1"),
)  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_the_kernel_is_clean(config: str) -> None:
    assert_right(kernel_of(config), CASES.get(config, "size/1"))


@pytest.mark.compile
@pytest.mark.parametrize("name", MUTANTS)
def test_an_early_access_is_reported(name: str) -> None:
    mutant = MUTANTS[name]
    assert failure(mutant, mutated(kernel_of(mutant.config), mutant), 0) == ""


@pytest.mark.compile
def test_a_kernel_that_never_waits_is_reported() -> None:
    assert failure(NOBODY, mutated(kernel_of(NOBODY.config), NOBODY), 0) == ""


@pytest.mark.compile
@pytest.mark.parametrize("config", ["product", "decode"])
def test_without_the_key_nothing_waits(config: str) -> None:
    code = kernel_in(json.dumps(CONFIGS[config])).code
    assert "previous_kernel" not in code
    assert "launch_dependents" not in code
