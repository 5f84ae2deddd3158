"""Temporary files: what a killed process left of them is recognised by its name and age.

Files are written to ``.NAME.PID.tmp`` and renamed; in cache folders to ``.new-PID-*``.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LEFT_AFTER_S = 600.0
"""Younger files are never taken for left over: their process may run on another machine."""
NAMELESS_AFTER_S = 86400.0
"""The same for files whose process cannot be looked for."""
_BESIDE = re.compile(r"\.(?P<name>.+)\.(?P<pid>[0-9]+)\.tmp")
_CACHED = re.compile(r"\.(new|old)-((?P<pid>[0-9]+)-)?[A-Za-z0-9_]+")


def temporary_path(path: Path) -> Path:
    """Return where this process writes what is then renamed to ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a folder in ``parent``, or among temporary files, and delete it at the end.

    Unlike ``tempfile.TemporaryDirectory`` also where Ctrl-C comes while it is made.
    """
    import secrets
    import tempfile
    from pathlib import Path

    path = Path(parent or tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    try:
        path.mkdir(mode=0o700)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def cache_prefix(kind: str) -> str:
    """Return what the names of temporary files of this process in a cache begin with."""
    return f".{kind}-{os.getpid()}-"


def leftovers(folder: Path, beginning: str = "") -> list[Path]:
    """Return the left-over temporary files in ``folder``, sorted.

    Only those of files whose names begin with ``beginning``.
    """
    return [
        path
        for path in _entries(folder)
        if (found := _BESIDE.fullmatch(path.name))
        and found["name"].startswith(beginning)
        and _is_left(path, int(found["pid"]))
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
            found = _CACHED.fullmatch(path.name)
            if found and _is_left(path, int(found["pid"]) if found["pid"] else None):
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


def _is_left(path: Path, process: int | None) -> bool:
    try:
        age = time.time() - path.lstat().st_mtime
    except OSError:  # it has just gone
        return False
    if process is None or os.name == "nt":  # Windows: os.kill would end the process
        return age > NAMELESS_AFTER_S
    return age > LEFT_AFTER_S and not _runs(process)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError) as error:  # it runs as somebody else; or no such number
        return not isinstance(error, OverflowError)
    return True
