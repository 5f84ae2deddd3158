"""The machine's tools for compiling: Python, packages, compilers and their targets, cache."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from fa4gen.errors import Fa4genError
from fa4gen.toolchain.cache import SUFFIX
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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
    Requirement(("numpy",), "references"),
    Requirement(("ml_dtypes",), "bf16 in NumPy"),
    Requirement(_CUPY, "running on a GPU"),
    Requirement(_NVRTC, "compiling without a CUDA toolkit"),
    Requirement(("cuda-bindings",), "NVRTC, running on a GPU"),
    Requirement(("torch",), "peers of bench, tensors by DLPack", optional=True),
)


_PROBE = """\
extern "C" __global__ void probe() {
  asm volatile("%s" ::: "memory");
}
"""
"""A kernel that compiles for an architecture, and not for that without its ``a``."""
_WGMMA, _TCGEN05 = "wgmma.fence.sync.aligned;", "tcgen05.fence::before_thread_sync;"
PROBES: Mapping[str, str] = {
    "sm_90a": _PROBE % _WGMMA,
    "sm_100a": _PROBE % _TCGEN05,
    "sm_103a": _PROBE % _TCGEN05,
}


@dataclass(frozen=True)
class PackageReport:
    """A requirement and the installed package for it."""

    name: str
    version: str
    """"" when it is missing."""
    purpose: str
    optional: bool
    problem: str
    """The problem with it, with the remedy; "" without one."""


@dataclass(frozen=True)
class CompilerReport:
    """A compiler as found, determined by trying rather than by version."""

    name: str
    version: str
    """"" when it is not there."""
    path: str
    """The path of the program or library; "" if unknown."""
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
    """Return the installed versions of the packages that fa4gen uses."""
    return [_package(requirement) for requirement in REQUIREMENTS]


def survey_compiler(name: Literal["nvrtc", "nvcc"]) -> CompilerReport:
    """Find a compiler and compile a kernel for each architecture with it."""
    try:
        tool = find_compiler(name)
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
    try:
        version = tool.version  # NVRTC's release is in its compiled kernel
    except Fa4genError as error:
        return CompilerReport(name, "", "", (), error.problems[0].message, error.problems[0].remedy)
    return CompilerReport(name, version, _path(tool), tuple(archs), problem, remedy)


def survey_cache(cache: Cache) -> CacheReport:
    """Try to write to the cache folder, and count its contents; leaves no trace."""
    problem = ""
    folder = next(p for p in (cache.root, *cache.root.parents) if p.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=folder):
            pass
    except OSError as error:
        problem = f"cannot write to {folder}: {error.strerror or error}"
    entries = size = 0
    for file in _files(cache.root):
        try:
            size += file.stat(follow_symlinks=False).st_size
        except OSError:  # it was just replaced
            continue
        entries += file.name.endswith(SUFFIX)
    return CacheReport(cache.root, not problem, entries, size, problem)


def _files(root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder: there may be many thousands, and os.walk takes longer."""
    folders = [os.fspath(root)]
    while folders:
        try:
            with os.scandir(folders.pop()) as inside:
                rows = list(inside)
        except OSError:  # it was just replaced, or is not there
            continue
        folders += (row.path for row in rows if row.is_dir(follow_symlinks=False))
        yield from (row for row in rows if not row.is_dir(follow_symlinks=False))


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
