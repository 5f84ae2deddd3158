"""The interface of backends: a compiled kernel runs on a GPU or in the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.errors import Fa4genError

if TYPE_CHECKING:
    from fa4gen.designs.common.plans import Plan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.buffers import CaseMemory, Image


class StoppedError(Fa4genError):
    """A kernel crashed or hung. This process can run nothing more."""


class Runnable(Protocol):
    """One kernel, loaded."""

    def run(self, memory: CaseMemory) -> dict[str, Image]:
        """Run on a copy of the buffers of ``memory`` and return all of them as they are afterwards.

        Raises StoppedError, and other Fa4genErrors for a call that was refused.
        """

    def take_coverage(self) -> Coverage | None:
        """Return the kernel's coverage since the last call; None where that is not known."""


class Backend(Protocol):
    """A way to run kernels of one architecture."""

    @property
    def name(self) -> str:
        """Name for messages: "NVIDIA H200"."""

    @property
    def proof(self) -> str:
        """The proof of a kernel that passes here: "ran on NVIDIA H200", "emulated"."""

    @property
    def array_module(self) -> Any:
        """numpy, or cupy where the backend has a GPU that can compute large references."""

    @property
    def same_bits(self) -> bool:
        """Whether two runs on the same inputs must give the same bits."""

    @property
    def emulates(self) -> bool:
        """Whether it works on the CPU: slower, so that it gets fewer and smaller cases."""

    def available(self) -> bool:
        """Whether this machine has it."""

    def load(self, plan: Plan, compiled: CompiledKernel) -> Runnable:
        """Make a kernel ready to run."""
