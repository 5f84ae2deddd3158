"""Reads a folder: the files that fa4gen knows, symbolic links, files of others."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

DRAFT = ".fa4gen-new"
"""The end of the names of files that are to be renamed."""
_UNCOUNTED = (".git", ".gitkeep", ".gitignore", ".DS_Store")


def links_in(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the symbolic links on the way from ``folder`` to each of ``paths``, with targets.

    ``folder`` itself may be one. A link counts wherever it leads: what is written through it would
    not be where the lock says.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    for path in paths:
        parts = path.split("/")
        for length in range(1, len(parts) + 1):
            part = "/".join(parts[:length])
            if part in seen:
                continue
            seen.add(part)
            try:
                found[part] = str((folder / part).readlink())
            except OSError:  # no link, or nothing there
                continue
    return found


def refuse_links(folder: Path, paths: Iterable[str]) -> None:
    """Raise ConfigError when one of ``paths`` is reached by a symbolic link."""
    links = links_in(folder, paths)
    if links:
        raise ConfigError(
            *(
                Problem(
                    f"a symbolic link, to {target}: files are written inside the folder only",
                    "Put a real file or folder there, or delete the link.",
                    shown_path(folder / path),
                )
                for path, target in sorted(links.items())
            )
        )


def read_file(folder: Path, path: str) -> bytes | None:
    """Return the bytes of the file at ``path``, None when nothing is there.

    ConfigError for anything but a readable file. Symbolic links are followed: see ``links_in``.
    """
    place = folder / path
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            what = "a folder" if place.is_dir() else "not a file"
            raise ConfigError(
                Problem(f"{what} is where {path} belongs", "Move it away.", shown_path(place))
            )
        return place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            Problem(f"cannot be read: {reason}", "See who may read it.", shown_path(place))
        ) from error


def foreign_files(
    folder: Path, known: Collection[str], allowed: Callable[[str], bool]
) -> list[tuple[str, bool]]:
    """Return the files of ``folder`` that are not ``known``, sorted, and whether each is allowed.

    A folder without any known file is named once, with a slash behind it; it is allowed if all of
    its files are. Names that begin with a dot are left alone, and compiled modules of Python.
    """
    known_folders = {"/".join(path.split("/")[:n]) for path in known for n in range(1, 9)}
    found: list[tuple[str, bool]] = []

    def walk(relative: str) -> None:
        for entry in sorted((folder / relative).iterdir()):
            path = f"{relative}/{entry.name}" if relative else entry.name
            if entry.name.startswith(".") or entry.name == "__pycache__" or path in known:
                continue
            if entry.is_symlink() or not entry.is_dir():
                found.append((path, allowed(path)))
            elif path in known_folders:
                walk(path)
            elif inside := _files_below(entry, path):
                found.append((f"{path}/", all(map(allowed, inside))))

    walk("")
    return found


def is_free(folder: Path) -> bool:
    """Whether a new vendored folder may be made at ``folder``: nothing there, or no file in it.

    Files of version control do not count, nor do those that a killed run left.
    """
    if not os.path.lexists(folder):
        return True
    if not folder.is_dir():
        raise ConfigError(Problem("not a folder", "Give --into a folder.", shown_path(folder)))
    return not _holds_files(folder)


def _holds_files(folder: Path) -> bool:
    for path in folder.iterdir():
        if path.name in _UNCOUNTED or path.name.endswith(DRAFT):
            continue
        if path.is_symlink() or not path.is_dir() or _holds_files(path):
            return True
    return False


def _files_below(folder: Path, name: str) -> list[str]:
    return [
        f"{name}{parent.removeprefix(str(folder))}/{file}"
        for parent, _, files in os.walk(folder)
        for file in files
    ]
