"""A vendored kernel in the emulator: launched by the folder's own C code through the stand-in.

The tensors of a case get addresses of device memory that does not exist. The launcher makes its
tensor maps and parameters of them; what it hands to the driver is what the emulator runs, on the
case's buffers at these addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fa4gen.emulator import Memory
from fa4gen.emulator.state.memory import FIXED_BASE
from fa4gen.errors import Fa4genError, Problem
from fa4gen.vendoring.binding import WORKSPACE_ALIGNMENT, Binding
from fa4gen.vendoring.case_calls import (
    CallError,
    call,
    counter_bytes,
    init_workspace,
    make_args,
    workspace_bytes,
)
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from fa4gen.verify.cases import MULTIPROCESSORS
from fa4gen.verify.emulator import (
    EmulatedCall,
    EmulatedKernel,
    EmulatorBackend,
    FindingsError,
)
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.vendoring.binding import KernelBinding
    from fa4gen.vendoring.standin import Launch, Memset
    from fa4gen.verify.buffers import CaseMemory, Image

ALLOCATION: Final = 512
"""Bytes: what allocations begin at multiples of, as the driver's do."""
GAP: Final = 1 << 13
"""The gap between allocations: memory outside all."""
STREAM: Final = 0x57EA_0010
WORKSPACE_POISON: Final = 0xA5
COOPERATIVE: Final = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE."""
DEPENDENT: Final = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""
CLUSTER_DIMENSION: Final = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION."""


class VendoredEmulator(EmulatorBackend):
    """The emulator behind a vendored library that was built with the stand-in."""

    def __init__(self, arch: str, library: Path, stand_in: Path, prefix: str, symbol: str) -> None:
        super().__init__(arch)
        self._library, self._stand_in = library, stand_in
        self._prefix, self._symbol = prefix, symbol

    def load(self, plan: Plan, compiled: CompiledKernel) -> EmulatedKernel:
        """Parse the PTX and load the library."""
        program = self._parse(plan, compiled)
        kernel = Binding(self._library, self._prefix).kernel(self._symbol)
        return VendoredEmulatedKernel(plan, program, kernel, StandIn(self._stand_in))


class VendoredEmulatedKernel(EmulatedKernel):
    """A kernel whose launches are those of a vendored library.

    Of two runs on the same case the first calls the kernel's function, the second prepares and
    launches. All runs work in turn on one workspace, which was poisoned and then initialised; a
    larger one follows where a case needs more.
    """

    def __init__(self, plan: Plan, program: Any, kernel: KernelBinding, stand_in: StandIn) -> None:
        super().__init__(plan, program)
        self._kernel = kernel
        self._stand_in = stand_in
        self._memory: CaseMemory | None = None
        self._again = False
        self._workspace: Image | None = None
        self._counter_bytes = counter_bytes(plan)

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Run on copies of the buffers; FindingsError, CallError where something is wrong."""
        self._again, self._memory = memory is self._memory, memory
        try:
            buffers = super().run(memory)
        except Fa4genError:
            self._workspace = None  # what it holds is not to be held against the next case
            raise
        counter = () if self._workspace is None else self._workspace[: self._counter_bytes]
        if any(counter):
            raise FindingsError(
                Problem(
                    f"{sum(map(bool, counter))} bytes of the workspace ({len(counter)}) are not "
                    "zero after the launch: the next one would count on from there",
                    "",
                )
            )
        return buffers

    def _calls(
        self, memory: CaseMemory, buffers: dict[str, Image], moved: Collection[str] = ()
    ) -> Sequence[EmulatedCall]:
        del moved  # all arrays are memory of the launch
        again = self._again
        places, end = _places(buffers)
        addresses = {name: places[view.buffer] + view.offset for name, view in memory.views.items()}
        args = make_args(self._plan, memory, addresses)
        count = memory.multiprocessors or MULTIPROCESSORS
        self._stand_in.use_device(SimulatedDevice(self._plan.arch, count))
        self._stand_in.reset()
        arrays = [*_arrays(memory, buffers, addresses), *self._give_workspace(args, end)]
        call(self._kernel, args, STREAM, prepared=again)
        launches = self._stand_in.launches
        _check_launches(launches, most=1 if self._plan.tile_list is None else 2)
        _check_cooperative(launches, expected=self._plan.launch.cooperative)
        _check_dependent(launches, expected=self._plan.launch.dependent_launch)
        return [_emulated_call(launch, arrays) for launch in launches]

    def _give_workspace(self, args: Any, end: int) -> Sequence[Memory]:
        """Put a workspace behind the buffers, as the last launch left it where it is large enough.

        It is initialised once: calls with other problems use it in turn.
        """
        import numpy as np

        size = workspace_bytes(self._kernel, args)
        if not size:
            return ()
        address = end + WORKSPACE_ALIGNMENT  # and a multiple of no more than that
        if self._workspace is None or self._workspace.size < size:
            self._workspace = np.full(size, WORKSPACE_POISON, np.uint8)
            init_workspace(self._kernel, address, size, STREAM)
            for one in self._stand_in.memsets:
                _apply(one, address, self._workspace)
        args.workspace, args.workspace_bytes = address, size
        return (Memory(self._workspace[:size], address=address, name="workspace"),)


def _places(buffers: dict[str, Image]) -> tuple[dict[str, int], int]:
    """Return the addresses of the buffers, and the end of their memory."""
    places, at = {}, FIXED_BASE
    for name, image in buffers.items():
        places[name] = at
        at = -(-(at + image.size + GAP) // ALLOCATION) * ALLOCATION
    return places, at


def _arrays(
    memory: CaseMemory, buffers: dict[str, Image], addresses: dict[str, int]
) -> list[Memory]:
    """Return the case's tensors as memory of the launch; memory around them is not allocated."""
    import numpy as np

    arrays, seen = [], set()
    for name, view in memory.views.items():
        place = (addresses[name], view.shape, view.strides)
        if 0 in view.shape or place in seen:
            continue
        seen.add(place)
        array = np.ndarray(
            view.shape,
            numpy_dtype(view.dtype),
            buffer=buffers[view.buffer].data,
            offset=view.offset,
            strides=view.strides,
        )
        arrays.append(Memory(array, address=addresses[name], name=name))
    return arrays


