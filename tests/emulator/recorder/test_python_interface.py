"""``recording`` as a context manager: several processes, the same process, clean ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fa4gen.emulator.recorder import session
from fa4gen.emulator.recorder.folders import Folders
from fa4gen.emulator.recorder.recorder import Options, Recorded, Recorder, recording
from fa4gen.emulator.state.budget import process_bytes
from fa4gen.emulator.state.global_arrays import GlobalArrays
from tests.emulator.instructions.copy.copies import copy_kernel
from tests.emulator.instructions.copy.test_launch_control import PERSISTENT
from tests.emulator.kernel import kernel

DOUBLE = """
    mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d0, %d1;
    ld.global.u32 %r2, [%d1]; shl.b32 %r2, %r2, 1; st.global.u32 [%d1], %r2;
"""
BEGIN = """
import ctypes, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, module, function = (ctypes.c_void_p() for _ in range(3))
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read() + bytes(1)))
ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k"))
"""
WORK = """
def work(number):
    ok(cuda.cuCtxSetCurrent(context))
    memory, values = ctypes.c_uint64(), (ctypes.c_uint32 * 32)(*range(number, number + 32))
    ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)))
    ok(cuda.cuMemcpyHtoD_v2(memory, values, ctypes.c_size_t(128)))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    ok(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
    ok(cuda.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(128)))
    assert list(values) == [2 * value for value in range(number, number + 32)]
    done.append(number)
done = []
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(done) == [0, 1, 2], done
"""


class Recording:
    """A program that is recorded, its PTX, and what is said of it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        self.ptx = folder / "kernel.ptx"
        self.ptx.write_text(kernel(DOUBLE))
        self.said: list[str] = []

    def command(self, text: str, *words: object) -> list[object]:
        """The program of this text."""
        program = self.folder / "program.py"
        program.write_text(text)
        return [sys.executable, program, self.ptx, *words]

    def run(self, text: str, *words: object, options: Options | None = None) -> Recorder:
        """Record the program, which has to end well."""
        command = self.command(text, *words)
        with recording(self.folder / "out", self.cache, options, say=self.said.append) as recorder:
            assert subprocess.run(command, env=recorder.environment(), check=False).returncode == 0
        return recorder


@pytest.fixture
def program(tmp_path: Path, recorder_cache: Path) -> Recording:
    return Recording(tmp_path, recorder_cache / "recorder")


def test_threads_and_processes_have_their_launches(program, tmp_path) -> None:
    on_launch: list[Recorded] = []
    before = threading.active_count()
    command = program.command(BEGIN + WORK)
    with recording(tmp_path / "out", program.cache, on_launch=on_launch.append) as recorder:
        processes = [subprocess.Popen(command, env=recorder.environment()) for _ in range(2)]
        assert [one.wait() for one in processes] == [0, 0]
        assert on_launch == recorder.launches
    assert sorted(one.launch.number for one in on_launch) == [1, 2, 3, 4, 5, 6]
    assert {one.report.verdict.value for one in on_launch if one.report} == {"clean"}
    assert len(list((tmp_path / "out").glob("launch-*/launch.yaml"))) == 6
    assert threading.active_count() <= before + 2  # those of the processes are about to end


TWO_THREADS = """
import pathlib, time
begun, copied = (pathlib.Path(one) for one in sys.argv[2:])
size = ctypes.c_size_t(128)
def array(first):
    return (ctypes.c_uint32 * 32)(*range(first, first + 32))
one, two = ctypes.c_uint64(), ctypes.c_uint64()
ok(cuda.cuMemAlloc_v2(ctypes.byref(one), size))
ok(cuda.cuMemAlloc_v2(ctypes.byref(two), size))
ok(cuda.cuMemcpyHtoD_v2(one, array(0), size))
def launch():
    ok(cuda.cuCtxSetCurrent(context))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(one))
    ok(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
thread = threading.Thread(target=launch)
thread.start()
while not begun.exists():
    time.sleep(0.01)
ok(cuda.cuMemcpyHtoD_v2(two, array(100), size))
copied.touch()
thread.join()
found = array(0)
ok(cuda.cuMemcpyDtoH_v2(found, one, size))
assert list(found) == list(range(0, 64, 2)), list(found)
ok(cuda.cuMemcpyDtoH_v2(found, two, size))
assert list(found) == list(range(100, 132)), list(found)
"""


