""".fa4gen/originals.zip: the lines of the folder's files as fa4gen wrote them, the base of merges.

A merge needs to know which lines were there, not what they say: the archive has a hash of three
bytes for each line, a third of what the text would take packed. It is the same wherever it is made.
Images of compiled kernels are left out: nobody edits them.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import STATE_FOLDER
from fa4gen.vendor.merge import line_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ORIGINALS = f"{STATE_FOLDER}/originals.zip"
MAX_BYTES = 8 << 20
"""Of the archive."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


def belongs(path: str) -> bool:
    """Whether the file at ``path`` is kept among the originals."""
    return not path.startswith(("cubins/", f"{STATE_FOLDER}/"))


def pack_originals(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of those of ``files`` that belong in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files):
            if belongs(path):
                entry = zipfile.ZipInfo(path, _EPOCH)
                entry.create_system = _UNIX
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, line_keys(files[path]))
    return buffer.getvalue()


def read_originals(folder: Path, recorded: str | None) -> dict[str, bytes]:
    """Return the line keys of the folder's originals by path, if the archive has the hash recorded.

    One that is missing, damaged or of another vendoring gives nothing.
    """
    try:
        with (folder / ORIGINALS).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return {}
    if sha256(data) != recorded:
        return {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # as fa4gen wrote it
        return {name: archive.read(name) for name in archive.namelist()}