def _apply(memset: Memset, address: int, workspace: Image) -> None:
    start = memset.pointer - address
    if start < 0 or start + memset.num_bytes > workspace.size or memset.stream != STREAM:
        raise CallError(
            Problem(
                f"cuMemsetD8Async of {memset.num_bytes} bytes, {start} bytes behind the beginning "
                f"of the workspace, on stream {memset.stream:#x}: expected the {workspace.size} "
                f"bytes of the workspace and stream {STREAM:#x}",
                "",
            )
        )
    workspace[start : start + memset.num_bytes] = memset.value


def _check_launches(launches: Sequence[Launch], most: int) -> None:
    """Raise CallError unless that is nothing, or ``most`` launches on the case's stream."""
    if not launches or (len(launches) == most and {one.stream for one in launches} == {STREAM}):
        return
    streams = ", ".join(f"{launch.stream:#x}" for launch in launches)
    raise CallError(
        Problem(
            f"{len(launches)} launches, on the streams {streams}: expected {most}, on {STREAM:#x}",
            "",
        )
    )


def _check_cooperative(launches: Sequence[Launch], *, expected: bool) -> None:
    """Raise CallError unless the kernel's launch is cooperative where its CTAs need that.

    Those that wait for one another have to run at the same time, as all do in the emulator; a GPU
    gives no other promise of it.
    """
    for launch in launches[-1:]:
        found = _has(launch, COOPERATIVE)
        if found != expected:
            was = "a cooperative one" if found else "no cooperative one"
            wanted = "one, since its CTAs wait for one another" if expected else "none"
            raise CallError(Problem(f"the launch is {was}, the kernel needs {wanted}", ""))


def _check_dependent(launches: Sequence[Launch], *, expected: bool) -> None:
    """Raise CallError unless each launch may start early where its kernel waits, and only there."""
    for launch in launches:
        found = _has(launch, DEPENDENT)
        if found != expected:
            was = "dependent" if found else "not dependent"
            wanted = "a dependent one" if expected else "one that starts after the previous launch"
            raise CallError(
                Problem(f"the launch of {launch.entry} is {was}, the kernel needs {wanted}", "")
            )


def _has(launch: Launch, attribute: int) -> bool:
    return any(number == attribute and any(value[:4]) for number, value in launch.attributes)


def _emulated_call(launch: Launch, arrays: Sequence[Memory]) -> EmulatedCall:
    clusters = [
        [int.from_bytes(value[axis : axis + 4], "little") for axis in (0, 4, 8)]
        for number, value in launch.attributes
        if number == CLUSTER_DIMENSION
    ]
    return EmulatedCall(
        launch.entry,
        launch.grid,
        launch.block,
        clusters[0] if clusters else None,
        launch.dynamic_shared,
        launch.parameters,
        arrays,
    )
