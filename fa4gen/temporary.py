"""Temporary files: what a killed process left of them is recognised by its name and age.

Files are written to ``.NAME.PID.tmp`` and renamed; in cache folders to ``.new-*``.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LEFT_AFTER_S = 3600.0
"""Younger files are never taken for left over: no process takes as long for one."""
NEW_IN_CACHE = ".new-"
"""The beginning of names of temporary files in a cache."""
_BESIDE = re.compile(r"\.(?P<name>.+)\.[0-9]+\.tmp")
_CACHED = re.compile(r"\.(new|old)-[A-Za-z0-9_-]+")


def temporary_path(path: Path) -> Path:
    """Return the path of a file that this process then renames to ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def leftovers(folder: Path, beginning: str = "") -> list[Path]:
    """Return the left-over temporary files in ``folder``, sorted.

    Only those of files whose names begin with ``beginning``.
    """
    return [
        path
        for path in _entries(folder)
        if (found := _BESIDE.fullmatch(path.name))
        and found["name"].startswith(beginning)
        and _is_left(path)
    ]


def remove_leftovers(paths: Iterable[Path]) -> list[Path]:
    """Delete files, and their folders where nothing else is in them; return those deleted."""
    removed = []
    for path in paths:
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    for folder in {path.parent for path in removed}:
        with suppress(OSError):  # not empty
            folder.rmdir()
    return removed


def clean_cache(folders: Iterable[Path]) -> None:
    """Delete what killed processes left in folders of a cache; an error leaves it there."""
    for folder in folders:
        for path in _entries(folder):
            if _CACHED.fullmatch(path.name) and _is_left(path):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        path.unlink()


def _entries(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("."))  # noqa: PTH208
    except OSError:
        return
    yield from (folder / name for name in names)


def _is_left(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > LEFT_AFTER_S
    except OSError:  # it has just gone
        return False
