"""NVRTC: compiles with no GPU, no driver and no CUDA toolkit."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.toolchain.failures import compile_error, unsupported_arch
from fa4gen.toolchain.model import Built, Unit
from fa4gen.toolchain.nvrtc_program import NvrtcError, NvrtcProgram, import_nvrtc, release

_VERSION = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)", re.MULTILINE)
FIRST_WITH_CACHE = (12, 9)
"""First release with a cache of its own (on machines with a driver), and the option against it."""
_REMEDY = 'Install it with: pip install "nvidia-cuda-nvrtc>=13,<14"  (or use --compiler nvcc).'


class Nvrtc:
    """The NVRTC library that NVIDIA's binding finds; MissingCapabilityError when there is none."""

    name = "nvrtc"

    def __init__(self) -> None:
        self._nvrtc = import_nvrtc()
        self.release: tuple[int, int] = _release(self._nvrtc)

    @cached_property
    def version(self) -> str:
        """Full version, which the library writes only into its PTX."""
        return self._version_in(self.build_ptx(Unit("version", "", {}, "sm_90a")))

    def _version_in(self, ptx: str) -> str:
        match = _VERSION.search(ptx)
        return match[1] if match else ".".join(map(str, self.release))

    def options(self, unit: Unit) -> tuple[str, ...]:
        """Options for PTX and cubin of the exact architecture, with ptxas's report in the log."""
        more = ("-lineinfo",) if unit.line_info else ()
        # Results from its own cache on disk come without the log, which the lint needs.
        if self.release >= FIRST_WITH_CACHE:
            more = ("--no-cache", *more)
        return (f"-arch={unit.arch}", "-std=c++17", "--ptxas-options=-v", *more)

    def build(self, unit: Unit) -> Built:
        """Compile to PTX and cubin; CompileError with places, MissingCapabilityError."""
        program = self._compiled(unit, self.options(unit))
        ptx = program.ptx
        if "version" not in vars(self):
            self.version = self._version_in(ptx)
        return Built(ptx, program.cubin, program.log)

    def build_ptx(self, unit: Unit) -> str:
        """Compile to PTX alone: works on units with PTX that ptxas refuses."""
        more = ("-lineinfo",) if unit.line_info else ()
        return self._compiled(unit, (f"-arch={unit.virtual_arch}", "-std=c++17", *more)).ptx

    def _compiled(self, unit: Unit, options: tuple[str, ...]) -> NvrtcProgram:
        program = NvrtcProgram(self._nvrtc, unit.source, f"{unit.name}.cu", unit.headers)
        try:
            program.compile(options)
        except NvrtcError as error:
            log = program.log
            if "invalid value for --gpu-architecture" in log:
                version = ".".join(map(str, self.release))
                raise unsupported_arch(f"NVRTC {version}", unit.arch) from error
            raise compile_error(unit, log or str(error)) from error
        return program


def _release(nvrtc: Any) -> tuple[int, int]:
    try:
        return release(nvrtc)
    except Exception as error:  # of the binding's loader
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise MissingCapabilityError(Problem(f"NVRTC is not found: {why[0]}", _REMEDY)) from error
