"""The places of a project's own file; a module of its own, since most runs find none."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_NAME = "fa4gen.toml"
SHARED_NAME = "pyproject.toml"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def project_files(start: Path | None = None) -> Iterator[Path]:
    """Yield the files that may describe the project of ``start`` (the current folder).

    The nearest comes first. A pyproject.toml that does not contain the word fa4gen is none.
    """
    folder = (start or Path.cwd()).absolute()
    for place in _trusted(folder):
        own, shared = place / OWN_NAME, place / SHARED_NAME
        if _is_file(own):
            yield own
        if _is_file(shared) and _mentions_fa4gen(shared):
            yield shared


def _trusted(folder: Path) -> Iterator[Path]:
    """Yield ``folder`` and those above it in which no one else can have put a project's file.

    They end with the repository's root, or else before the first folder that has another owner or
    that others may write, such as /tmp.
    """
    places = (folder, *folder.parents)
    root = next((n for n, place in enumerate(places) if _exists(place / ".git")), None)
    for place in places if root is None else places[: root + 1]:
        if root is None and place != folder and not _only_owner_writes(place, folder):
            break
        yield place
        if place == _home():
            break


def _only_owner_writes(place: Path, below: Path) -> bool:
    if not hasattr(os, "getuid"):  # Windows keeps a user's folder from others
        return True
    with suppress(OSError):
        status = place.stat()
        return status.st_uid == below.stat().st_uid and not status.st_mode & OTHERS_WRITE
    return False


def _exists(path: Path) -> bool:
    with suppress(OSError):
        return path.exists()
    return False


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a folder above that one may not look into
        return path.is_file()
    return False


def _mentions_fa4gen(path: Path) -> bool:
    with suppress(OSError):  # a file of somebody else's above
        return b"fa4gen" in path.read_bytes()
    return False


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None
