"""The vendored C launcher next to ours: the kernels through the code that users take away.

For kernel times it launches a call prepared once. The host's time of a launch is measured apart:
``host_time``.
"""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from fa4gen.bench.peers import Peer
from fa4gen.bench.results import VENDORED
from fa4gen.errors import Fa4genError, Problem
from fa4gen.overriding import override
from fa4gen.render.environment import open_templates
from fa4gen.runtime import arrays
from fa4gen.runtime.device import load_cupy
from fa4gen.vendoring import family as vendor_family
from fa4gen.vendoring.binding import Binding, Prepared
from fa4gen.vendoring.folder_files import folder_files
from fa4gen.vendoring.host_build import LIBRARY_FLAGS, build_library, compile_c, find_c_compiler
from fa4gen.vendoring.kernels import build_kernels
from fa4gen.vendoring.model import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.runtime.kernel import DriverCall
    from fa4gen.vendoring.binding import Args, KernelBinding

PREFIX = "bench"


class VendoredLibrary:
    """The kernels of a run, vendored and built by the host's C compiler."""

    def __init__(
        self,
        configs: Sequence[str],
        folder: Path,
        settings: Sequence[Setting] = (),
        templates: Path | None = None,
    ) -> None:
        """Build everything below ``folder``, which exists; ``templates``: a folder of own ones.

        Raises the errors of compiling kernels, and MissingCapabilityError without a C compiler.
        """
        opened = open_templates(templates)
        kernels = build_kernels(configs, PREFIX, templates=opened, settings=settings)
        for name, text in folder_files(Request(PREFIX), kernels, opened).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._binding = Binding(build_library(folder, folder / "libbench.so"), PREFIX)
        timer = folder / "host_time.so"
        with as_file(files("fa4gen.bench") / "host_time.c") as source:
            compile_c(
                find_c_compiler(), [*LIBRARY_FLAGS, "-D_POSIX_C_SOURCE=200809L"], [source], timer
            )
        self._timer = ctypes.CDLL(str(timer))
        for function in (self._timer.fa4gen_host_seconds, self._timer.fa4gen_driver_seconds):
            function.restype = ctypes.c_double

    def prepare(
        self, plan: Plan, tensors: Mapping[str, Any], *, alpha: float = 1.0, beta: float = 1.0
    ) -> PreparedCall:
        """Give a call with these tensors a workspace, and prepare it."""
        cupy = load_cupy()
        args = call_args(plan, tensors, alpha=alpha, beta=beta)
        kernel = self._binding.kernel(f"{PREFIX}_{plan.name}")
        size = kernel.workspace_bytes(ctypes.addressof(args))
        workspace = cupy.empty(max(size, 16), cupy.uint8)
        stream = int(cupy.cuda.get_current_stream().ptr)
        args.workspace, args.workspace_bytes = int(workspace.data.ptr), workspace.nbytes
        self._demand(self._binding.workspace_init(args.workspace, workspace.nbytes, stream))
        call = PreparedCall(self._binding, kernel, args, Prepared(), (workspace, tensors))
        self._demand(
            self._binding.prepare(
                kernel.handle, ctypes.addressof(args), ctypes.addressof(call.prepared)
            )
        )
        return call

    def host_seconds(self, call: PreparedCall, *, prepared: bool, stream: int, count: int) -> float:
        """Return the mean time that one of ``count`` launches takes the calling thread."""
        function = self._binding.launch_prepared if prepared else call.kernel.launch
        argument = call.prepared if prepared else call.args
        return self._checked(
            self._timer.fa4gen_host_seconds(
                ctypes.cast(function, ctypes.c_void_p),
                ctypes.c_void_p(ctypes.addressof(argument)),
                ctypes.c_void_p(stream),
                ctypes.c_int(count),
            )
        )

    def driver_seconds(self, plan: Plan, call: DriverCall, *, stream: int, count: int) -> float:
        """Return the mean time that cuLaunchKernel itself takes for the same launch."""
        driver = ctypes.CDLL("libcuda.so.1")
        return self._checked(
            self._timer.fa4gen_driver_seconds(
                ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p),
                ctypes.c_void_p(call.function),
                ctypes.c_uint(call.grid),
                ctypes.c_uint(plan.launch.threads),
                ctypes.c_uint(plan.launch.dynamic_shared_bytes),
                ctypes.c_void_p(stream),
                ctypes.c_void_p(call.parameters.address),
                ctypes.c_int(count),
            )
        )

    def _checked(self, seconds: float) -> float:
        if seconds < 0:
            raise Fa4genError(Problem("a launch failed while its host time was measured"))
        return seconds

    def _demand(self, status: int) -> None:
        if status:
            raise refused(self._binding, status)


def refused(binding: Binding, status: int) -> Fa4genError:
    """Return the error that a status stands for."""
    return Fa4genError(Problem(f"vendored launcher: {binding.words(status)}"))


@dataclass(frozen=True)
class PreparedCall:
    """A call of the vendored launcher, to be launched as often as wanted on the current stream."""

    binding: Binding
    kernel: KernelBinding
    args: Args
    prepared: Prepared
    keep: Any

    def __call__(self) -> None:
        """Launch on CuPy's current stream."""
        stream = int(load_cupy().cuda.get_current_stream().ptr)
        status = self.binding.launch_prepared(ctypes.addressof(self.prepared), stream)
        if status:
            raise refused(self.binding, status)

    @contextlib.contextmanager
    def by_graph(self) -> Iterator[PreparedCall]:
        """Give the same call with an executable graph, which is released in the end."""
        prepared = Prepared.from_buffer_copy(self.prepared)
        if status := self.binding.prepare_graph(ctypes.addressof(prepared)):
            raise refused(self.binding, status)
        try:
            yield replace(self, prepared=prepared)
        finally:
            self.binding.release_graph(ctypes.addressof(prepared))


@dataclass(frozen=True)
class VendoredPeer(Peer):
    """The C launcher of our own kernel: a peer of every kernel that it was built for."""

    library: VendoredLibrary
    name: str = VENDORED

    @override
    def prepare(self, plan: Any, operands: Any) -> Callable[[], Any]:
        call = self.library.prepare(plan, operands.own, **operands.scalars)

        def run() -> Any:
            call()
            return operands.out

        return run


def call_args(
    plan: Any, tensors: Mapping[str, Any], *, alpha: float = 1.0, beta: float = 1.0
) -> Args:
    """Return the C struct of a call; tensors that are None are not given."""
    views = {
        name: arrays.view(name, tensor)[0] for name, tensor in tensors.items() if tensor is not None
    }
    return vendor_family.family_of(plan).peer_args(plan, views, alpha=alpha, beta=beta)
