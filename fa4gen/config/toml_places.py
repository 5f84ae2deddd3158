"""Places of the keys of a TOML document, which the standard library's parser does not give.

A scan of lines for table headers and for keys at the beginning of a line: enough to point at an
error. A key inside an inline table gets no place of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fa4gen.config.yaml_positions import Place

if TYPE_CHECKING:
    from fa4gen.config.yaml_positions import KeyPath

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_KEYS = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<keys>{_KEYS})\s*\]\]?")
_KEY = re.compile(rf"(?P<indent>\s*)(?P<keys>{_KEYS})\s*=\s*")


def toml_places(text: str) -> dict[KeyPath, Place]:
    """Return the place of every table header and key of ``text``, by its path in the document."""
    places: dict[KeyPath, Place] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    quotes = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:  # inside a string of several lines
            quotes = "" if quotes in line else quotes
            continue
        if header := _HEADER.match(line):
            path = _with_indices(_split(header["keys"]), counts)
            if header["open"] == "[[":
                index = counts.get(path, -1) + 1
                counts[path] = index
                path = (*path, index)
            table = path
            column = header.start("open") + 1
            places.setdefault(path, Place(number, column, number, column))
        elif key := _KEY.match(line):
            path = (*table, *_split(key["keys"]))
            place = Place(number, key.start("keys") + 1, number, key.end() + 1)
            places.setdefault(path, place)
            quotes = _left_open(line[key.end() :])
    return places


def _split(keys: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, keys))


def _with_indices(keys: tuple[str, ...], counts: dict[KeyPath, int]) -> KeyPath:
    """Return ``keys`` with the index of the current entry after each array of tables above."""
    path: KeyPath = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if path in counts and position < len(keys) - 1:
            path = (*path, counts[path])
    return path


def _left_open(value: str) -> str:
    """Return the quotes of a string that continues in the next line, or ""."""
    quotes = value[:3]
    return quotes if quotes in ('"""', "'''") and quotes not in value[3:] else ""
