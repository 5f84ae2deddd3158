"""One problem through both launchers: fa4gen.runtime and the C one over the stand-in driver."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from fa4gen.designs.common.score_text import GIVEN
from fa4gen.designs.registry import family_of
from fa4gen.emulator.recorder import driver_maps
from fa4gen.emulator.state.map_bits import MapError
from fa4gen.errors import ArgumentError, MissingCapabilityError
from fa4gen.runtime.refusal import refusal
from fa4gen.runtime.tile_counter import COUNTER_BYTES
from fa4gen.vendoring.binding import Args, Binding, Prepared
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from tests.vendoring.launcher.shipped import PREFIX, WARNINGS, parameter_bytes
from tests.vendoring.statuses import describe_status

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.designs.common.model import Parameter
    from fa4gen.designs.common.plans import Plan
    from fa4gen.runtime.parameters import ParameterBlock

DEVICES_OF_A_COPY = 16
WAYS = ("called", "prepared", "graph")
"""By the kernel's function, prepared, and prepared with a graph."""
MAP_TYPES = {
    "float8_e4m3fn": 0,
    "float4_e2m1fn_x2": 0,
    "uint32": 2,
    "float16": 6,
    "float32": 7,
    "bfloat16": 9,
}
MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTIONS = {64: 1, 128: 2, 256: 3}
COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE."""
DEPENDENT = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""
STREAM = 0x5714EA


@dataclass(frozen=True)
class Made:
    """A launch, or none where there was nothing to do."""

    grid: int
    block: int
    dynamic_shared: int
    parameters: tuple[bytes, ...]
    before: tuple[bytes, ...] | None = None
    """Parameters of the launch that lists the tiles, where there is one."""


@dataclass(frozen=True)
class Refused:
    """The arguments that are named."""

    arguments: frozenset[str]
    words: str = ""


NOTHING = Made(0, 0, 0, ())


def python_outcome(plan: Plan, arguments: Any, multiprocessors: int, counter: int) -> Any:
    """Return the outcome of fa4gen.runtime: the code of the launcher but for the GPU."""
    launcher = family_of(plan).launcher.load()
    sm = SimulatedDevice(plan.arch).sm

    def encode(spec):
        try:
            return driver_maps.encode(
                data_type=MAP_TYPES[spec.dtype],
                address=spec.pointer,
                dims=spec.dims,
                strides=spec.strides,
                box=spec.box,
                steps=(1,) * len(spec.dims),
                interleave=0,
                swizzle=MAP_SWIZZLES[spec.swizzle],
                l2=PROMOTIONS[spec.l2_promotion],
                fill=0,
                sm=sm,
            )
        except MapError as error:
            raise refusal(spec.tensor, str(error), "a tensor map") from None

    kernel = launcher(plan, b"")
    device = SimpleNamespace(multiprocessors=multiprocessors)
    with (  # create: merging needs neither
        mock.patch(f"{launcher.__module__}.device_info", return_value=device, create=True),
        mock.patch(f"{launcher.__module__}.encode", encode, create=True),
        mock.patch.object(kernel, "_enter_context", return_value=None),
    ):
        try:
            packed = kernel._pack(arguments, counter, counter + counter_bytes(plan))
        except ArgumentError as error:
            keys = {problem.key for problem in error.problems}
            given = [name.removeprefix(GIVEN) for name in getattr(plan, "given_names", ())]
            if any(key in given or key.startswith("tensor") for key in keys):
                keys.add("tensors")  # the C launcher's argument for all of them
            return Refused(frozenset(keys), str(error))
    if not packed.grid:
        return NOTHING
    return Made(
        packed.grid,
        plan.launch.threads,
        plan.launch.dynamic_shared_bytes,
        values(packed.parameters, plan.parameters),
        None if packed.before is None else values(packed.before, plan.tile_list.parameters),
    )


def values(block: ParameterBlock, parameters: tuple[Parameter, ...]) -> tuple[bytes, ...]:
    """The bytes of each parameter."""
    return tuple(block.value(i, parameter_bytes(row.c_type)) for i, row in enumerate(parameters))


def counter_bytes(plan: Plan) -> int:
    """Return the bytes of the workspace before the list of tiles."""
    return COUNTER_BYTES * any(row.name == "tile_counter" for row in plan.parameters)


@dataclass
class Copy:
    """A copy of the library, which asks each device for its facts once."""

    binding: Binding
    devices: list[SimulatedDevice] = field(default_factory=list)


class CLauncher:
    """The C launcher over the stand-in, on any device."""

    def __init__(self, library: Path, stand_in: StandIn, prefix: str = PREFIX) -> None:
        self.stand_in = stand_in
        self.library = library
        self._prefix = prefix
        self._copies: list[Copy] = []
        self._places: dict[SimulatedDevice, tuple[Copy, int]] = {}
        self.ordinal = 0
        """The ordinal of the device that was made current last."""

    def on(self, device: SimulatedDevice) -> Binding:
        """Make the device current; return the library that may be used there."""
        if device not in self._places:
            if not self._copies or len(self._copies[-1].devices) == DEVICES_OF_A_COPY:
                number = len(self._copies)
                path = self.library.with_name(f"{self.library.stem}_{number}.so")
                shutil.copy(self.library, path)
                self._copies.append(Copy(Binding(path, self._prefix)))
            copy = self._copies[-1]
            self._places[device] = (copy, len(copy.devices))
            copy.devices.append(device)
        copy, ordinal = self._places[device]
        self.stand_in.set_devices(*copy.devices)
        self.stand_in.set_current(ordinal)
        self.ordinal = ordinal
        return copy.binding

    def outcome(self, plan: Plan, args: Args, multiprocessors: int, way: str = "called") -> Any:
        """Return the outcome of the C launcher for the arguments, by one of WAYS."""
        library = self.on(SimulatedDevice(plan.arch, multiprocessors))
        kernel = library.kernel(plan.name)
        self.stand_in.reset()
        if way != "called":
            first, moved = Prepared(), Prepared()
            status = library.prepare(kernel.handle, ctypes.byref(args), ctypes.byref(first))
            assert not self.stand_in.launches
            if not status:
                ctypes.memmove(ctypes.byref(moved), ctypes.byref(first), ctypes.sizeof(Prepared))
                ctypes.memset(ctypes.byref(first), 0xFF, ctypes.sizeof(Prepared))
                if way == "graph":
                    assert library.prepare_graph(ctypes.byref(moved)) == 0
                    assert not self.stand_in.launches
                status = library.launch_prepared(ctypes.byref(moved), STREAM)
                assert library.release_graph(ctypes.byref(moved)) == 0
                assert self.stand_in.living == 0
        else:
            status = kernel.launch(ctypes.byref(args), STREAM)
        launches = self.stand_in.launches
        if status:
            assert not launches
            reason, argument = describe_status(status)
            assert reason != "DRIVER_ERROR", library.words(status)
            return Refused(frozenset([argument.lower()]), f"{reason}: {library.words(status)}")
        if not launches:
            return NOTHING
        *before, launch = launches
        one = (1).to_bytes(64, "little")
        dependent = ((DEPENDENT, one),) if plan.launch.dependent_launch else ()
        assert len(before) == (plan.tile_list is not None)
        for listing in before:
            assert (listing.entry, listing.stream) == (plan.tile_list.entry_point, STREAM)
            assert (listing.grid, listing.dynamic_shared) == ((1, 1, 1), 0)
            assert listing.attributes == dependent
            assert listing.block == (plan.tile_list.threads, 1, 1)
        assert (launch.entry, launch.stream) == (plan.entry_point, STREAM)
        cooperative = ((COOPERATIVE, one),) if plan.launch.cooperative else ()
        assert launch.attributes == (*dependent, *cooperative)
        assert launch.grid[1:] == launch.block[1:] == (1, 1)
        return Made(
            launch.grid[0],
            launch.block[0],
            launch.dynamic_shared,
            launch.parameters,
            before[0].parameters if before else None,
        )


def build_launcher(folder: Path, *flags: str) -> CLauncher:
    """Build a folder's library over the stand-in; skip where there is no C compiler."""
    try:
        stand_in = StandIn()
        target = folder.with_name(f"{folder.name}.so")
        options = [*(flags or ("-O1",)), *WARNINGS]
        return CLauncher(
            build_library(folder, target, stand_in=stand_in.path, flags=options), stand_in
        )
    except MissingCapabilityError as error:
        pytest.skip(str(error))


def compare(python: Any, c: Any) -> None:
    """Fail unless both made the same launch, or both refused and C named one of Python's."""
    if isinstance(python, Refused) and isinstance(c, Refused):
        assert c.arguments <= python.arguments, (c.words, python.words)
    else:
        assert c == python
