"""Host programs of the driver interface, unchanged, on a machine that has no driver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fa4gen.cli.main import main
from fa4gen.emulator.recorder.build import build_driver, find_compiler
from fa4gen.toolchain.compile import find_compiler as find_cuda_compiler
from fa4gen.toolchain.model import Unit
from tests.emulator.recorder.test_python_interface import BEGIN

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(sys.platform != "linux", reason="the recorder is for Linux"),
]


@pytest.fixture(scope="module")
def built(recorder_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The stand-in, the kernels as PTX, and the programs of this folder, compiled."""
    compiler = find_compiler()
    folder = tmp_path_factory.mktemp("recorder")
    library = build_driver(recorder_cache / "recorder")
    ptx = folder / "kernels.ptx"
    unit = Unit("kernels", (HERE / "kernels.cu").read_text(), {}, "sm_90a")
    ptx.write_text(find_cuda_compiler("nvrtc").build_ptx(unit))
    for name, needed in (
        ("host", "libcuda.so.1"), ("wrong", "libcuda.so.1"), ("dependent", "libcuda.so.1"),
        ("graphs", "libcuda.so.1"), ("runtime", "libcudart.so.13"),
    ):  # fmt: skip
        subprocess.run(
            [compiler, "-Wall", "-Werror", "-o", folder / name, HERE / f"{name}.c",
             library / needed, f"-Wl,-rpath-link,{library}"],
            check=True,
        )  # fmt: skip
    return SimpleNamespace(folder=folder, ptx=ptx, library=library, cache=recorder_cache)


@pytest.fixture
def record(built, tmp_path, capsys, monkeypatch) -> Callable[..., tuple[int, dict]]:
    """Record with these words into ``out``: the status, and what is printed."""

    def run(*words: object) -> tuple[int, dict]:
        monkeypatch.setenv("FA4GEN_CACHE_DIR", str(built.cache))
        capsys.readouterr()
        status = main(["record", str(tmp_path / "out"), "--format", "json", *map(str, words)])
        return status, json.loads(capsys.readouterr().out)

    return run


def test_a_program_finds_its_results(built, record) -> None:
    status, found = record("--", built.folder / "host", built.ptx)
    assert (status, found["status"], found["passed"]) == (0, 0, True)
    assert [(one["entry"], one["verdict"]) for one in found["launches"]] == [
        ("scale", "clean"), ("scale", "clean"), ("ranks", "clean"),
    ]  # fmt: skip
    assert found["launches"][2]["cluster"] == [2, 1, 1]
    assert found["launches"][2]["dynamic_shared"] == 40000


def test_each_launch_is_a_folder_that_emulate_runs(built, tmp_path, record) -> None:
    _, found = record("--", built.folder / "host", built.ptx)
    folder = Path(found["launches"][0]["folder"])
    text = (folder / "launch.yaml").read_text()
    assert "# at 128: memory_3c00 + 0" in text  # the struct's pointer to the output
    # the same numbers come out of the folder, wherever it is
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    target = "memory_3c00: {array: memory_3c00.npy"
    assert target + ", address: 0x1004003c00}" in text
    (moved / "launch.yaml").write_text(text.replace(target, target + ", output: after.npy"))
    assert main(["emulate", str(moved / "kernel.ptx"), "--launch", str(moved / "launch.yaml")]) == 0
    rows = np.arange(20 * 32, dtype=np.float32).reshape(20, 32)
    after = np.load(moved / "after.npy").view(np.float32).reshape(20, 32)
    np.testing.assert_array_equal(after, 2 * rows + np.arange(32, dtype=np.float32) / 4)
    before = np.load(moved / "memory_3c00.npy").view(np.float32)
    assert np.isnan(before).all()


@pytest.mark.parametrize("kernel", ["hasty", "patient"])
def test_a_grid_that_starts_after_the_one_before_need_not_wait(kernel: str, built, record) -> None:
    status, found = record("--", built.folder / "dependent", built.ptx, "produce", kernel)
    assert (status, found["status"], found["passed"]) == (0, 0, True)
    text = (Path(found["launches"][1]["folder"]) / "launch.yaml").read_text()
    assert "pending_writes:" not in text


@pytest.mark.parametrize(("kernel", "kinds"), [("hasty", ["race"]), ("patient", [])])
def test_waits_of_a_programmatic_launch_are_checked(
    kernel: str, kinds: list[str], built, record
) -> None:
    status, found = record("--", built.folder / "dependent", built.ptx, "produce_late", kernel)
    assert (status, found["status"]) == (1 if kinds else 0, 0)
    first, second = found["launches"]
    assert not first["findings"]
    assert [one["kind"] for one in second["findings"]] == kinds
    # and again from the folders; only what was written counts, not the whole of the memory
    texts = [(Path(one["folder"]) / "launch.yaml").read_text() for one in (first, second)]
    assert "pending_writes" not in texts[0]
    [line] = [one for one in texts[1].splitlines() if one.startswith("pending_writes:")]
    assert line.endswith("[0:125]']")
    folder = Path(second["folder"])
    command = ["emulate", str(folder / "kernel.ptx"), "--launch", str(folder / "launch.yaml")]
    assert main(command) == status


