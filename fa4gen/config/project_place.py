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
        if own.is_file():
            yield own
        if shared.is_file() and _mentions_fa4gen(shared):
            yield shared
        if place == _home():
            break


def _mentions_fa4gen(path: Path) -> bool:
    with suppress(OSError):
        return b"fa4gen" in path.read_bytes()
    return True  # whoever reads it says why it cannot be read


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None
