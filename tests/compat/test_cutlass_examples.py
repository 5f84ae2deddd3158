"""CUTLASS's examples 48 and 70, compiled as they are in a checkout that the user names.

They fill their operands with kernels that would take the emulator minutes, and check the product
with another: the launch of the product is recorded alone, and numbers are put in here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.compat.judging import judge_runs
from tests.compat.recordings import Placed, load_folder
from tests.compat.test_cutlass import VARIABLE

pytestmark = [pytest.mark.compat, pytest.mark.compile]

_FILL, _PRODUCT, _COMPARE = "BlockForEach", "device_kernel", "BlockCompareEqual"


@dataclass(frozen=True)
class Example:
    """A source below ``examples``; A and B have ``operand``, C and D float32, by columns."""

    source: str
    arch: str
    operand: type
    problem: tuple[int, int, int]
    known: tuple[str, ...]
    defects: tuple[str, ...] = ()


EXAMPLES = {
    "48": Example(
        "48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu",
        "sm_90a", np.float32, (512, 256, 256), (),
    ),
    "70": Example(
        "70_blackwell_gemm/70_blackwell_fp16_gemm.cu",
        "sm_100a", np.float16, (512, 256, 256),
        ("early-exit", "illegal-instruction", "missing-tcgen05-fence", "race"),
        ("race",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_example(example: Example, tmp_path: Path) -> None:
    program = build(example, tmp_path / "program")
    m, n, k = example.problem
    sizes = {"m": m, "n": n, "k": k, "iterations": 0}
    out = tmp_path / "out"
    said = run(
        sys.executable, "-m", "fa4gen.cli.main", "record", out, "--no-execute",
        "--arch", example.arch, "--",
        program, *(f"--{name}={size}" for name, size in sizes.items()),
    )  # fmt: skip
    assert "Disposition" in said
    fills = [first_words(folder)[0] for folder in launches(out, _FILL)]
    [compared] = (first_words(folder) for folder in launches(out, _COMPARE))
    [folder] = launches(out, _PRODUCT)
    recording = load_folder(folder)
    placed = {one.address: name for name, one in recording.arrays.items()}
    names = dict(zip("abcd", (placed[address] for address in [*fills, compared[2]]), strict=True))
    # whole numbers, as the examples have them: every sum is exact
    rng = np.random.default_rng(48)
    a = rng.integers(-8, 9, (m, k)).astype(example.operand)
    b = rng.integers(-8, 9, (n, k)).astype(example.operand)
    nothing = np.full(m * n, np.nan, np.float32)
    arrays = dict(recording.arrays)
    for name, array in (("a", a), ("b", b), ("c", nothing), ("d", nothing)):
        there = arrays[names[name]]
        assert there.array.nbytes == array.nbytes
        arrays[names[name]] = Placed(there.address, array.reshape(-1).view(np.uint8).copy())
    recording = replace(recording, arrays=arrays)

    def once(schedule: str) -> tuple[dict[str, np.ndarray], Any]:
        after, reports = recording.run(seed=0, schedule=schedule)
        return {"d": after[names["d"]].view(np.float32).reshape(n, m).T}, reports

    judge_runs(
        once,
        {"d": a.astype(np.float64) @ b.T.astype(np.float64)},
        bounds={"d": 0},
        known=example.known,
        defects=example.defects,
    )


def build(example: Example, target: Path) -> Path:
    checkout = Path(os.environ.get(VARIABLE, ""))
    source = checkout / "examples" / example.source
    if not source.is_file():
        pytest.skip(f"{VARIABLE} names no checkout of NVIDIA/cutlass with its examples")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc is there to compile CUTLASS")
    packages = Path(sysconfig.get_path("purelib")) / "nvidia/cu13/include"
    preamble = target.with_suffix(".cu")
    preamble.write_text("#include <curand_kernel.h>\n")
    includes = [checkout / "include", checkout / "tools/util/include", checkout / "examples/common"]
    flags = [f"-I{folder}" for folder in [*includes, packages]]
    found = subprocess.run([nvcc, "-E", *flags, preamble], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("no curand_kernel.h is there: pip install nvidia-curand, or a whole toolkit")
    capability = example.arch.removeprefix("sm_")
    run(
        nvcc, "-std=c++17", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-cudart", "shared",
        f"-gencode=arch=compute_{capability},code=compute_{capability}",
        *flags, source, "-o", target,
    )  # fmt: skip
    return target


def launches(out: Path, kernel: str) -> list[Path]:
    """The folders of a kernel's launches, in their order."""
    return sorted(folder for folder in out.iterdir() if kernel in entry(folder))


def entry(folder: Path) -> str:
    return yaml.safe_load((folder / "launch.yaml").read_text())["entry"]


def first_words(folder: Path) -> Sequence[int]:
    """The first word of every parameter."""
    described = yaml.safe_load((folder / "launch.yaml").read_text())
    raw = (re.sub(r"\s", "", one["bytes"]) for one in described["arguments"])
    return [int.from_bytes(bytes.fromhex(one)[:8], "little") for one in raw]


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
