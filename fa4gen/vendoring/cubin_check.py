"""Whether the machine code in a vendored library is what its kernel's source compiles to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fa4gen.errors import Problem
from fa4gen.vendoring.case_calls import CallError
from fa4gen.vendoring.standin import SimulatedDevice, StandIn

if TYPE_CHECKING:
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.vendoring.binding import KernelBinding

SAME: Final = "as compiled from kernels/"
_VERSION = re.compile(rb"Cuda compilation tools, release [\d.]+, V(\d+\.\d+\.\d+)")


def load_cubin(kernel: KernelBinding, stand_in: StandIn, arch: str) -> bytes:
    """Return the image that the library loads; CallError where it does not get there."""
    stand_in.use_device(SimulatedDevice(arch))
    stand_in.reset()
    status = kernel.library.load(kernel.handle)
    if status or len(stand_in.images) != 1:
        words = kernel.library.words(status) if status else "nothing was loaded"
        raise CallError(Problem(f"{kernel.symbol}: its cubin cannot be loaded: {words}", ""))
    return stand_in.images[0].data


def cubin_compiler_version(cubin: bytes) -> str:
    """Return the version of the compiler that made a cubin, "" where it does not say."""
    found = _VERSION.search(cubin)
    return found[1].decode() if found else ""


def compare_cubin(found: bytes, compiled: CompiledKernel, symbol: str) -> tuple[str, str]:
    """Compare the cubin ``found`` with ``compiled``; return what is known, and what is wrong.

    The first is ``SAME``, or why the two were not compared; "" where the second
    says that they differ.
    """
    if found == compiled.cubin:
        return SAME, ""
    made_by, here = cubin_compiler_version(found), compiled.compiler_version
    if made_by != here:
        return (
            f"not compared with kernels/: compiled by version {made_by or 'unknown'}, "
            f"the compiler here is {here}",
            "",
        )
    return "", (
        f"the cubin in cubins/ ({len(found)} bytes) is not what kernels/{symbol}.cu compiles to "
        f"with the same compiler, {here} ({len(compiled.cubin)} bytes)"
    )
