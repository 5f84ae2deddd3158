"""The self-test and the example as programs, their launches run by the emulator."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder.build import NoCompilerError, build_driver
from fa4gen.emulator.recorder.recorder import Options, recording
from tests.vendoring.stranger.conftest import ptx_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.vendoring.stranger.tools import Objects

    Emulate = Callable[..., tuple[int, str]]

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


@pytest.fixture(scope="session")
def ptx(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ptx_of(pristine, tmp_path_factory.mktemp("ptx"))


@pytest.fixture
def emulate(stand_ins: Path, tmp_path: Path) -> Emulate:
    def run(
        ptx: Path, program: Path, *words: str, arch: str = "sm_90a", clean: bool = True
    ) -> tuple[int, str]:
        options = Options(arch, (ptx,), record=False)
        with recording(tmp_path / "launches", stand_ins, options) as recorder:
            done = subprocess.run(
                [program, *words],
                env=recorder.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            reports = [one.report for one in recorder.launches]
        assert all(reports)
        assert not clean or not any(report.findings for report in reports if report)
        return done.returncode, done.stdout

    return run


def test_the_self_test_passes(compiled: Objects, ptx: Path, emulate: Emulate) -> None:
    """The folder has one kernel alone; tests/vendoring/verify has it with every kind of kernel."""
    words = ("--quick", "--seed", "7", "--kernel", "d64_dense_small_bf16")
    status, said = emulate(ptx, compiled.build / "selftest", *words)
    assert (status, "FAILED" in said) == (0, False), said
    assert "seed 7\n" in said
    assert "acme_d64_dense_small_bf16: passed on NVIDIA H100 (fa4gen emulator): 3 cases, " in said
    assert "6 launches" in said
    assert "passed: 1 of 3 kernels were run" in said


def test_a_kernel_of_another_gpu_is_not_run(compiled: Objects, ptx: Path, emulate: Emulate) -> None:
    words = ("--quick", "--kernel", "fa4_d64_dense_bf16")
    status, said = emulate(ptx, compiled.build / "selftest", *words)
    assert status == 0
    assert "acme_fa4_d64_dense_bf16: not run: no GPU here runs sm_100a" in said
    assert "passed: 0 of 3 kernels were run" in said


@dataclass(frozen=True)
class Mistake:
    kernel: str
    path: str
    old: str
    new: str
    said: str


MISTAKES = {
    "rows and keys": Mistake(
        "d64_dense_small_bf16",
        "src/launcher.c",
        "values->key_rows = (int32_t)size->key_rows;",
        "values->key_rows = (int32_t)size->query_rows;",
        "relative error of the output",
    ),
    "scale": Mistake(
        "d64_dense_small_bf16",
        "src/launcher.c",
        "(float)(scale * LOG2_E)",
        "(float)(scale * 1.5)",
        "relative error of a row",
    ),
    "stride": Mistake(
        "d64_dense_small_bf16",
        "src/launcher.c",
        "values->out_row_stride = args->out.row_stride;",
        "values->out_row_stride = args->out.head_stride;",
        "out: ",
    ),
    "beta": Mistake(
        "gemm_bf16_residual_sm90",
        "src/launcher.c",
        "(float)args->beta;",
        "(float)args->alpha;",
        "elements are off by more than their rounding allows",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_launcher_fails(objects: Objects, ptx: Path, emulate: Emulate, name: str) -> None:
    mistake = MISTAKES[name]
    place = objects.folder / mistake.path
    text = place.read_text()
    assert text.count(mistake.old) == 1
    place.write_text(text.replace(mistake.old, mistake.new))
    objects.compile(place)
    program = objects.link("selftest", sorted(objects.build.glob("*.o")))
    words = ("--quick", "--kernel", mistake.kernel)
    status, said = emulate(ptx, program, *words, clean=False)
    assert status == 1
    assert mistake.said in said
    assert f"acme_{mistake.kernel}: FAILED on NVIDIA H100" in said


@pytest.mark.parametrize(
    ("arch", "kernels"),
    [
        ("sm_90a", ("d128_causal_bf16", "gemm_bf16_sm90")),
        ("sm_100a", ("fa4_d128_causal_bf16", "gemm_bf16")),
    ],
)
def test_the_example_runs_on_both_architectures(
    example: tuple[Path, Path], emulate: Emulate, arch: str, kernels: tuple[str, str]
) -> None:
    program, ptx = example
    status, said = emulate(ptx, program, arch=arch)
    assert status == 0, said
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
