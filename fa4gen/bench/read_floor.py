"""The read floor: the time of a kernel that only reads the bytes of ours (read_floor.cu).

A kernel that also computes on them cannot be faster, so the share of the floor is the share of the
memory's speed that a kernel reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fa4gen.bench.results import FLOOR, Series
from fa4gen.runtime.device import load_cupy, require_device
from fa4gen.runtime.module import LoadedKernel
from fa4gen.runtime.parameters import ParameterBlock, to_bytes
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

CHUNK = 16384
"""Bytes of a copy."""
THREADS = 128
LAUNCHES = ((1, 10), (2, 4), (2, 6))
"""CTAs a multiprocessor and copies in flight: which of them is fastest depends on the size."""
PARAMETERS = ("const char*", "int64", "int32")


@dataclass(frozen=True)
class FloorLaunch:
    """Reads memory once, on CuPy's current stream."""

    kernel: LoadedKernel
    grid: int
    parameters: ParameterBlock
    memory: Any
    """Kept as long as the launch."""

    def __call__(self) -> None:
        """Enqueue it."""
        stream = load_cupy().cuda.get_current_stream().ptr
        self.kernel.launch(self.grid, stream, self.parameters)


class ReadFloor:
    """The kernel, compiled and loaded once for each architecture."""

    name = FLOOR

    def __init__(self) -> None:
        """Compile nothing and touch no GPU yet."""
        self._loaded: dict[str, list[LoadedKernel]] = {}

    def launches(self, arch: str, memory: Any, size: int) -> dict[str, FloorLaunch]:
        """Return ways to read the first ``size`` bytes of ``memory``, a CuPy array, by their names.

        They read whole chunks of 16 KB; there are none for a smaller size. Raises
        MissingCapabilityError without a compiler or a GPU of the architecture.
        """
        chunks = min(size, memory.nbytes) // CHUNK
        if not chunks:
            return {}
        multiprocessors = require_device(arch).multiprocessors
        runs = {}
        for (ctas, copies), kernel in zip(LAUNCHES, self._kernels(arch), strict=True):
            values = (int(memory.data.ptr), chunks, copies)
            block = ParameterBlock(map(to_bytes, PARAMETERS, values))
            launch = FloorLaunch(kernel, ctas * multiprocessors, block, memory)
            runs[f"{FLOOR} {ctas}x{copies}"] = launch
        return runs

    def _kernels(self, arch: str) -> list[LoadedKernel]:
        if arch not in self._loaded:
            cubin = find_compiler().build(unit_of(arch)).cubin
            device = require_device(arch).ordinal
            self._loaded[arch] = [
                LoadedKernel(
                    cubin,
                    "read_floor",
                    device=device,
                    threads=THREADS,
                    dynamic_shared_bytes=copies * CHUNK,
                )
                for _, copies in LAUNCHES
            ]
        return self._loaded[arch]


def unit_of(arch: str) -> Unit:
    """Return the unit to compile for an architecture."""
    source = (files("fa4gen.bench") / "read_floor.cu").read_text(encoding="utf-8")
    return Unit("read_floor", source, {}, arch)


def fastest_launch(series: Iterable[Series]) -> Series:
    """Return the floor of several launches: the one with the least median."""
    return min(series, key=lambda one: one.median_ms)
