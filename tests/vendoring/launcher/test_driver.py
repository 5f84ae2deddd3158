"""A driver that is missing, old or without a GPU; the machine code that it gets."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import threading
import time

import pytest

from fa4gen.vendoring.binding import Binding, Prepared
from fa4gen.vendoring.host_build import build_library, compile_c, find_c_compiler
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.attention_problems import plain_problem
from tests.vendoring.launcher.shipped import cubin_without_code, shipped_plans, write_launcher
from tests.vendoring.statuses import DRIVER_ERROR, describe_status

NAME = "d64_dense_small_bf16"
NO_DEVICE, INVALID_IMAGE, INVALID_HANDLE, NOT_FOUND = 100, 200, 400, 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    plans = {NAME: shipped_plans()[NAME]}
    return write_launcher(tmp_path_factory.mktemp("driver"), plans)


@pytest.fixture
def build(folder, tmp_path, launcher):
    """Build the folder's library over a driver; the fixture launcher puts the stand-in back."""
    launcher.stand_in.set_devices(SimulatedDevice())
    launcher.stand_in.set_current(0)
    launcher.stand_in.reset()

    def make(driver=launcher.stand_in.path, source=folder):
        made = build_library(source, tmp_path / "launcher.so", stand_in=driver, flags=["-O0"])
        return Binding(made, "acme")

    return make


def launch(library):
    args = plain_problem(shipped_plans()[NAME]).c_args()
    return library.kernel(f"acme_{NAME}").launch(ctypes.byref(args), None)


def test_no_driver(build, tmp_path) -> None:
    library = build(tmp_path / "nowhere.so")
    assert describe_status(launch(library)) == ("NO_DRIVER", "NONE")
    assert library.kernel(f"acme_{NAME}").sha256()  # which needs none
    assert library.words(DRIVER_ERROR + 700).startswith("the CUDA driver reported an error")


def test_a_driver_without_a_function_is_too_old(build, tmp_path) -> None:
    source = tmp_path / "old.c"
    source.write_text("int cuInit(unsigned flags) { return (int)flags; }\n")
    compile_c(find_c_compiler(), ["-shared", "-fPIC"], [source], tmp_path / "old.so")
    library = build(tmp_path / "old.so")
    for _ in range(2):
        assert describe_status(launch(library)) == ("OLD_DRIVER", "NONE")


def test_a_driver_without_a_gpu_is_asked_again(build, launcher) -> None:
    library = build()
    launcher.stand_in.fail("cuInit", NO_DEVICE)
    status = launch(library)
    assert status == DRIVER_ERROR + NO_DEVICE
    assert library.words(status) == "the CUDA driver found no GPU on this machine"
    assert launch(library) == 0


@pytest.mark.parametrize("function", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuCtxGetDevice",
                                      "cuKernelSetAttribute", "cuDeviceGetAttribute"])  # fmt: skip
def test_a_first_use_that_fails_is_tried_again(build, launcher, function) -> None:
    library = build()
    launcher.stand_in.fail(function, INVALID_IMAGE)
    assert launch(library) == DRIVER_ERROR + INVALID_IMAGE
    assert not launcher.stand_in.launches
    assert launch(library) == 0
    assert len(launcher.stand_in.launches) == 1


def test_what_has_no_kernel_is_unloaded(build, launcher) -> None:
    library = build()
    before = launcher.stand_in.loaded
    for _ in range(20):
        launcher.stand_in.fail("cuLibraryGetKernel", NOT_FOUND)
        assert launch(library) == DRIVER_ERROR + NOT_FOUND
    assert launcher.stand_in.loaded == before
    assert launch(library) == 0
    assert launcher.stand_in.loaded == before + 1


def test_all_is_unloaded_before_a_library_is_closed(build, launcher) -> None:
    library = build()
    before = launcher.stand_in.loaded
    assert library.unload() == 0  # nothing was loaded yet
    handle = library.kernel(f"acme_{NAME}").handle
    args = plain_problem(shipped_plans()[NAME]).c_args()
    prepared = Prepared()
    assert library.prepare(handle, ctypes.byref(args), ctypes.byref(prepared)) == 0
    assert library.launch_prepared(ctypes.byref(prepared), None) == 0
    assert launcher.stand_in.loaded == before + 1
    assert library.unload() == 0
    assert launcher.stand_in.loaded == before
    status = library.launch_prepared(ctypes.byref(prepared), None)
    assert describe_status(status) == ("BAD_VALUE", "PREPARED")
    assert launch(library) == 0  # which loads it again
    assert launcher.stand_in.loaded == before + 1
    launcher.stand_in.fail("cuLibraryUnload", INVALID_HANDLE)
    assert library.unload() == DRIVER_ERROR + INVALID_HANDLE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_child_waits_for_no_thread_of_its_parents(build) -> None:
    library = build()
    ended = threading.Event()

    def take_the_lock() -> None:
        while not ended.is_set():
            library.unload()

    thread = threading.Thread(target=take_the_lock)
    thread.start()
    try:
        for _ in range(100):
            child = os.fork()
            if child == 0:
                os._exit(library.unload())
            until = time.monotonic() + 30
            while (found := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
                time.sleep(0.001)
            if found == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            assert found[0] == child, "it waits for ever"
            assert os.waitstatus_to_exitcode(found[1]) == 0
    finally:
        ended.set()
        thread.join()


def test_the_driver_gets_the_machine_code_of_the_folder(build, launcher) -> None:
    library = build()
    assert launch(library) == 0
    cubin = cubin_without_code(shipped_plans()[NAME])
    assert launcher.stand_in.images[0].data == cubin
    assert library.kernel(f"acme_{NAME}").sha256() == hashlib.sha256(cubin).hexdigest()
