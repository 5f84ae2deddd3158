"""Paths as messages write them."""

from __future__ import annotations

from pathlib import Path

from fa4gen.escapes import one_line


def shown_path(path: Path) -> str:
    """Return ``path`` relative to the current folder when it is inside it, else as it is.

    Characters that are none of a line are escaped.
    """
    try:
        return one_line(str(path.absolute().relative_to(Path.cwd())))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        return one_line(str(path))
