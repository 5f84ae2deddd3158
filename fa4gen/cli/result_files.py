"""Files that the user names for results, refused before long work if they cannot be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

BEGINNINGS = {"html": b"<!doctype html>", "json": b"{", "svg": b"<?xml", "xml": b"<?xml"}
"""Beginnings of files that may be replaced, by kind."""


def check_result_file(option: str, path: Path, kind: str = "") -> None:
    """Raise ConfigError where ``path`` cannot be written, or is a file of another kind.

    ``option`` is its name on the command line; ``kind`` one of BEGINNINGS, by default the ending of
    the name, or json. Folders that are missing are made when writing.
    """
    if not kind:
        kind = ending if (ending := path.suffix[1:].lower()) in BEGINNINGS else "json"
    file = shown_path(path)
    if path.is_dir():
        raise ConfigError(Problem(f"{option} names a folder", "Name a file in it.", file))
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        where = shown_path(folder)
        raise ConfigError(
            Problem(f"{option}: no file can be made in {where}", "Choose another place.", file)
        )
    if path.exists() and not path.is_file():  # which a file would take the place of
        raise ConfigError(Problem(f"{option} names a pipe or device", "Name a file.", file))
    if path.exists():
        expected = BEGINNINGS[kind]
        with path.open("rb") as stream:
            beginning = stream.read(len(expected))
        if beginning not in (b"", expected):
            raise ConfigError(
                Problem(
                    f"{option} would replace a file that is not {kind}",
                    "Choose another name.",
                    file,
                )
            )
