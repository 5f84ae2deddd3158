"""The files cubins/*.c: machine code as C arrays, with the hashes of the sources it came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.render.render import GENERATOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.render.environment import TemplateSet

TEMPLATE = "vendored/cubin.c.j2"
BYTES_A_ROW = 22
_SOURCE = re.compile(rb"^ \*   ([0-9a-f]{64})  (\w+\.\w+)\r?$", re.MULTILINE)


def cubin_path(symbol: str) -> str:
    """Return the path, from the folder on, of the machine code of the kernel ``symbol``."""
    return f"cubins/{symbol}.c"


def cubin_text(
    symbol: str,
    prefix: str,
    arch: str,
    sources: Mapping[str, str],
    cubin: bytes,
    templates: TemplateSet,
) -> str:
    """Return the C file of ``cubin``; ``sources`` are the hashes of its sources by file name."""
    digits = [f"{byte}," for byte in cubin]  # decimal: most bytes are zeros
    rows = ["".join(digits[i : i + BYTES_A_ROW]) for i in range(0, len(digits), BYTES_A_ROW)]
    values = {
        "symbol": symbol,
        "prefix": prefix,
        "arch": arch,
        "sources": sorted(sources.items()),
        "rows": rows,
        "sha256": sha256(cubin),
        "generator": GENERATOR,
    }
    return templates.environment().get_template(TEMPLATE).render(values)


def recorded_sources(data: bytes) -> dict[str, str]:
    """Return the hashes, by file name, of the sources that a file of ``cubin_text`` names."""
    return {name.decode(): digest.decode() for digest, name in _SOURCE.findall(data)}
