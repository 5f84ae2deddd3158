"""The folder of everything that fa4gen keeps between runs to save time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MODE = 0o644
"""Permissions of a file for ``read_own``, whatever the umask."""


def read_own(path: Path) -> bytes:
    """Return the contents of a file that no other user can have written.

    Raises OSError where there is no file, or another user owns it or may write to it: the contents
    are executed, here or on a GPU.
    """
    with path.open("rb") as opened:
        if not _is_own(os.fstat(opened.fileno())):
            raise PermissionError(f"{path} is another user's, or others may write to it")
        return opened.read()


def is_own(path: Path) -> bool:
    """Whether there is a file that no other user can have written, in such a folder."""
    try:
        return all(_is_own(one.stat()) for one in (path, path.parent))
    except OSError:
        return False


def keep_own(path: Path) -> None:
    """Let no other user write the file and its folder, whatever the umask: see ``is_own``."""
    for one in (path.parent, path):
        one.chmod(stat.S_IMODE(one.stat().st_mode) & ~OTHERS_WRITE)


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # Windows keeps a user's folder from others
        return True
    return status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE


def cache_folder() -> Path:
    """Return FA4GEN_CACHE_DIR, or fa4gen under XDG_CACHE_HOME or ~/.cache; nothing is made."""
    named = os.environ.get("FA4GEN_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification says to ignore relative paths
        return Path(base) / "fa4gen"
    try:
        return Path.home() / ".cache" / "fa4gen"
    except RuntimeError:  # no home folder: nothing is kept, and storing reports that
        return Path(os.devnull) / "fa4gen"
