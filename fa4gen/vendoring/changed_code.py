"""The code of a vendored folder that ``fa4gen vendor verify`` compiles and runs on this machine.

Where it is as the lock has it, it is unchanged since the lock was written; the writer of the lock
is not known from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.vendoring.on_disk import links_in, read_file

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.vendoring.lock import Lock

COMPILED = ("include", "src", "cubins")
"""Folders whose files the C compiler reads: what is in them can take the place of a system's header
as well."""


def changed_code(folder: Path, lock: Lock) -> dict[str, str]:
    """Return the files of ``COMPILED`` that are not as ``lock`` has them, sorted, and why.

    Raises ConfigError for anything but a readable file.
    """
    there = [
        path.relative_to(folder).as_posix()
        for top in COMPILED
        for path in [folder / top, *(folder / top).rglob("*")]
        if path.is_symlink() or path.is_file()
    ]
    recorded = [path for path in lock.files if path.partition("/")[0] in COMPILED]
    found = {}
    for path in sorted({*there, *recorded}):
        if why := _change(folder, path, lock.files.get(path)):
            found[path] = why
    return found


def _change(folder: Path, path: str, recorded: str | None) -> str:
    if recorded is None:
        return "not fa4gen's"
    if links_in(folder, [path]):
        return "behind a link"
    data = read_file(folder, path)
    if data is None:
        return "missing"
    return "" if sha256(data) == recorded else "changed"
