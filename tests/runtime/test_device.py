"""A machine without a GPU gets a message; one with a GPU gets the GPU."""

from __future__ import annotations

import ctypes
import sys
from ctypes.util import find_library
from types import SimpleNamespace

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.runtime import device
from fa4gen.runtime.device import (
    DeviceInfo,
    all_devices,
    device_count,
    device_info,
    find_device,
    load_driver,
    require_device,
    why_no_device,
)


def test_a_count_or_a_reason():
    assert (device_count() > 0) == (why_no_device() == "")
    assert len(all_devices()) == device_count()


def test_a_gpu_that_is_not_there_is_a_missing_capability():
    with pytest.raises(MissingCapabilityError, match="no GPU number 99") as caught:
        device_info(99)
    assert caught.value.exit_status == 4
    assert caught.value.problems[0].remedy


def test_architectures_run_on_exactly_their_capability():
    gpu = DeviceInfo(0, "NVIDIA H200", (9, 0), 132, 1, 1)
    assert gpu.runs("sm_90a")
    assert not DeviceInfo(0, "NVIDIA B200", (10, 0), 148, 1, 1).runs("sm_90a")
    assert str(gpu) == "NVIDIA H200 (compute capability 9.0)"


def test_a_family_runs_on_each_of_its_members():
    for minor, expected in ((0, True), (1, False), (3, True), (7, True)):
        assert DeviceInfo(0, "Some GPU", (10, minor), 148, 1, 1).runs("sm_100f") == expected


@pytest.mark.parametrize(
    ("arch", "needed", "there", "remedy"),
    [
        ("sm_100a", "10.0", (10, 3), "render it with arch: sm_103a or sm_100f"),
        ("sm_100f", "10.0, 10.3 or 10.7", (9, 0), "render it with arch: sm_90a"),
        ("sm_90a", "9.0", (8, 0), "kernels run on compute capability 9.0, 10.0, 10.3 or 10.7"),
    ],
)
def test_another_gpu_is_refused_with_what_would_run(monkeypatch, arch, needed, there, remedy):
    monkeypatch.setattr(device, "all_devices", lambda: (DeviceInfo(0, "X", there, 1, 1, 1),))
    with pytest.raises(MissingCapabilityError) as caught:
        require_device(arch)
    [problem] = caught.value.problems
    assert problem.message == (
        f"kernels for {arch} need a GPU of compute capability {needed}; "
        f"here: X (compute capability {there[0]}.{there[1]})"
    )
    assert problem.remedy.endswith(f"; or {remedy}")


@pytest.mark.skipif(device_count() > 0, reason="there is a GPU here")
def test_without_a_gpu_the_message_says_what_is_needed():
    assert find_device("sm_90a") is None
    with pytest.raises(MissingCapabilityError, match=r"compute capability 9\.0; here: .+"):
        require_device("sm_90a")


@pytest.mark.skipif(find_library("cuda") is not None, reason="a driver is installed")
def test_without_a_driver_it_is_a_missing_capability():
    with pytest.raises(MissingCapabilityError, match="no NVIDIA driver on this machine"):
        load_driver()


@pytest.mark.skipif(sys.platform != "linux", reason="asks for the library that Linux has")
def test_without_a_driver_s_library_the_bindings_are_not_imported(monkeypatch):
    def refuse(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)  # importing it fails
    with pytest.raises(MissingCapabilityError, match="no NVIDIA driver on this machine"):
        load_driver.__wrapped__()


@pytest.mark.skipif(sys.platform != "linux", reason="asks for the library that Linux has")
def test_without_a_driver_s_library_that_is_the_reason_for_no_gpu(monkeypatch):
    def refuse(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert device._probe.__wrapped__() == (0, "no NVIDIA driver")


def test_without_a_driver_s_version_that_is_the_reason_for_no_gpu(monkeypatch):
    runtime = SimpleNamespace(driverGetVersion=lambda: 0)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(device, "_has_driver_library", lambda: True)
    monkeypatch.setattr(device, "load_cupy", lambda: cupy)
    assert device._probe.__wrapped__() == (0, "no NVIDIA driver")


@pytest.mark.skipif(sys.platform != "linux", reason="asks for the library that Linux has")
def test_with_the_driver_s_library_the_bindings_are_imported(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingCapabilityError, match=r"cuda\.bindings cannot be imported"):
        load_driver.__wrapped__()


@pytest.mark.gpu
def test_with_a_gpu_it_is_found(gpu):
    assert find_device("sm_90a") == gpu == require_device("sm_90a")
    assert gpu.runs("sm_90a")
    assert gpu.multiprocessors > 0
    assert gpu.name
