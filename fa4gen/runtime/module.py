"""A cubin on a GPU: loaded, its kernel found and launched through the driver.

CuPy neither compiles nor chooses an architecture here, because it would drop the ``a`` of
``sm_90a``; it provides the context that the driver calls here work in.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from fa4gen.errors import CompileError, Fa4genError, Problem
from fa4gen.runtime.device import load_cupy, load_driver

if TYPE_CHECKING:
    from fa4gen.runtime.parameters import ParameterBlock


def launch_attributes(driver: Any, *, cooperative: bool) -> tuple[Any, ...]:
    """Return the attributes of a launch that may start before the previous one on its stream ends.

    A stream under capture turns the first into a programmatic edge of its graph.
    """
    names = driver.CUlaunchAttributeID
    dependent = driver.CUlaunchAttribute()
    dependent.id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    dependent.value.programmaticStreamSerializationAllowed = 1
    if not cooperative:
        return (dependent,)
    together = driver.CUlaunchAttribute()
    together.id = names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    together.value.cooperative = 1
    return dependent, together


class LoadedKernel:
    """One kernel of a cubin, loaded on one GPU, which must be current at each launch.

    The module is unloaded with the object: keep it as long as a CUDA graph holds the kernel.
    """

    def __init__(
        self,
        cubin: bytes,
        entry_point: str,
        *,
        device: int,
        threads: int,
        dynamic_shared_bytes: int,
        cooperative: bool = False,
        dependent: bool = False,
    ) -> None:
        """Load ``cubin`` and leave GPU number ``device`` current.

        CompileError when the driver refuses it or the kernel is not in it.
        """
        self.entry_point = entry_point
        self._driver = driver = load_driver()
        self._runtime = load_cupy().cuda.runtime
        self._success = driver.CUresult.CUDA_SUCCESS
        self._no_context = driver.CUresult.CUDA_ERROR_INVALID_CONTEXT
        self._device = device
        self.enter_context()
        self._module = self._check(driver.cuModuleLoadData(cubin), "cannot load the cubin")
        weakref.finalize(self, driver.cuModuleUnload, self._module).atexit = False
        self._function = self._check(
            driver.cuModuleGetFunction(self._module, entry_point.encode()), "no such kernel"
        )
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._check(
            driver.cuFuncSetAttribute(self._function, limit, dynamic_shared_bytes),
            f"{dynamic_shared_bytes} bytes of dynamic shared memory are refused",
        )
        self._block = (threads, 1, 1, dynamic_shared_bytes)
        self._cooperative = cooperative
        self._attributes = launch_attributes(driver, cooperative=cooperative) if dependent else ()

    def enter_context(self) -> None:
        """Make CuPy's context on the kernel's GPU current: a new thread has none."""
        self._runtime.setDevice(self._device)  # creates and binds it, since CUDA 12

    def launch(self, grid: int, stream: int, parameters: ParameterBlock) -> None:
        """Enqueue one launch of ``grid`` CTAs on the stream with this handle."""
        launch = self._driver.cuLaunchKernel
        arguments: tuple[Any, ...]
        arguments = (self._function, grid, 1, 1, *self._block, stream, parameters.address, 0)
        if self._attributes:
            config = self._config(grid, stream)
            launch = self._driver.cuLaunchKernelEx
            arguments = (config, self._function, parameters.address, 0)
        elif self._cooperative:  # which takes no `extra`
            launch, arguments = self._driver.cuLaunchCooperativeKernel, arguments[:-1]
        result = launch(*arguments)
        if result[0] == self._no_context:
            self.enter_context()
            result = launch(*arguments)
        if result[0] != self._success:
            raise Fa4genError(
                Problem(
                    f"{self.entry_point}: the launch failed: {result[0].name}",
                    remedy="an earlier kernel on this GPU may have failed: "
                    "synchronise before this call to see which",
                )
            )

    def _config(self, grid: int, stream: int) -> Any:
        config = self._driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes = self._block
        config.hStream = stream
        config.attrs = list(self._attributes)
        config.numAttrs = len(self._attributes)
        return config

    @property
    def handle(self) -> int:
        """The CUfunction, for callers of the driver."""
        return int(self._function)

    def _check(self, result: tuple[Any, ...], what: str) -> Any:
        if result[0] != self._success:
            raise CompileError(
                Problem(
                    f"{self.entry_point}: {what}: {result[0].name}",
                    remedy="compile the kernel again for this GPU's architecture",
                )
            )
        return result[1] if len(result) > 1 else None