def test_graphs_of_launches_and_fills_are_replayed(built, record) -> None:
    program = built.folder / "graphs"
    status, found = record("--", program, built.ptx)
    assert (status, found["status"], found["passed"]) == (0, 0, True)
    assert [one["entry"] for one in found["launches"]] == 2 * ["produce", "patient"]


def test_launches_may_be_written_down_only(built, monkeypatch, record) -> None:
    monkeypatch.setenv("NOT_RUN", "1")
    status, found = record("--no-execute", "--", built.folder / "host", built.ptx)
    assert (status, len(found["launches"])) == (0, 1)
    assert found["launches"][0]["verdict"] is None
    assert (Path(found["launches"][0]["folder"]) / "launch.yaml").exists()


def test_wrong_use_is_refused_as_the_driver_does(built, record) -> None:
    status, found = record("--", built.folder / "wrong", built.ptx)
    assert found["status"] == 0  # the program checked every result itself
    assert status == 1  # and its last launch is wrong
    assert [one["verdict"] for one in found["launches"]] == ["error"]
    assert "out-of-bounds" in {one["kind"] for one in found["launches"][0]["findings"]}


def test_a_program_of_the_runtime_interface(built, record) -> None:
    status, found = record("--", built.folder / "runtime", built.ptx)
    assert (status, found["status"]) == (1, 0)  # it launches a kernel that is wrong, last
    assert [(one["entry"], one["verdict"]) for one in found["launches"]] == [
        ("ranks", "clean"), ("stray", "error"),
    ]  # fmt: skip


HOST = """
#include <cstdio>
__device__ float factor = 3;
__global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
int main() {
  float host[64], *x, two = 2;
  for (int i = 0; i < 64; i++) host[i] = i;
  cudaMalloc(&x, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<2, 32>>>(x, 64);
  cudaMemcpyToSymbol(factor, &two, sizeof two);
  twice<<<2, 32>>>(x, 64);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++) if (host[i] != 6 * i) return 2;
  return cudaGetLastError() != cudaSuccess;
}
"""


def test_a_program_that_nvcc_compiled(tmp_path, record) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not found")
    (tmp_path / "host.cu").write_text(HOST)
    subprocess.run(
        [nvcc, "-cudart", "shared", "-arch=compute_90a", "-code=compute_90a", "-o",
         tmp_path / "program", tmp_path / "host.cu"],
        check=True,
    )  # fmt: skip
    status, found = record("--", tmp_path / "program")
    assert (status, found["status"], len(found["launches"])) == (0, 0, 2)


PYTHON = (
    BEGIN.replace('b"k"', 'b"ranks"')
    + """
major, memory = ctypes.c_int(), ctypes.c_uint64()
cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
assert major.value == 10, major
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)) == 0
assert cuda.cuFuncSetAttribute(function, 8, 40000) == 0
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
assert cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 40000, None, parameters, None) == 0
assert cuda.cuCtxSynchronize() == 0
"""
)


def test_a_python_program_sees_the_device_asked_for(built, tmp_path, record) -> None:
    program = tmp_path / "program.py"
    program.write_text(PYTHON)
    status, found = record("--arch", "sm_100a", "--", sys.executable, program, built.ptx)
    assert (status, found["status"]) == (0, 0)
    assert [one["verdict"] for one in found["launches"]] == ["clean"]


def test_a_launch_may_use_a_limited_amount_of_memory(built, tmp_path, record) -> None:
    launch = "cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 40000, None, parameters, None) =="
    assert launch in PYTHON
    program = tmp_path / "program.py"
    program.write_text(PYTHON.replace(launch + " 0", launch + " 2"))
    status, found = record(
        "--arch", "sm_100a", "--max-memory", "1MiB", "--", sys.executable, program, built.ptx
    )
    assert (status, found["status"], found["launches"]) == (0, 0, [])


def test_ptx_that_is_not_there_is_refused(tmp_path, capsys) -> None:
    assert main(["record", str(tmp_path), "--ptx", "nowhere", "--", "true"]) == 2
    assert "'nowhere' does not exist" in capsys.readouterr().err


def test_machine_code_needs_its_ptx(built, tmp_path, record) -> None:
    unit = Unit("kernels", (HERE / "kernels.cu").read_text(), {}, "sm_90a")
    cubin = tmp_path / "kernels.cubin"
    cubin.write_bytes(find_cuda_compiler("nvrtc").build(unit).cubin)
    words = ("--", built.folder / "host", cubin)
    status, found = record(*words)
    assert (status, found["status"], found["launches"]) == (1, 1, [])
    status, found = record("--ptx", built.ptx, *words)
    assert (status, len(found["launches"])) == (0, 3)


def test_what_cannot_be_run_is_said(built, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(built.cache))
    assert main(["record", str(tmp_path), "--", str(tmp_path / "nowhere")]) == 2
    assert "cannot run" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert main(["record", str(tmp_path), "--", "nothing"]) == 4
    assert "no C compiler" in capsys.readouterr().err


def test_without_the_recorder_the_program_is_told(built) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "FA4GEN_RECORDER"}
    environment["LD_LIBRARY_PATH"] = str(built.library)
    done = subprocess.run(
        [built.folder / "host", built.ptx], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "start the program with fa4gen record" in done.stderr
