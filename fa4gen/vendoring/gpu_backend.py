"""A vendored kernel on a GPU: launched by the folder's own C code through the real driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fa4gen.errors import Problem
from fa4gen.runtime.device import load_cupy
from fa4gen.vendoring.binding import WORKSPACE_ALIGNMENT, Binding
from fa4gen.vendoring.case_calls import (
    CallError,
    call,
    counter_bytes,
    init_workspace,
    make_args,
    workspace_bytes,
)
from fa4gen.verify.family import family_of
from fa4gen.verify.gpu import TIME_LIMIT_S, GpuBackend, GpuKernel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.vendoring.binding import KernelBinding
    from fa4gen.verify.buffers import CaseMemory, Image

WORKSPACE_POISON: Final = 0xA5


class VendoredGpu(GpuBackend):
    """The GPU of this machine that runs ``arch``, behind a vendored library."""

    def __init__(self, arch: str, library: Path, prefix: str, symbol: str) -> None:
        super().__init__(arch)
        self._library, self._prefix, self._symbol = library, prefix, symbol

    def load(self, plan: Plan, compiled: CompiledKernel) -> GpuKernel:
        """Load the library, which has the cubin that runs: not that of ``compiled``."""
        load_cupy().cuda.Device(self.device.ordinal).use()
        kernel = Binding(self._library, self._prefix).kernel(self._symbol)
        return VendoredGpuKernel(plan, compiled.cubin, kernel, self.device.ordinal)


class VendoredGpuKernel(GpuKernel):
    """A kernel whose launches are those of a vendored library.

    Of two runs on the same case the first calls the kernel's function on a workspace that was
    poisoned and then initialised; the second prepares and launches, on what the first left in it.
    """

    def __init__(self, plan: Plan, cubin: bytes, kernel: KernelBinding, device: int) -> None:
        super().__init__(family_of(plan), cubin, TIME_LIMIT_S)
        self._plan = plan
        self._binding = kernel
        self._device = device
        self._memory: CaseMemory | None = None
        self._workspace: Any = None

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Copy the buffers there, run the kernel, copy them back."""
        cupy = load_cupy()
        cupy.cuda.runtime.setDevice(self._device)  # a new thread has no context
        images = super().run(memory)
        counter = None if self._workspace is None else self._workspace[: counter_bytes(self._plan)]
        if counter is not None and (left := int(cupy.count_nonzero(counter))):
            raise CallError(
                Problem(
                    f"{left} bytes of the workspace ({counter.size}) are not zero after "
                    "the launch: the next one would count on from there",
                    "",
                )
            )
        return images

    def _call(self, arrays: Mapping[str, Any], memory: CaseMemory) -> None:
        again, self._memory = memory is self._memory, memory
        addresses = {name: int(array.data.ptr) for name, array in arrays.items()}
        args = make_args(self._plan, memory, addresses)
        stream = int(load_cupy().cuda.get_current_stream().ptr)
        self._give_workspace(args, stream, again)
        call(self._binding, args, stream, prepared=again)

    def _give_workspace(self, args: Any, stream: int, again: bool) -> None:
        """Allocate a workspace of no more than it needs, initialised unless it was used before."""
        size = workspace_bytes(self._binding, args)
        if not size:
            self._workspace = None
            return
        if not again or self._workspace is None:
            cupy = load_cupy()
            space = cupy.full(WORKSPACE_ALIGNMENT + size, WORKSPACE_POISON, cupy.uint8)
            self._workspace = space[WORKSPACE_ALIGNMENT:]
            init_workspace(self._binding, int(self._workspace.data.ptr), size, stream)
        args.workspace, args.workspace_bytes = int(self._workspace.data.ptr), size
