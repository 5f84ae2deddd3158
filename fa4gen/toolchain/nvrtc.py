"""NVRTC through CuPy: compiles with no GPU, no driver and no CUDA toolkit."""

from __future__ import annotations

import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.toolchain.cupy_import import import_nvrtc
from fa4gen.toolchain.elf import elf_size
from fa4gen.toolchain.failures import compile_error, unsupported_arch
from fa4gen.toolchain.model import Built, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)", re.MULTILINE)
FIRST_WITH_CACHE = (12, 9)
"""First release with a cache of its own (on machines with a driver), and the option against it."""
_REMEDY = 'Install it with: pip install "nvidia-cuda-nvrtc>=13,<14"  (or use --compiler nvcc).'


class Nvrtc:
    """The NVRTC library that CuPy finds; MissingCapabilityError when there is none."""

    name = "nvrtc"

    def __init__(self) -> None:
        self._nvrtc = import_nvrtc()
        self.release: tuple[int, int] = _release(self._nvrtc)

    @cached_property
    def version(self) -> str:
        """Full version, which the library gives only in the PTX that it makes."""
        ptx = self.build_ptx(Unit("version", "", {}, "sm_90a"))
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
        program = _Program(self._nvrtc, unit)
        program.compile(self.options(unit))
        return Built(program.ptx, program.cubin, program.log)

    def build_ptx(self, unit: Unit) -> str:
        """Compile to PTX alone: works on units whose PTX is refused."""
        program = _Program(self._nvrtc, unit)
        more = ("-lineinfo",) if unit.line_info else ()
        program.compile((f"-arch={unit.virtual_arch}", "-std=c++17", *more))
        return program.ptx


class _Program:
    """One NVRTC program; destroyed with the object."""

    def __init__(self, nvrtc: Any, unit: Unit) -> None:
        self._nvrtc = nvrtc
        self._unit = unit
        headers: Mapping[bytes, bytes] = {
            name.encode(): text.encode() for name, text in unit.headers.items()
        }
        self._handle = nvrtc.createProgram(
            unit.source, f"{unit.name}.cu", list(headers.values()), list(headers)
        )

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._nvrtc.destroyProgram(self._handle)

    def compile(self, options: tuple[str, ...]) -> None:
        try:
            self._nvrtc.compileProgram(self._handle, list(options))
        except self._nvrtc.NVRTCError as error:
            log = self.log
            if "invalid value for --gpu-architecture" in log:
                version = ".".join(map(str, self._nvrtc.getVersion()))
                raise unsupported_arch(f"NVRTC {version}", self._unit.arch) from error
            raise compile_error(self._unit, log or str(error)) from error

    @property
    def log(self) -> str:
        text: str = self._nvrtc.getProgramLog(self._handle)
        return text.replace("\0", "").strip("\n ")

    @property
    def ptx(self) -> str:
        text: bytes = self._nvrtc.getPTX(self._handle)
        return text.rstrip(b"\0").decode()

    @property
    def cubin(self) -> bytes:
        code: bytes = self._nvrtc.getCUBIN(self._handle)
        # CuPy drops the last byte, as it does with the zero after PTX. A cubin ends in the upper
        # half of an alignment, which is zero.
        return code + b"\0" if elf_size(code) == len(code) + 1 else code


def _release(nvrtc: Any) -> tuple[int, int]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            major, minor = nvrtc.getVersion()
    except Exception as error:  # CuPy passes on its loader's exceptions
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise MissingCapabilityError(Problem(f"NVRTC is not found: {why[0]}", _REMEDY)) from error
    return major, minor
