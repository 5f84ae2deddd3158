"""Compiles the stand-in for the CUDA driver with the host's C compiler, once for each text."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fa4gen.cache_folder import is_own, keep_own
from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.vendoring.host_build import compile_c, find_c_compiler

NAME: Final = "libfa4gen_standin.so"
_SOURCES: Final = Path(__file__).parent
_FLAGS: Final = (
    "-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread", "-Wl,-z,defs",
)  # fmt: skip


def build_stand_in(cache: Path | None = None) -> Path:
    """Return the path of the stand-in, alone in a folder below ``cache``.

    Its name is no driver's: only those find it who are given the path. Without ``cache`` it is kept
    with the compiled kernels. A library that others may write is compiled again.

    MissingCapabilityError without a C compiler, or elsewhere than on Linux.
    """
    if sys.platform != "linux":
        raise MissingCapabilityError(
            Problem(
                "the stand-in for the CUDA driver needs Linux, whose way of loading libraries it "
                "uses",
                "Run this on Linux.",
            )
        )
    if cache is None:
        from fa4gen.toolchain.cache import Cache

        cache = Cache.default().root / "standin"
    compiler = find_c_compiler()
    sources = sorted(_SOURCES.glob("*.[ch]"))
    key = hashlib.sha256(repr((compiler, _FLAGS)).encode())
    for path in sources:
        key.update(path.read_bytes())
    library = cache / key.hexdigest()[:24] / NAME
    if is_own(library):
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=cache) as scratch:
        made = Path(scratch) / NAME
        units = [path for path in sources if path.suffix == ".c"]
        compile_c(compiler, [*_FLAGS, f"-Wl,-soname,{NAME}"], units, made)
        made.replace(library)  # whole, since another process may look
        keep_own(library)
    return library
