"""Programs of NVRTC through NVIDIA's own binding, which imports neither CuPy nor NumPy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from fa4gen.errors import MissingCapabilityError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class NvrtcError(Exception):
    """NVRTC refused a call; the message is the name of its status."""


def import_nvrtc() -> Any:
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


def release(nvrtc: Any) -> tuple[int, int]:
    """Return major and minor version; without the library the binding's error is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        major, minor = _values(nvrtc.nvrtcVersion())
    return major, minor


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
