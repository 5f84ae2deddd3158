"""NVRTC: compiles with no GPU, no driver and no CUDA toolkit.

It is called through NVIDIA's own binding, which imports neither CuPy nor NumPy.
"""

from __future__ import annotations

import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.toolchain.failures import compile_error, unsupported_arch
from fa4gen.toolchain.model import Built, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_VERSION = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)", re.MULTILINE)
FIRST_WITH_CACHE = (12, 9)
"""First release with a cache of its own (on machines with a driver), and the option against it."""
_REMEDY = 'Install it with: pip install "nvidia-cuda-nvrtc>=13,<14"  (or use --compiler nvcc).'


class Nvrtc:
    """The NVRTC library that NVIDIA's binding finds; MissingCapabilityError when there is none."""

    name = "nvrtc"

    def __init__(self) -> None:
        self._nvrtc = _import_nvrtc()
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
    """Return major and minor version; MissingCapabilityError without the library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            major, minor = _values(nvrtc.nvrtcVersion())
    except Exception as error:  # of the binding's loader
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise MissingCapabilityError(Problem(f"NVRTC is not found: {why[0]}", _REMEDY)) from error
    return major, minor


class NvrtcError(Exception):
    """NVRTC refused a call; the message is the name of its status."""


def _import_nvrtc() -> Any:
    """Return the binding; MissingCapabilityError when it cannot be imported."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise MissingCapabilityError(
            Problem(
                f"cuda-bindings, which is needed to call NVRTC, cannot be imported: {error}",
                "Install it with: pip install cuda-bindings  (or use --compiler nvcc).",
            )
        ) from error
    return nvrtc


class NvrtcProgram:
    """One program; destroyed with the object. All methods raise NvrtcError."""

    def __init__(self, nvrtc: Any, source: str, name: str, headers: Mapping[str, str]) -> None:
        """Make a program of the text of the file ``name``; ``headers`` are texts by name."""
        self._nvrtc = nvrtc
        names = [header.encode() for header in headers]
        texts = [text.encode() for text in headers.values()]
        (self._handle,) = _values(
            nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), len(names), texts, names)
        )

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._nvrtc.nvrtcDestroyProgram(self._handle)

    def compile(self, options: Sequence[str]) -> None:
        """Compile; the log says why where this raises."""
        encoded = [option.encode() for option in options]
        _values(self._nvrtc.nvrtcCompileProgram(self._handle, len(encoded), encoded))

    @property
    def log(self) -> str:
        """The compiler's output."""
        nvrtc = self._nvrtc
        text = self._read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        return text.decode(errors="replace").replace("\0", "").strip("\n ")

    @property
    def ptx(self) -> str:
        """The PTX."""
        return (
            self._read(self._nvrtc.nvrtcGetPTXSize, self._nvrtc.nvrtcGetPTX).decode().rstrip("\0")
        )

    @property
    def cubin(self) -> bytes:
        """The machine code, an ELF file."""
        return self._read(self._nvrtc.nvrtcGetCUBINSize, self._nvrtc.nvrtcGetCUBIN)

    def _read(self, size: Callable[[Any], Any], read: Callable[[Any, bytearray], Any]) -> bytes:
        (length,) = _values(size(self._handle))
        found = bytearray(length)
        _values(read(self._handle, found))
        return bytes(found)


def _values(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values after the status of a call; NvrtcError."""
    status, *values = result
    if int(status):
        raise NvrtcError(status.name)
    return tuple(values)
