"""A stand-in for CuTe DSL's GPU: a runtime that records launches, and tensors "on" one.

Used by ``record.py`` only, in a process of its own: the stand-in has to be there before CuTe DSL
is imported, and the architecture is fixed when it is.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ATTRIBUTE_BYTES = 72
_CLUSTER = 4  # cudaLaunchAttributeClusterDimension
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
_RESIDENT_MULTIPROCESSORS = 148


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    )


_HANDLER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.POINTER(_Config), ctypes.POINTER(ctypes.c_void_p)
)


@dataclass(frozen=True)
class RawLaunch:
    """A launch as the host code made it; ``parameters`` are the bytes of each parameter."""

    kernel: str
    ptx: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    dynamic_shared: int
    parameters: list[bytes]


@dataclass
class Standin:
    """The loaded runtime library, and the launches that it recorded."""

    folder: Path
    """Where CuTe DSL keeps the PTX of what it compiles."""
    launches: list[RawLaunch] = field(default_factory=list)
    _keep: list[Any] = field(default_factory=list)

    def _launched(self, name: bytes, config: Any, arguments: Any) -> None:
        kernel, about = name.decode(), config.contents
        ptx, sizes = self._parameters(kernel)
        cluster = None
        for index in range(about.attribute_count):
            at = about.attributes + _ATTRIBUTE_BYTES * index
            words = ctypes.cast(at, ctypes.POINTER(ctypes.c_uint32))
            if words[0] == _CLUSTER:
                cluster = (words[2], words[3], words[4])
        self.launches.append(
            RawLaunch(
                kernel,
                ptx,
                tuple(about.grid),
                tuple(about.block),
                cluster,
                about.dynamic_shared,
                [ctypes.string_at(arguments[at], size) for at, size in enumerate(sizes)],
            )
        )

    def _parameters(self, kernel: str) -> tuple[str, list[int]]:
        """The module that holds a kernel, and the sizes of the kernel's parameters."""
        for path in self.folder.glob("*.ptx"):
            ptx = path.read_text()
            found = re.search(rf"\.entry {re.escape(kernel)}\((.*?)\)", ptx, re.DOTALL)
            if found:
                sizes = re.findall(r"\.param [^\[,]*?\.[a-z](\d+)[^\[,]*(?:\[(\d+)\])?", found[1])
                return ptx, [_SIZES[bits] * int(count or 1) for bits, count in sizes]
        raise RuntimeError(f"CuTe DSL launches {kernel}, but kept no PTX of it")


def install(arch: str, folder: Path) -> Standin:
    """Build the stand-in and load it, and set what CuTe DSL and its users read when imported.

    The library and PTX go to ``folder``.
    """
    library = folder / "libstandin.so"
    source = Path(__file__).with_name("standin.c")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    number = re.sub(r"\D", "", arch)
    os.environ.update(
        CUTE_DSL_ARCH=arch,
        CUTE_DSL_KEEP="ptx",
        CUTE_DSL_DUMP_DIR=str(folder),
        CUTE_DSL_DISABLE_FILE_CACHING="1",
        CUTE_DSL_LIBS=str(library),
        FLASH_ATTENTION_ARCH=number,
        FLASH_ATTENTION_NUM_SMS=str(_RESIDENT_MULTIPROCESSORS),
        QUACK_ARCH=number,
        QUACK_CACHE_ENABLED="0",
    )
    # CuTe DSL puts its own runtime in front of CUTE_DSL_LIBS, and its compiler looks up symbols in
    # the process first: a library loaded globally before takes precedence.
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    standin = Standin(folder)
    handler = _HANDLER(standin._launched)
    standin._keep += [loaded, handler]
    loaded.standin_configure(handler, _RESIDENT_MULTIPROCESSORS)
    _describe_hardware()
    return standin


def _describe_hardware() -> None:
    """Answer CuTe DSL's queries about the GPU."""
    import cutlass.utils

    class Hardware:
        def __init__(self, device_id: int = 0) -> None:
            self.device_id = device_id

        def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
            return _RESIDENT_MULTIPROCESSORS // cluster_size

        def get_device_multiprocessor_count(self) -> int:
            return _RESIDENT_MULTIPROCESSORS

        def get_l2_cache_size_in_bytes(self) -> int:
            return 50 << 20

    cutlass.utils.HardwareInfo = Hardware
