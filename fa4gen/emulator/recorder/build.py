"""Compiles the stand-ins for libcuda.so.1 and libcudart.so with the host's C compiler."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fa4gen.cache_folder import is_own, keep_own
from fa4gen.emulator.errors import EmulatorError

_SOURCES: Final = Path(__file__).parent
_WARNINGS: Final = ("-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
_FLAGS: Final = (*_WARNINGS, "-shared", "-pthread", "-Wl,-z,defs")
_OBJECT_FLAGS: Final = (*_WARNINGS, "-r")
DRIVER: Final = "libcuda.so.1"
_RUNTIMES: Final = ("libcudart.so.12", "libcudart.so.13")
_DEFINITION: Final = re.compile(r"^API CUresult (cu\w+)\(", re.MULTILINE)
_FILL: Final = re.compile(r"^FILL\((\w+),", re.MULTILINE)


class NoCompilerError(EmulatorError):
    """An error for a machine without a C compiler."""


def find_compiler() -> str:
    """The C compiler: ``$CC``, cc, gcc or clang. Raises NoCompilerError, also without Linux."""
    if sys.platform != "linux":
        raise NoCompilerError("the recorder needs Linux, whose way of loading libraries it uses")
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise NoCompilerError("no C compiler: tried $CC, cc, gcc and clang; the recorder needs one")


def build_driver(cache: Path) -> Path:
    """The folder with the compiled stand-in, below ``cache``; made anew if others may write there.

    Raises NoCompilerError, or EmulatorError with the compiler's words where it fails.
    """
    compiler = find_compiler()
    parts = sorted(path for path in _SOURCES.glob("*/*") if path.suffix in (".c", ".h", ".txt"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in parts}
    key = hashlib.sha256("\0".join([compiler, *_FLAGS, *texts, *texts.values()]).encode())
    folder = cache / key.hexdigest()[:24]
    libraries = (*_RUNTIMES, "libcuda.so", DRIVER)
    if all(is_own(folder / name) for name in libraries):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=cache) as scratch:
        work = Path(scratch)
        (work / "entries.inc").write_text(entries(texts), encoding="utf-8")
        sources = {
            room: [str(path) for path in parts if path.suffix == ".c" and path.parent.name == room]
            for room in ("driver", "runtime")
        }
        _compile([compiler, *_FLAGS, f"-Wl,-soname,{DRIVER}", f"-I{work}"], sources["driver"],
                 work / DRIVER)  # fmt: skip
        runtime = work / "runtime.o"  # one program for both names
        _compile([compiler, *_OBJECT_FLAGS], sources["runtime"], runtime)
        for name in _RUNTIMES:
            versions = work / f"{name}.map"
            versions.write_text(f"{name} {{ global: *; }};\n", encoding="utf-8")
            flags = [f"-Wl,-soname,{name}", f"-Wl,--version-script,{versions}"]
            flags.append("-Wl,-rpath,$ORIGIN")
            objects = [str(runtime), str(work / DRIVER)]
            _compile([compiler, *_FLAGS, *flags], objects, work / name)
        shutil.copy(work / DRIVER, work / "libcuda.so")
        for name in libraries:  # whole, since another process may look
            (work / name).replace(folder / name)
            keep_own(folder / name)
    return folder


def _compile(command: Sequence[str], sources: Sequence[str], target: Path) -> None:
    made = subprocess.run(
        [*command, "-o", str(target), *sources],
        env={**os.environ, "TMPDIR": str(target.parent)},  # removed with it, however it ends
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise EmulatorError(f"{command[0]} cannot compile the recorder:\n{made.stderr.strip()}")


def entries(texts: dict[str, str]) -> str:
    """The table of cuGetProcAddress, and the functions that only say that they are missing."""
    defined = [
        name for text in texts.values() for name in _DEFINITION.findall(text) if "##" not in name
    ]
    for kind in _FILL.findall(texts["memory.c"]):
        for shape in ("", "D2"):
            defined += [f"cuMemset{shape}{kind}_v2", f"cuMemset{shape}{kind}Async"]
    bases = {_base(name) for name in defined}
    missing = texts["missing.txt"].split()
    lines = [f"MISSING({name})" for name in missing]
    listed = defined + [name for name in missing if _base(name) not in bases]
    elsewhere = [name for name in defined if name not in _DEFINITION.findall(texts["entry.c"])]
    lines += [f"extern CUresult {name}();" for name in elsewhere]
    lines += [
        "CUresult cuGetProcAddress(const char *, void **, int, uint64_t);",
        "CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);",
        "CUresult cuGetExportTable(const void **, const unsigned char *);",
        "CUresult cuGetErrorName(CUresult, const char **);",
        "CUresult cuGetErrorString(CUresult, const char **);",
        "static const struct entry entries[] = {",
        *(f'    {{"{_base(name)}", (void *){name}, {_version(name)}}},' for name in listed),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _base(name: str) -> str:
    return re.sub(r"_v\d+$", "", name)


def _version(name: str) -> int:
    found = re.search(r"_v(\d+)$", name)
    return int(found[1]) if found else 1
