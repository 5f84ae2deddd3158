"""The example as a program, its launches run by the emulator."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder.build import NoCompilerError, build_driver
from fa4gen.emulator.recorder.recorder import Options, recording
from tests.vendoring.stranger.tools import call

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.emulate,
    pytest.mark.skipif(sys.platform != "linux", reason="the recorder is for Linux"),
]


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("recorder-cache")
    try:
        build_driver(cache)
    except NoCompilerError as error:
        pytest.skip(str(error))
    return cache


@pytest.mark.parametrize(
    ("arch", "kernels"),
    [
        ("sm_90a", ("d128_causal_bf16", "gemm_bf16_sm90")),
        ("sm_100a", ("fa4_d128_causal_bf16", "gemm_bf16")),
    ],
)
def test_the_example_runs_on_both_architectures(
    example: tuple[Path, Path], stand_ins: Path, tmp_path: Path, arch: str, kernels: tuple[str, str]
) -> None:
    program, ptx = example
    options = Options(arch, (ptx,), record=False)
    with recording(tmp_path / "launches", stand_ins, options) as recorder:
        said = call(program, cwd=tmp_path, **recorder.environment())
    reports = [one.report for one in recorder.launches]
    assert all(reports)
    assert not any(report.findings for report in reports if report)
    assert said.splitlines() == [
        f"attention by {kernels[0]} ({arch}): 0 of 51200 elements are wrong",
        f"product by {kernels[1]} ({arch}): 0 of 13600 elements are wrong",
    ]


def test_the_example_says_that_there_is_no_driver(example: tuple[Path, Path]) -> None:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("there is a driver here")
    done = subprocess.run([example[0]], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "example: no CUDA driver on this machine\n"
