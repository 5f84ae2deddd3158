"""Where a compiled kernel can be run: on a GPU, or in the emulator; behind one small door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.errors import Fa4genError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.shared.plans import Plan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.buffers import CaseMemory, Image


class StoppedError(Fa4genError):
    """A kernel crashed or did not end. Nothing more can be run by this process."""


class Runnable(Protocol):
    """One kernel, loaded."""

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Run on a copy of the buffers of ``memory`` and return all of them as they are afterwards.

        Raises StoppedError, and other Fa4genErrors for a call that was refused.
        """

    def take_coverage(self) -> Coverage | None:
        """Return what ran of the kernel since this was last asked; None where that is not known."""


class Backend(Protocol):
    """A way to run kernels of one architecture."""

    @property
    def name(self) -> str:
        """What it is, for people: "NVIDIA H200"."""

    @property
    def proof(self) -> str:
        """How far a kernel is proved that passes here: "ran on NVIDIA H200", "emulated"."""

    @property
    def array_module(self) -> Any:
        """numpy, or cupy where the backend has a GPU that can compute large references."""

    @property
    def same_bits(self) -> bool:
        """Whether two runs on the same inputs have to give the same bits."""

    @property
    def emulates(self) -> bool:
        """Whether it works on the CPU: slower, so that it gets fewer and smaller cases."""

    def available(self) -> bool:
        """Whether this machine has it."""

    def load(self, plan: Plan, compiled: CompiledKernel) -> Runnable:
        """Make a kernel ready to run."""


def make_backends() -> tuple[Callable[[str], Backend], ...]:
    """Return the backends by preference, each to be called with an architecture."""
    from fa4gen.verify.emulator import EmulatorBackend
    from fa4gen.verify.gpu import GpuBackend

    return (GpuBackend, EmulatorBackend)


def pick_backend(arch: str) -> Backend | None:
    """Return the first backend for ``arch`` that this machine has; None where there is none."""
    for make in make_backends():
        backend = make(arch)
        if backend.available():
            return backend
    return None
