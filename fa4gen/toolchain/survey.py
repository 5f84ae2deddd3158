"""The machine's tools for compiling: packages, compilers and their targets, cache."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from fa4gen.counts import counted
from fa4gen.errors import Fa4genError
from fa4gen.toolchain.cache import SUFFIX
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.model import Compiler

State = Literal["ok", "absent", "missing", "problem"]


@dataclass(frozen=True)
class Tool:
    """Something that fa4gen uses, as it was found."""

    name: str
    state: State
    """The state "absent" is that of what is optional, "missing" of what is not."""
    details: str
    remedy: str = ""
    archs: tuple[str, ...] = ()
    """Architectures that it compiles for, determined by trying rather than by version."""


_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
_NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_OPTIONAL = ("torch",)
_PURPOSES: Mapping[tuple[str, ...], str] = {
    ("jinja2",): "templates",
    ("click",): "command line",
    ("pyyaml",): "configs",
    ("numpy",): "references",
    ("ml_dtypes",): "bf16 in NumPy",
    _CUPY: "running on a GPU",
    _NVRTC: "compiling without a CUDA toolkit",
    ("cuda-bindings",): "NVRTC, running on a GPU",
    _OPTIONAL: "peers of bench, tensors by DLPack",
}
"""Packages that fa4gen uses, of which one will do, and for what."""
_PROBE = """\
extern "C" __global__ void probe() {
  asm volatile("%s" ::: "memory");
}
"""
"""A kernel that compiles for an architecture, and not for that without its letter."""
_WGMMA, _TCGEN05 = "wgmma.fence.sync.aligned;", "tcgen05.fence::before_thread_sync;"
PROBES: Mapping[str, str] = {
    "sm_90a": _PROBE % _WGMMA,
    "sm_100a": _PROBE % _TCGEN05,
    "sm_103a": _PROBE % _TCGEN05,
    "sm_100f": _PROBE % _TCGEN05,
}
_MIB = 1 << 20


def survey_packages() -> list[Tool]:
    """Return the installed packages that fa4gen uses, and those that it lacks."""
    return [_package(names, purpose) for names, purpose in _PURPOSES.items()]


def survey_compiler(name: Literal["nvrtc", "nvcc"]) -> Tool:
    """Find a compiler and compile a kernel for each architecture with it."""
    archs: list[str] = []
    problem = remedy = ""
    try:
        tool = find_compiler(name)
        for arch, source in PROBES.items():
            try:
                tool.build(Unit("probe", source, {}, arch))
                archs.append(arch)
            except Fa4genError as error:
                problem, remedy = error.problems[0].message, error.problems[0].remedy
        version = tool.version  # NVRTC's release is in its compiled kernel
    except Fa4genError as error:
        return Tool(name, "absent", error.problems[0].message, error.problems[0].remedy)
    details = [f"{version} for {', '.join(archs) or 'nothing'}", _path(tool), problem]
    state: State = "ok" if archs else "problem"
    return Tool(name, state, "; ".join(filter(None, details)), remedy, tuple(archs))


def survey_cache(cache: Cache) -> Tool:
    """Try to write to the cache folder, and count its contents; leaves no trace."""
    problem = ""
    folder = next(p for p in (cache.root, *cache.root.parents) if p.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=folder):
            pass
    except OSError as error:
        problem = f"; cannot write to {folder}: {error.strerror or error}"
    entries = size = 0
    for file in _files(cache.root):
        try:
            size += file.stat(follow_symlinks=False).st_size
        except OSError:  # it was just replaced
            continue
        entries += file.name.endswith(SUFFIX)
    held = f"{cache.root}: {counted(entries, 'entry')}, {size / _MIB:.1f} MiB"
    return Tool("cache", "problem" if problem else "ok", held + problem)


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


def _package(names: tuple[str, ...], purpose: str) -> Tool:
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if not found:
        state: State = "absent" if names is _OPTIONAL else "missing"
        return Tool(names[0], state, f"for {purpose}", f"pip install {names[0]}")
    name, version = next(iter(found.items()))
    if names is _CUPY and len(found) > 1:
        what = f"{version}; {' and '.join(found)} overwrite each other"
        return Tool(name, "problem", what, "Keep one of them.")
    return Tool(name, "ok", version)


def _path(tool: Compiler) -> str:
    path = getattr(tool, "path", None)  # nvcc's
    if path is not None:
        return str(path)
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except Exception:  # only a detail of the report: any failure leaves it out
        return ""
