"""The common base of the launchers of all kernel families: devices, streams, prepared calls."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fa4gen.runtime import arrays
from fa4gen.runtime.device import device_info, load_cupy
from fa4gen.runtime.launch_limits import check_device
from fa4gen.runtime.module import LoadedKernel
from fa4gen.runtime.tile_counter import TileCounters
from fa4gen.runtime.tile_list import TileLists

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.runtime.parameters import ParameterBlock
    from fa4gen.runtime.tensor_view import TensorView

LAUNCHES_KEPT = 256


class HasDevice(Protocol):
    """The views of a call's arguments."""

    def __hash__(self) -> int:
        """Hash the views: the key of the launcher's prepared launches."""

    @property
    def device(self) -> int:
        """Ordinal of the GPU that they are on; negative for memory of the CPU."""


A = TypeVar("A", bound=HasDevice)


@dataclass(frozen=True)
class Call(Generic[A]):
    """A call with its arrays."""

    arguments: A
    out: Any
    """The caller's output, or a new one."""
    arrays: tuple[Any, ...]
    """The owners of the memory; the first one decides the stream."""
    lse: Any = None
    out_scales: Any = None


@dataclass(frozen=True)
class Packed:
    """Arguments that were checked, in the form of a launch; holds addresses, but no memory."""

    grid: int
    """CTAs; 0 without work."""
    parameters: ParameterBlock
    before: ParameterBlock | None = None
    """Parameters of the launch that lists the tiles, if there is one."""
    grid_before: int = 1
    """CTAs of that launch."""


@dataclass(frozen=True)
class DriverCall:
    """The arguments of cuLaunchKernel, except the stream, that differ between launches."""

    function: int
    """CUfunction."""
    grid: int
    parameters: ParameterBlock


@dataclass(frozen=True)
class _OnDevice:
    """The kernel's resources on one GPU; counters only where its scheduler needs them."""

    kernel: LoadedKernel
    counters: TileCounters | None
    listing: LoadedKernel | None = None
    lists: TileLists | None = None

    def packed(self, pack: Callable[..., Packed], arguments: Any, stream: int, size: int) -> Packed:
        """Return the launch for a stream, with the counter and a list of ``size`` bytes of it."""
        counter = self.counters.address(stream) if self.counters else 0
        if self.lists is None:
            return pack(arguments, counter)
        return pack(arguments, counter, self.lists.address(stream, size))


class Kernel(ABC, Generic[A]):
    """A compiled kernel. Thread-safe; modules and tensor maps are made at first use and kept."""

    def __init__(self, plan: KernelPlan, cubin: bytes) -> None:
        self.cubin = cubin
        self._plan = plan
        self._lock = threading.Lock()
        self._devices: dict[int, _OnDevice] = {}
        self._packed = lru_cache(maxsize=LAUNCHES_KEPT)(self._pack)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plan.name!r}, arch={self._plan.arch!r})"

    @abstractmethod
    def _check(self, arguments: A) -> Hashable:
        """Raise ArgumentError with all problems."""

    @abstractmethod
    def _pack(self, arguments: A, counter: int, tile_list: int = 0) -> Packed:
        """Check the arguments and turn them into a launch; the results are kept.

        ``counter`` and ``tile_list`` are addresses, 0 for kernels without.
        """

    def _list_bytes(self, arguments: A) -> int:
        """Return the bytes of the list of tiles that a call takes; 0 without."""
        del arguments
        return 0

    @property
    def _list_words(self) -> str:
        """The use of a launch's further memory, in words; empty without any."""
        return "" if self._plan.tile_list is None else "lists of tiles"

    @property
    @abstractmethod
    def _first(self) -> str:
        """Name of the argument that messages about the GPU mention."""

    def _enqueue(self, call: Call[A], *, launch: bool = True, kernel: bool = True) -> None:
        arguments = call.arguments
        device = arguments.device
        if device < 0:
            self._check(arguments)  # raises: this is not memory of a GPU
        runtime = load_cupy().cuda.runtime
        previous = runtime.getDevice()
        if previous != device:
            runtime.setDevice(device)
        try:
            on_device = self._devices.get(device)
            if on_device is None:
                self._check(arguments)
                on_device = self._on_device(device)
            stream = arrays.current_stream(call.arrays[0], device)
            size = self._list_bytes(arguments)
            packed = on_device.packed(self._packed, arguments, stream, size)
            if launch and packed.grid:
                if on_device.listing is not None and packed.before is not None:
                    on_device.listing.launch(packed.grid_before, stream, packed.before)
                if kernel:
                    on_device.kernel.launch(packed.grid, stream, packed.parameters)
        finally:
            if previous != device:
                runtime.setDevice(previous)

    def _driver_call(self, call: Call[A]) -> DriverCall:
        """Return the arguments of a prepared call for the driver, on the current stream."""
        device = call.arguments.device
        on_device = self._devices[device]
        stream = arrays.current_stream(call.arrays[0], device)
        size = self._list_bytes(call.arguments)
        packed = on_device.packed(self._packed, call.arguments, stream, size)
        return DriverCall(on_device.kernel.handle, packed.grid, packed.parameters)

    def _on_device(self, device: int) -> _OnDevice:
        plan = self._plan
        with self._lock:
            if device not in self._devices:
                check_device(plan, device_info(device), self._first)
                has_counter = any(row.name == "tile_counter" for row in plan.parameters)
                kernel = LoadedKernel(
                    self.cubin,
                    plan.entry_point,
                    device=device,
                    threads=plan.launch.threads,
                    dynamic_shared_bytes=plan.launch.dynamic_shared_bytes,
                    cooperative=plan.launch.cooperative,
                    dependent=plan.launch.dependent_launch,
                )
                counters = TileCounters() if has_counter else None
                listing = plan.tile_list
                lists = TileLists(self._list_words) if self._list_words else None
                if listing is None:
                    self._devices[device] = _OnDevice(kernel, counters, lists=lists)
                else:
                    self._devices[device] = _OnDevice(
                        kernel,
                        counters,
                        LoadedKernel(
                            self.cubin,
                            listing.entry_point,
                            device=device,
                            threads=listing.threads,
                            dynamic_shared_bytes=0,
                            dependent=plan.launch.dependent_launch,
                        ),
                        lists,
                    )
            return self._devices[device]

    def _enter_context(self, device: int) -> None:
        """Make a context current on this thread, which may have none."""
        self._devices[device].kernel.enter_context()


class Launch:
    """One prepared call: calling it enqueues the kernel again on the same memory.

    It keeps the arrays alive. ``out``, ``lse`` and ``out_scales`` are where the results go (the
    last two are None for a kernel without). The stream is chosen at each call, as the kernel does.
    """

    def __init__(self, kernel: Kernel[Any], call: Call[Any]) -> None:
        """Keep a checked call; made by the kernel's ``prepare``."""
        self.out = call.out
        self.lse = call.lse
        self.out_scales = call.out_scales
        self._kernel = kernel
        self._call = call

    def __call__(self) -> None:
        """Enqueue the kernel."""
        self._kernel._enqueue(self._call)

    def before(self) -> None:
        """Enqueue only the launch before the kernel, if it has one: to measure that alone."""
        self._kernel._enqueue(self._call, kernel=False)

    def driver_call(self) -> DriverCall:
        """Return the arguments for the driver: to measure the driver alone."""
        return self._kernel._driver_call(self._call)


def view_optional(name: str, array: Any) -> tuple[TensorView | None, Any]:
    """Call ``arrays.view`` for an argument that may be None."""
    return (None, None) if array is None else arrays.view(name, array)
