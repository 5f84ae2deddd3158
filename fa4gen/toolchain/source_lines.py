"""The lines of the generated file that an instruction came from, through inlined calls.

Read from ``.loc`` directives of a build with line information.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LOC = re.compile(
    r"^\s*\.loc\s+(\d+) (\d+) (\d+)"
    r"(?:, function_name (\S+?)(?:\s*\+\s*\d+)?, inlined_at (\d+) (\d+) (\d+))?\s*$"
)
_FILE = re.compile(r'^\s*\.file\s+(\d+) "([^"]*)"')
_LABEL = re.compile(r"^\s*(\$L__info_string\d+):")
_BYTES = re.compile(r"^\s*\.b8 ([\d,]+)")
_MANGLED = re.compile(r"_Z(?:N[rVK]*)?")
# Ahead of a name there may be the template arguments of the class: literals such as Li4E.
_MANGLED_NAME = re.compile(r"(?:I(?:L[a-z]n?\d+E)+E)?(\d+)")
_MAX_DEPTH = 64


@dataclass(frozen=True)
class Frame:
    """A line of a file, inside a function."""

    function: str
    """Its name without namespace and arguments; "" for the kernel itself."""
    file: str
    """File name without folders."""
    line: int


Chain = tuple[Frame, ...]
"""The line itself, then the lines that its function was inlined at, up to the kernel."""


def describe(chain: Chain) -> str:
    """Return ``N.cu:739 (store_output < Consumer::run)``."""
    if not chain:
        return "an unknown line"
    functions = " < ".join(dict.fromkeys(f.function for f in chain if f.function))
    place = f"{chain[0].file}:{chain[0].line}"
    return f"{place} ({functions})" if functions else place


def ptx_line_chain(ptx: str, line: int) -> Chain:
    """Return the origin of line ``line`` (from 1) of ``ptx``; () when it does not say."""
    return ptx_line_chains(ptx, (line,))[line]


def ptx_line_chains(ptx: str, wanted: Iterable[int]) -> dict[int, Chain]:
    """Return the origins of the ``wanted`` lines (from 1); () when ``ptx`` does not say.

    One pass over the text, however many lines are wanted.
    """
    lines = ptx.splitlines()
    files, names = _ptx_names(lines)
    seen: dict[tuple[str, str, str], re.Match[str]] = {}
    left = set(wanted)
    found: dict[int, Chain] = dict.fromkeys(left, ())
    current: re.Match[str] | None = None
    for number, text in enumerate(lines, 1):
        if match := _LOC.match(text):
            current = match
            seen[match[1], match[2], match[3]] = match
        if number in left:
            found[number] = _chain(current, seen, files, names)
    return found


def _chain(
    current: re.Match[str] | None,
    seen: Mapping[tuple[str, str, str], re.Match[str]],
    files: Mapping[str, str],
    names: Mapping[str, str],
) -> Chain:
    """Follow ``inlined_at`` from a ``.loc`` through those that came before it."""
    chain: list[Frame] = []
    while current is not None and len(chain) < _MAX_DEPTH:
        name = plain_name(names.get(current[4], "")) if current[4] else ""
        chain.append(Frame(name, files.get(current[1], ""), int(current[2])))
        current = seen.get((current[5], current[6], current[7])) if current[4] else None
    return tuple(chain)


def plain_name(mangled: str) -> str:
    """``_ZN6kernel8Consumer3runILi4EEEv`` -> ``Consumer::run``; anything else as it is.

    The outermost namespace, which every function of a generated file is in, is left out.
    """
    start = _MANGLED.match(mangled)
    if start is None:
        return mangled
    names: list[str] = []
    position = start.end()
    while match := _MANGLED_NAME.match(mangled, position):
        position = match.end() + int(match[1])
        names.append(mangled[match.end() : position])
    return "::".join(names[1:] or names) or mangled


def _ptx_names(lines: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return file names by number and strings by label; both are at the end of the PTX."""
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    label = ""
    for text in lines:
        if match := _FILE.match(text):
            files[match[1]] = PurePath(match[2]).name
        elif match := _LABEL.match(text):
            label = match[1]
            names[label] = ""
        elif label and (match := _BYTES.match(text)):
            names[label] += "".join(chr(int(byte)) for byte in match[1].split(",") if byte != "0")
        elif label and text.strip():
            label = ""
    return files, names
