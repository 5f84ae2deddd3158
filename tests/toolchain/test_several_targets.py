"""A generated kernel compiles in a build for several targets; where it cannot run, it traps."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.render.render import render
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.nvcc import find_nvcc

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.render import RenderedKernel

pytestmark = pytest.mark.compile

KERNELS = [
    "d128_causal_pair_bf16",
    "fa4_d64_dense_bf16",
    "gemm_bf16_pair",
    "gemm_fp16_three_warpgroups_sm90",  # whose message is of two strings
]
OTHER = {"sm_90a": "sm_100a", "sm_100a": "sm_90a"}


def rendered(name: str) -> tuple[Plan, RenderedKernel]:
    (path,) = find_configs([name])
    loaded = load_config(path)
    plan = build_plan(loaded.config)
    return plan, render(plan, loaded)


@pytest.mark.parametrize("name", KERNELS)
def test_the_pass_for_another_target_makes_a_kernel_that_traps(name: str) -> None:
    plan, kernel = rendered(name)
    other = OTHER[plan.arch]
    built = find_compiler("nvrtc").build(Unit(plan.name, kernel.source, kernel.headers, other))
    [body] = re.findall(rf"\.entry {plan.entry_point}\(.*?^\{{(.*?)^\}}", built.ptx, re.S | re.M)
    code = [line.strip() for line in body.splitlines() if line.strip().endswith(";")]
    assert code == ["trap;", "ret;"]


@pytest.mark.parametrize("name", KERNELS)
def test_nvcc_builds_for_several_targets_at_once(tmp_path: Path, name: str) -> None:
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    plan, kernel = rendered(name)
    source = tmp_path / f"{plan.name}.cu"
    source.write_text(kernel.source)
    for header, text in kernel.headers.items():
        (tmp_path / header).write_text(text)
    targets = ("80", "90", "90a", "100a")
    done = subprocess.run(
        [nvcc, "-std=c++17", "-c", "-o", tmp_path / "k.o", source]
        + [f"-gencode=arch=compute_{target},code=sm_{target}" for target in targets],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wanted = f"-gencode arch=compute_{plan.arch[3:]},code={plan.arch}"
    assert f"{plan.entry_point} traps here; it needs {wanted}" in done.stderr
    assert "warning" not in done.stderr
