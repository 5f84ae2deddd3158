"""What this machine has for compiling: Python, packages, compilers by what they compile, cache."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from fa4gen.errors import Fa4genError
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.model import Compiler

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
_NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


@dataclass(frozen=True)
class Requirement:
    """A package that fa4gen uses; one of ``names`` will do."""

    names: tuple[str, ...]
    purpose: str
    optional: bool = False


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(("jinja2",), "templates"),
    Requirement(("click",), "command line"),
    Requirement(("pyyaml",), "configs"),
    Requirement(("pydantic",), "configs"),
    Requirement(("rich",), "tables, progress"),
    Requirement(("numpy",), "references"),
    Requirement(("ml_dtypes",), "bf16 in NumPy"),
    Requirement(_CUPY, "NVRTC, running on a GPU"),
    Requirement(_NVRTC, "compiling without a CUDA toolkit"),
    Requirement(("cuda-bindings",), "running on a GPU"),
    Requirement(("torch",), "peers of bench, tensors by DLPack", optional=True),
)

_WGMMA = """extern "C" __global__ __launch_bounds__(128) void probe() {
  asm volatile("wgmma.fence.sync.aligned;\\n\\twgmma.commit_group.sync.aligned;" ::: "memory");
}
"""
_TCGEN05 = """extern "C" __global__ __launch_bounds__(128) void probe() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
"""
PROBES: Mapping[str, str] = {"sm_90a": _WGMMA, "sm_100a": _TCGEN05, "sm_103a": _TCGEN05}
"""For each architecture a kernel that compiles for it and not without its ``a``."""


@dataclass(frozen=True)
class PackageReport:
    """A requirement and what is installed for it."""

    name: str
    version: str
    """"" when it is missing."""
    purpose: str
    optional: bool
    problem: str
    """What is wrong with it, with the remedy; "" when nothing is."""


@dataclass(frozen=True)
class CompilerReport:
    """A compiler as found, determined by trying rather than by version."""

    name: str
    version: str
    """"" when it is not there."""
    path: str
    """Of the program or library; "" when it is not known."""
    archs: tuple[str, ...]
    """Those that it compiled a probe for."""
    problem: str
    remedy: str


@dataclass(frozen=True)
class CacheReport:
    """The cache folder and whether it can be used."""

    folder: Path
    writable: bool
    entries: int
    bytes: int
    problem: str


def survey_packages() -> list[PackageReport]:
    """Return what is installed of the packages that fa4gen uses."""
    return [_package(requirement) for requirement in REQUIREMENTS]


def survey_compiler(name: Literal["nvrtc", "nvcc"]) -> CompilerReport:
    """Find a compiler and compile a kernel for each architecture with it."""
    try:
        tool = find_compiler(name)
        version = tool.version
    except Fa4genError as error:
        why = error.problems[0]
        return CompilerReport(name, "", "", (), why.message, why.remedy)
    archs: list[str] = []
    problem = remedy = ""
    for arch, source in PROBES.items():
        try:
            tool.build(Unit("probe", source, {}, arch))
            archs.append(arch)
        except Fa4genError as error:
            problem, remedy = error.problems[0].message, error.problems[0].remedy
    return CompilerReport(name, version, _path(tool), tuple(archs), problem, remedy)


def survey_cache(cache: Cache) -> CacheReport:
    """Try to write to the cache folder, and count what it holds; leaves no trace."""
    problem = ""
    folder = next(p for p in (cache.root, *cache.root.parents) if p.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=folder):
            pass
    except OSError as error:
        problem = f"cannot write to {folder}: {error.strerror or error}"
    entries = size = 0
    for place, _, files in os.walk(cache.root):
        entries += "entry.json" in files
        for file in files:
            try:
                size += os.stat(os.path.join(place, file)).st_size  # noqa: PTH116, PTH118 (os.walk)
            except OSError:  # it was just replaced
                continue
    return CacheReport(cache.root, not problem, entries, size, problem)


def _package(requirement: Requirement) -> PackageReport:
    found: dict[str, str] = {}
    for name in requirement.names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    problem = ""
    if not found and not requirement.optional:
        problem = f"missing; install it with: pip install {requirement.names[0]}"
    elif requirement.names is _CUPY and len(found) > 1:
        problem = f"{' and '.join(found)} overwrite each other; keep one of them"
    name = next(iter(found), requirement.names[0])
    return PackageReport(
        name, found.get(name, ""), requirement.purpose, requirement.optional, problem
    )


def _path(tool: Compiler) -> str:
    path = getattr(tool, "path", None)  # nvcc's
    if path is not None:
        return str(path)
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except Exception:  # only a detail of the report: any failure leaves it out
        return ""
