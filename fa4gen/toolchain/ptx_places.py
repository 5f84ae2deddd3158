"""The source lines of lines of PTX that was built without line information: from a second build.

Line information adds directives to the PTX and changes none of its instructions, so the n-th
instruction of the one is that of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.toolchain.source_lines import Chain, describe, ptx_line_chains

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fa4gen.toolchain.model import Compiler, Unit

_DIRECTIVES = ("//", ".loc", ".file")


@dataclass(frozen=True)
class Place:
    """A source line: the ``chain`` of calls inlined there, and the text of each line of it."""

    chain: Chain
    texts: tuple[str, ...]

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Function and text of each line, the innermost first."""
        return tuple((one.function, text) for one, text in zip(self.chain, self.texts, strict=True))

    def __str__(self) -> str:
        text = self.texts[0]
        return f"{describe(self.chain)}: {text}" if text else describe(self.chain)


def ptx_places(unit: Unit, ptx: str, lines: Iterable[int], tool: Compiler) -> dict[int, Place]:
    """Return the sources of ``lines`` of ``ptx``, the PTX of ``unit``.

    Unknown lines are left out; all are unknown if the two builds differ.
    """
    with_lines = tool.build_ptx(replace(unit, line_info=True))
    mine, theirs = _instructions(ptx), _instructions(with_lines)
    if [text for _, text in mine] != [text for _, text in theirs]:
        return {}
    twin = {line: there for (line, _), (there, _) in zip(mine, theirs, strict=True)}
    known = [line for line in lines if line in twin]
    chains = ptx_line_chains(with_lines, (twin[line] for line in known))
    texts = {f"{unit.name}.cu": unit.source.splitlines()}
    texts |= {name: text.splitlines() for name, text in unit.headers.items()}
    return {
        line: Place(chain, tuple(_text(texts.get(one.file, ()), one.line) for one in chain))
        for line in known
        if (chain := chains[twin[line]])
    }


def _text(lines: Sequence[str], number: int) -> str:
    """Return the line of a number from 1; "" past the text."""
    return lines[number - 1].strip() if 1 <= number <= len(lines) else ""


def _instructions(ptx: str) -> list[tuple[int, str]]:
    """Return number and text of the lines, without line information."""
    found = []
    for number, line in enumerate(ptx.splitlines(), 1):
        text = line.strip()
        if text.startswith(".section"):  # debug information, at the end
            break
        if text and not text.startswith(_DIRECTIVES):
            found.append((number, text))
    return found
