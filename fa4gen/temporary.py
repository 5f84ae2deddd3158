"""Files that have another name until they are whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def temporary_path(path: Path) -> Path:
    """Return the path of a file that this process then renames to ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Put ``data`` at ``path`` by a rename: all of it or nothing; OSError.

    ``mode``: its permissions, where they are not those of the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        temporary.write_bytes(data)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
