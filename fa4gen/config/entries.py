"""Configs and tables that stand in another file: ``FILE/NAME`` is the path of its entry NAME.

A file of tables by ``fa4gen tune`` holds tables and the tiles that they name; a sweep holds the
cases to which it gives names. Such a path is used like that of a file of its own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.config.expectations import similar
from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.errors import ConfigError, Problem
from fa4gen.yaml_words import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from fa4gen.config.yaml_positions import Document

YAML = (".yaml", ".yml")
TABLE_END = ".tuning.yaml"
TABLES = "tables"
TILES = "tiles"
_CASE = re.compile(r"^ *- *\{?name: *(\w+)", re.MULTILINE)
_HEAD = re.compile(r"^(\w+):")
_NAME = re.compile(r"^  (\w+):")


class Entry(NamedTuple):
    """An entry of a file."""

    file: Path
    name: str


def entry_of(path: Path) -> Entry | None:
    """Return the entry that ``path`` names; None for a path that is not below a YAML file."""
    is_name = path.name.removesuffix(TABLE_END).isidentifier()
    if not is_name or path.parent.suffix not in YAML or not path.parent.is_file():
        return None
    return Entry(path.parent, path.name)


def entries_in(file: Path) -> list[Path]:
    """Return the configs in ``file``, in their order: tiles of tables, or named cases of a sweep.

    None for a file of another kind, or one that cannot be read.
    """
    text = _text_of(file)
    names = list(_blocks(text, TILES))
    if not names and re.search(r"^include:", text, re.MULTILINE):
        names = _CASE.findall(text)
    return [file / name for name in names]


def configs_of(file: Path) -> list[Path]:
    """Return the configs in ``file``, else the file itself unless it is a sweep."""
    sweep = re.search(r"^(?:matrix|include):", _text_of(file), re.MULTILINE)
    return entries_in(file) or ([] if sweep else [file])


def _text_of(file: Path) -> str:
    """Return the text of a YAML file; "" for others, and for one that cannot be read."""
    try:
        there = file.suffix in YAML and file.is_file()
        return file.read_text(encoding="utf-8") if there else ""
    except (OSError, UnicodeDecodeError):
        return ""


def tables_in(file: Path) -> list[Path]:
    """Return the tables in ``file``, which are those of a chip; none for another file."""
    if file.suffix not in YAML or not _is_tables(file):
        return []
    return [file / f"{name}{TABLE_END}" for name in _blocks(read_text(file, "table"), TABLES)]


def find_entry(path: Path) -> Path | None:
    """Return ``path`` where it names a config of a file, None where it is not below a file.

    Raises ConfigError where the file has no such entry.
    """
    entry = entry_of(path)
    if entry is None:
        return None
    known = [each.name for each in entries_in(entry.file)]
    if entry.name not in known:
        raise ConfigError(unknown_entry(entry, "config", known))
    return path


def read_tile(entry: Entry) -> Document | None:
    """Return the tile that ``entry`` is; None where its file is not of tables."""
    from fa4gen.config.yaml_positions import read_document

    if not _is_tables(entry.file):
        return None
    tiles = _blocks(read_text(entry.file, "table"), TILES)
    if entry.name not in tiles:
        raise ConfigError(unknown_entry(entry, "tile", tiles))
    document = read_document(tiles[entry.name], shown_path(entry.file))
    if not isinstance(document.value, dict):
        return document
    return replace(document, value={**document.value, "name": entry.name})


def read_table(file: Path, name: str) -> Document:
    """Return the table ``name`` in the file of a chip; ConfigError where it has none."""
    from fa4gen.config.yaml_positions import read_document

    tables = _blocks(read_text(file, "table"), TABLES)
    if name not in tables:
        raise ConfigError(unknown_entry(Entry(file, name), "table", tables))
    return read_document(tables[name], shown_path(file))


def tiles_in(file: Path) -> list[str]:
    """Return the names of the tiles in a file of tables."""
    return list(_blocks(read_text(file, "table"), TILES))


def _is_tables(file: Path) -> bool:
    from fa4gen.config.file_kinds import kind_of

    try:
        return kind_of(file, file.read_bytes()) == "table"
    except OSError:
        return False


def _blocks(text: str, section: str) -> Mapping[str, str]:
    """Return the values below the key ``section`` by name, each in its line and column of ``text``.

    Keys are taken to be indented by two spaces, as ``fa4gen tune`` writes them: a file of a chip
    has thousands of lines, of which a command needs few.
    """
    found: dict[str, list[str]] = {}
    own: list[str] | None = None
    inside = False
    for number, line in enumerate(text.split("\n")):
        if head := _HEAD.match(line):
            inside, own = head[1] == section, None
        elif inside and (name := _NAME.match(line)):
            own = found.setdefault(name[1], [])
            own += ["\n" * number, " " * name.end(), line[name.end() :], "\n"]
        elif own is not None:
            own += [line, "\n"]
    return {name: "".join(parts) for name, parts in found.items()}


def unknown_entry(entry: Entry, what: str, known: Iterable[str]) -> Problem:
    """Return the problem that a file has no such entry, with a similar one of ``known``."""
    names = list(known)
    near = similar(entry.name, names)
    if near:
        remedy = f"Did you mean {shown_path(entry.file / near[0])}?"
    else:
        remedy = f"It has {listing(names)}." if names else ""
    return Problem(f"no {what} called {entry.name} is in this file", remedy, shown_path(entry.file))
