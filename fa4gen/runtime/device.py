"""The GPUs of this machine, queried through CuPy; a machine without one is a valid answer."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fa4gen.designs.common.hardware import (
    ARCHITECTURES,
    Capability,
    capability_words,
    runs_on,
    target_remedy,
)
from fa4gen.errors import MissingCapabilityError, Problem

NO_DRIVER = "no NVIDIA driver"


@dataclass(frozen=True)
class DeviceInfo:
    """The facts about one GPU for the launcher and the reports."""

    ordinal: int
    name: str
    compute_capability: Capability
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int

    def runs(self, arch: str) -> bool:
        """Whether kernels for ``arch`` (such as sm_90a) run here."""
        return runs_on(arch, self.compute_capability)

    def __str__(self) -> str:
        major, minor = self.compute_capability
        return f"{self.name} (compute capability {major}.{minor})"


def load_cupy() -> Any:
    """Import cupy; MissingCapabilityError where that fails."""
    try:
        import cupy
    except ImportError as error:
        raise MissingCapabilityError(
            Problem(
                f"CuPy cannot be imported: {error}",
                remedy="install cupy-cuda13x (or cupy-cuda12x for a CUDA 12 driver)",
            )
        ) from error
    return cupy


@lru_cache(maxsize=1)
def load_driver() -> Any:
    """Import cuda.bindings.driver; MissingCapabilityError without an NVIDIA driver."""
    if not _has_driver_library():  # before the import, which takes a fifth of a second
        raise _no_driver()
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
    except ImportError as error:
        raise MissingCapabilityError(
            Problem(f"cuda.bindings cannot be imported: {error}", remedy="install cuda-bindings")
        ) from error
    except RuntimeError as error:  # the library libcuda.so.1 is not there
        raise _no_driver() from error
    return driver


def _no_driver() -> MissingCapabilityError:
    return MissingCapabilityError(
        Problem(f"{NO_DRIVER} on this machine", remedy="run this on a machine with a GPU")
    )


def _has_driver_library() -> bool:
    """Whether the driver's library can be loaded; True where that has to be tried."""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def device_count() -> int:
    """GPUs that CuPy sees; 0 without a driver."""
    return _probe()[0]


def why_no_device() -> str:
    """Return the reason for the lack of a GPU, in words; empty if there is one."""
    return _probe()[1]


@lru_cache(maxsize=1)
def _probe() -> tuple[int, str]:
    if not _has_driver_library():  # CuPy takes long to find that out, and calls it a version
        return 0, NO_DRIVER
    try:
        cupy = load_cupy()
        if not cupy.cuda.runtime.driverGetVersion():
            return 0, NO_DRIVER
        count = int(cupy.cuda.runtime.getDeviceCount())
    except MissingCapabilityError as error:
        return 0, error.problems[0].message
    except RuntimeError as error:  # CuPy's CUDARuntimeError: a driver that is too old
        return 0, f"CUDA reports {error}"
    return count, "" if count else "CUDA reports no device"


@lru_cache(maxsize=64)
def device_info(ordinal: int) -> DeviceInfo:
    """Query GPU number ``ordinal``; MissingCapabilityError if it does not exist."""
    if ordinal >= device_count():
        raise MissingCapabilityError(
            Problem(
                f"no GPU number {ordinal}: {why_no_device() or f'{device_count()} found'}",
                remedy="run this on a machine with an NVIDIA GPU and its driver",
            )
        )
    properties = load_cupy().cuda.runtime.getDeviceProperties(ordinal)
    name = properties["name"]
    return DeviceInfo(
        ordinal=ordinal,
        name=name.decode() if isinstance(name, bytes) else str(name),
        compute_capability=(int(properties["major"]), int(properties["minor"])),
        multiprocessors=int(properties["multiProcessorCount"]),
        memory_bytes=int(properties["totalGlobalMem"]),
        l2_bytes=int(properties["l2CacheSize"]),
    )


def all_devices() -> tuple[DeviceInfo, ...]:
    """Every GPU of this machine; empty without a driver."""
    return tuple(device_info(ordinal) for ordinal in range(device_count()))


def find_device(*archs: str) -> DeviceInfo | None:
    """Return the current GPU if it runs one of ``archs``, else the first that does, else None."""
    devices = [device for device in all_devices() if any(map(device.runs, archs))]
    if not devices:
        return None
    current = int(load_cupy().cuda.runtime.getDevice())
    return next((device for device in devices if device.ordinal == current), devices[0])


def require_device(arch: str) -> DeviceInfo:
    """Find a GPU, or raise MissingCapabilityError with those that are present."""
    found = find_device(arch)
    if found is not None:
        return found
    needed = capability_words(ARCHITECTURES[arch].runs_on)
    devices = all_devices()
    there = ", ".join(map(str, devices)) or why_no_device()
    remedies = dict.fromkeys(target_remedy(device.compute_capability) for device in devices)
    raise MissingCapabilityError(
        Problem(
            f"kernels for {arch} need a GPU of compute capability {needed}; here: {there}",
            remedy="; or ".join(["run this on such a machine, or leave the GPU out", *remedies]),
        )
    )
