"""Where a project's own file can be; a module of its own, since most runs find none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_NAME = "fa4gen.toml"
SHARED_NAME = "pyproject.toml"


def project_files(start: Path | None = None) -> Iterator[Path]:
    """Yield the files that may describe the project of ``start`` (the current folder).

    The nearest comes first. A pyproject.toml that does not contain the word fa4gen is none.
    """
    folder = (start or Path.cwd()).absolute()
    for place in (folder, *folder.parents):
        own, shared = place / OWN_NAME, place / SHARED_NAME
        if _is_file(own):
            yield own
        if _is_file(shared) and _mentions_fa4gen(shared):
            yield shared
        if place == _home():
            break


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
