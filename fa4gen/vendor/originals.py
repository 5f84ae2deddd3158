""".fa4gen/originals.zip: the text of the folder's files as fa4gen wrote it, the base of merges.

Deterministic: no time, no machine. Images of compiled kernels are left out: nobody edits them, and
a folder is to stay small.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ORIGINALS = f"{STATE_FOLDER}/originals.zip"
MAX_BYTES = 8 << 20
"""Of one file; the largest kernel has 80 KB."""
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
                archive.writestr(entry, files[path])
    return buffer.getvalue()


def read_originals(folder: Path, hashes: Mapping[str, str]) -> dict[str, bytes]:
    """Return the originals in ``folder`` whose hash is that in ``hashes``, by path.

    An archive that is missing or damaged gives what of it is intact, perhaps nothing.
    """
    found: dict[str, bytes] = {}
    try:
        archive = zipfile.ZipFile(folder / ORIGINALS)
    except (OSError, zipfile.BadZipFile):
        return found
    with archive:
        for entry in archive.infolist():
            wanted = hashes.get(entry.filename)
            if wanted is None or entry.file_size > MAX_BYTES:
                continue
            try:
                data = archive.read(entry)
            except Exception:  # zlib, CRC, encryption, unknown methods: this entry is not intact
                continue
            if sha256(data) == wanted:
                found[entry.filename] = data
    return found