def test_a_thread_copies_while_the_launch_of_another_runs(program, tmp_path, monkeypatch) -> None:
    begun, copied = tmp_path / "begun", tmp_path / "copied"
    fetch = GlobalArrays.fetch

    def fetch_late(arrays: GlobalArrays) -> None:  # memory was read, and is about to be written
        begun.touch()
        end = time.monotonic() + 30
        while not copied.exists() and time.monotonic() < end:
            time.sleep(0.01)
        fetch(arrays)

    monkeypatch.setattr(GlobalArrays, "fetch", fetch_late)
    program.run(BEGIN + TWO_THREADS, begun, copied)


def test_what_the_recorder_refuses_reaches_the_program(program, tmp_path) -> None:
    command = program.command(BEGIN + WORK)
    program.ptx.write_text(kernel("what.is.this;"))
    said: list[str] = []
    options = Options(record=False)
    with recording(tmp_path, program.cache, options, say=said.append) as recorder:
        environment = recorder.environment({**os.environ, "LD_LIBRARY_PATH": "/nowhere"})
        assert environment["LD_LIBRARY_PATH"].endswith(":/nowhere")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # CUDA_ERROR_NOT_SUPPORTED, at the launch; what threads write may be mixed within a line
    assert "AssertionError" in done.stderr
    assert "801" in done.stderr
    assert any("what.is.this" in one for one in said)
    assert not list(tmp_path.glob("launch-*"))


OUT_OF_MEMORY = """
memory, large = ctypes.c_uint64(), ctypes.c_uint64()
size = ctypes.c_size_t(128 << 20)
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)))
def launch():
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    return cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None)
ok(launch())
ok(cuda.cuMemAlloc_v2(ctypes.byref(large), size))
ok(cuda.cuMemsetD8_v2(large, 7, size))
assert launch() == 2  # CUDA_ERROR_OUT_OF_MEMORY
ok(cuda.cuCtxSynchronize())
ok(cuda.cuMemFree_v2(large))
ok(launch())
"""


def test_a_launch_beyond_memory_is_out_of_memory_and_later_ones_go_on(program) -> None:
    options = Options(record=False, max_memory=process_bytes() + (96 << 20))
    recorder = program.run(BEGIN + OUT_OF_MEMORY, options=options)
    assert len(recorder.launches) == 2
    [message] = program.said
    assert message.startswith("a launch of k needs a copy of all memory: the process uses ")
    assert message.endswith("free memory of the device, or allow more with --max-memory")


@pytest.mark.parametrize("where", ["copies", "folder"])
def test_memory_that_the_system_does_not_give_is_no_unknown_error(
    where: str, program, monkeypatch
) -> None:
    left = iter([MemoryError("no bytes")])

    def fail(*_: object) -> Any:
        for error in left:
            raise error
        return real(*_)

    owner, name = {"copies": (session, "take"), "folder": (Folders, "write")}[where]
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, fail)
    text = OUT_OF_MEMORY.replace("128 << 20", "128").replace("ok(launch())\n", "", 1)
    program.run(BEGIN + text)
    assert "no bytes" in program.said[0]


def test_device_memory_that_cannot_be_had_is_out_of_memory(program) -> None:
    text = BEGIN.replace("ok(cuda.cuInit(0))", "sys.exit(cuda.cuInit(0) != 2)")
    program.run(text, options=Options(memory=1 << 62))
    assert "device memory of 4 EiB cannot be had: " in program.said[0]
    assert program.said[0].endswith("take less with --memory")


WORKERS = """
memory, values = ctypes.c_uint64(), (ctypes.c_uint32 * 8)()
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(32)))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
ok(cuda.cuLaunchKernel(function, 8, 1, 1, 1, 1, 1, 0, None, parameters, None))
ok(cuda.cuCtxSynchronize())
ok(cuda.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(32)))
assert list(values) == [1] * 8, list(values)
"""


def test_ctas_that_are_cancelled_need_not_run(program) -> None:
    program.ptx.write_text(copy_kernel(PERSISTENT, ("u64",), 1024, target="sm_100a"))
    recorder = program.run(BEGIN + WORKERS, options=Options("sm_100a", checks=False))
    [launch] = recorder.launches
    assert launch.report is not None
    assert launch.report.coverage.cancelled > 0
