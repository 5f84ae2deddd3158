"""How paths are written in messages."""

from __future__ import annotations

from pathlib import Path


def shown_path(path: Path) -> str:
    """Return ``path`` relative to the current folder when it is inside it, else as it is."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        return str(path)
