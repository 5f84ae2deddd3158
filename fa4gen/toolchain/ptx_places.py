"""The source lines of lines of PTX that was built without line information: from a second build.

Line information adds directives to the PTX and changes none of its instructions, so the n-th
instruction of the one is that of the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.toolchain.source_lines import describe, ptx_line_chain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.toolchain.model import Compiler, Unit

_DIRECTIVES = ("//", ".loc", ".file")


def ptx_places(unit: Unit, ptx: str, lines: Iterable[int], tool: Compiler) -> dict[int, str]:
    """Return what ``lines`` of ``ptx``, the PTX of ``unit``, came from.

    A place is the line's file, number, functions and text, of the innermost inlined function. Lines
    are left out of which nothing is known; all are where the two builds differ.
    """
    with_lines = tool.build_ptx(replace(unit, line_info=True))
    mine, theirs = _instructions(ptx), _instructions(with_lines)
    if [text for _, text in mine] != [text for _, text in theirs]:
        return {}
    twin = {line: there for (line, _), (there, _) in zip(mine, theirs, strict=True)}
    texts = {f"{unit.name}.cu": unit.source.splitlines()}
    texts |= {name: text.splitlines() for name, text in unit.headers.items()}
    places = {}
    for line in lines:
        chain = ptx_line_chain(with_lines, twin[line]) if line in twin else ()
        if chain:
            source = texts.get(chain[0].file, ())
            text = source[chain[0].line - 1].strip() if chain[0].line <= len(source) else ""
            places[line] = f"{describe(chain)}: {text}" if text else describe(chain)
    return places


def _instructions(ptx: str) -> list[tuple[int, str]]:
    """Return number and text of the lines, without what line information adds."""
    found = []
    for number, line in enumerate(ptx.splitlines(), 1):
        text = line.strip()
        if text.startswith(".section"):  # debug information, at the end
            break
        if text and not text.startswith(_DIRECTIVES):
            found.append((number, text))
    return found
