"""The host's C compiler, and a vendored folder built by it into a library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from fa4gen.errors import CompileError, MissingCapabilityError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMPILERS: Final = ("cc", "gcc", "clang")
LIBRARY_FLAGS: Final = ("-std=c99", "-O1", "-fPIC", "-shared", "-pthread")
INTERPOSER: Final = """\
/* Between the launcher and dlopen: the driver's library is another one. */
#include <string.h>

void *__real_dlopen(const char *name, int mode);
void *__wrap_dlopen(const char *name, int mode);

void *__wrap_dlopen(const char *name, int mode) {
  return __real_dlopen(name && !strcmp(name, "libcuda.so.1") ? STAND_IN : name, mode);
}
"""


def find_c_compiler() -> tuple[str, ...]:
    """Return the command of the C compiler: ``$CC``, which may hold options, cc, gcc or clang.

    MissingCapabilityError where there is none.
    """
    named = shlex.split(os.environ.get("CC", ""))
    for command in ([named] if named else []) + [[name] for name in COMPILERS]:
        if found := shutil.which(command[0]):
            return (found, *command[1:])
    tried = ", ".join([*(["$CC"] if named else []), *COMPILERS])
    raise MissingCapabilityError(
        Problem(
            f"no C compiler on this machine: tried {tried}",
            "Install gcc or clang, or name one in the environment variable CC.",
        )
    )


def compile_c(
    compiler: Sequence[str], flags: Sequence[str], sources: Sequence[Path], target: Path
) -> None:
    """Compile C files into ``target``; CompileError with the compiler's words where that fails."""
    made = subprocess.run(
        [*compiler, *flags, "-o", str(target), *map(str, sources), "-ldl"],
        env={**os.environ, "TMPDIR": str(target.parent)},  # removed with it, however it ends
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CompileError(
            Problem(
                f"{compiler[0]} cannot compile {target.name}:\n{made.stderr.strip()}",
                "Fix what the compiler names, or name another compiler in CC.",
            )
        )


def build_library(
    folder: Path, target: Path, *, stand_in: Path | None = None, flags: Sequence[str] = ()
) -> Path:
    """Compile ``src`` and ``cubins`` of a vendored folder into the shared library ``target``.

    With ``stand_in`` the library opens that file where it asks for libcuda.so.1, whether or not
    the real driver is loaded (needs a linker with --wrap: those of Linux). ``flags`` come last.

    Raises CompileError, and MissingCapabilityError without a C compiler.
    """
    compiler = find_c_compiler()
    sources = [*sorted((folder / "src").glob("*.c")), *sorted((folder / "cubins").glob("*.c"))]
    if not sources:
        raise CompileError(
            Problem(f"{folder}: no C files in src and cubins", "Vendor the kernels again.")
        )
    options = [*LIBRARY_FLAGS, f"-I{folder / 'include'}", f"-I{folder / 'src'}"]
    if stand_in is not None:
        interposer = target.parent / f"{target.stem}_interposer.c"
        interposer.write_text(INTERPOSER, encoding="utf-8")
        sources.append(interposer)
        options += ["-Wl,--wrap=dlopen", f'-DSTAND_IN="{stand_in}"']
    compile_c(compiler, [*options, *flags], sources, target)
    return target
