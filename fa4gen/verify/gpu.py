"""Runs cases on a GPU through the launcher, and detects a kernel that crashes or hangs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fa4gen.errors import Problem
from fa4gen.runtime.device import DeviceInfo, find_device, load_cupy, require_device
from fa4gen.runtime.strides import BITS_ACCEPTED
from fa4gen.verify.backend import StoppedError
from fa4gen.verify.family import family_of
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.buffers import CaseMemory, Image, View
    from fa4gen.verify.family import Family

TIME_LIMIT_S = 20.0
"""The largest case takes milliseconds: a kernel that takes this long is waiting for something."""
NOT_READY = 600
"""cudaErrorNotReady: the event has not happened yet."""


class GpuBackend:
    """The GPU of this machine that runs ``arch``."""

    same_bits = True
    emulates = False

    def __init__(self, arch: str, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._arch = arch
        self._time_limit_s = time_limit_s

    @property
    def device(self) -> DeviceInfo:
        """Return the GPU; MissingCapabilityError without one of this architecture."""
        return require_device(self._arch)

    @property
    def name(self) -> str:
        """The GPU's name."""
        return self.device.name

    @property
    def proof(self) -> str:
        """The proof of a kernel that ran here."""
        return f"ran on {self.device.name}"

    @property
    def array_module(self) -> Any:
        """CuPy."""
        return load_cupy()

    def available(self) -> bool:
        """Whether there is such a GPU."""
        return find_device(self._arch) is not None

    def load(self, plan: Plan, compiled: CompiledKernel) -> GpuKernel:
        """Load the cubin; the launcher does it at the first call."""
        cupy = load_cupy()
        cupy.cuda.Device(self.device.ordinal).use()
        return GpuKernel(family_of(plan), compiled.cubin, self._time_limit_s)


class GpuKernel:
    """A kernel on the current GPU."""

    def __init__(self, family: Family, cubin: bytes, time_limit_s: float) -> None:
        self._family = family
        self._kernel = family.gpu_kernel(cubin)
        self._time_limit_s = time_limit_s

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Copy the buffers there, run the kernel, copy them back."""
        cupy = load_cupy()
        runtime_errors = (
            cupy.cuda.runtime.CUDARuntimeError,
            cupy.cuda.driver.CUDADriverError,
        )
        try:
            device = {name: cupy.asarray(image) for name, image in memory.buffers.items()}
            arrays = {name: _view(cupy, device, view) for name, view in memory.views.items()}
            self._call(arrays, memory)
            self._wait(cupy)
            return {name: cupy.asnumpy(buffer) for name, buffer in device.items()}
        except runtime_errors as error:
            raise StoppedError(
                Problem(
                    f"the kernel crashed: {error}",
                    "compute-sanitizer shows which instruction; run the case alone under it.",
                )
            ) from error

    def take_coverage(self) -> None:
        """Return None: a GPU records no coverage."""

    def _call(self, arrays: Mapping[str, Any], memory: CaseMemory) -> None:
        """Enqueue the kernel on the current stream."""
        self._family.call(self._kernel, arrays, memory)

    def _wait(self, cupy: Any) -> None:
        """Wait for the kernel as CuPy's synchronize does, but with a time limit."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        deadline = time.monotonic() + self._time_limit_s
        while (status := cupy.cuda.runtime.eventQuery(event.ptr)) == NOT_READY:
            if time.monotonic() > deadline:
                raise StoppedError(
                    Problem(
                        f"the kernel did not end within {self._time_limit_s:g} s: "
                        "a wait without its arrive",
                        "Compare who arrives at each barrier and who waits: fa4gen explain.",
                    )
                )
            time.sleep(1e-4)
        if status:
            raise cupy.cuda.runtime.CUDARuntimeError(status)


def _view(cupy: Any, device: dict[str, Any], view: View) -> Any:
    """Return the tensor of ``view`` in the buffers on the GPU."""
    return cupy.ndarray(
        view.shape,
        BITS_ACCEPTED.get(view.dtype) or numpy_dtype(view.dtype),
        memptr=device[view.buffer].data + view.offset,
        strides=view.strides,
    )
