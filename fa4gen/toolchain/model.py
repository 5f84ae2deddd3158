"""Inputs and outputs of a compiler, the same for NVRTC and nvcc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Unit:
    """One kernel to compile: the text of N.cu and of the headers that it includes."""

    name: str
    """The kernel's name; the compiler sees the source as ``<name>.cu``."""
    source: str
    headers: Mapping[str, str]
    """Text by the name in ``#include "name"``."""
    arch: str
    """Exact architecture: "sm_90a"."""
    line_info: bool = False
    """Ask for source lines in PTX and cubin. They then hold paths: for diagnosis only."""

    @property
    def virtual_arch(self) -> str:
        """``sm_90a`` -> ``compute_90a``."""
        return self.arch.replace("sm_", "compute_", 1)


@dataclass(frozen=True)
class Built:
    """The result of compiling a unit."""

    ptx: str
    cubin: bytes
    log: str
    """The compiler's whole output, including ptxas's report of registers and spills."""


class Compiler(Protocol):
    """NVRTC or nvcc."""

    @property
    def name(self) -> str:
        """Return "nvrtc" or "nvcc"."""

    @property
    def version(self) -> str:
        """Full version: "13.5.37"."""

    def options(self, unit: Unit) -> tuple[str, ...]:
        """Options that determine the result, for the cache key and the manifest."""

    def build(self, unit: Unit) -> Built:
        """Compile to PTX and cubin; CompileError with places, MissingCapabilityError."""

    def build_ptx(self, unit: Unit) -> str:
        """Compile to PTX alone: works on units with PTX that ptxas refuses."""


@dataclass(frozen=True)
class Resources:
    """A kernel's resources, as the compiler reports them. Bytes are per thread, shared per CTA."""

    registers: int
    """Per thread at launch; ``setmaxnreg`` changes them later."""
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    """Per CTA; dynamic shared memory comes on top (the plan's ``dynamic_shared_bytes``)."""
    local_bytes: int
    """Local memory in addition to the stack frame."""


@dataclass(frozen=True)
class Finding:
    """A relevant line in a compiler's log, with the suggested fix."""

    code: str
    """ptxas's code ("C7511"), or "spill", "stack", "local", "report", "ptxas", "source"."""
    severity: Severity
    message: str
    remedy: str
    log_lines: tuple[str, ...]
    """The lines of the log that say so, verbatim."""
    file: str = ""
    """``<name>.cu`` or a header, where the place is known."""
    line: int = 0
    ptx_line: int = 0
    """Line of the PTX that the compiler names; 0 when it names none."""
    places: tuple[str, ...] = ()
    """Further places in words, such as the source lines with accesses to an array."""

    @property
    def forbids(self) -> bool:
        """Whether it fails the compile."""
        return self.severity == "error"


@dataclass(frozen=True)
class CompiledKernel:
    """A compiled kernel with the proof of how it compiled."""

    name: str
    arch: str
    ptx: str
    cubin: bytes
    log: str
    compiler: str
    """"nvrtc" or "nvcc"."""
    compiler_version: str
    options: tuple[str, ...]
    resources: Resources
    findings: tuple[Finding, ...]
    cached: bool
    """Taken from the cache rather than compiled now."""
    seconds: float
    """The time of the compiler, whenever that was."""
    key: str
    """Content key: everything that decides the result went into it."""
    cache_note: str = ""
    """Why the result could not be kept in the cache, if so."""

    @property
    def clean(self) -> bool:
        """Whether nothing in the log is forbidden."""
        return not any(finding.forbids for finding in self.findings)
