""".fa4gen/originals.zip: the lines of the folder's files as fa4gen wrote them, the base of merges.

A merge needs to know which lines were there, not what they say: the archive has a hash of two
bytes for each line, a fifth of what the text would take packed. It is the same wherever it is made.
Images of compiled kernels, manifests and the licence are left out: nobody edits them.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import STATE_FOLDER
from fa4gen.vendor.merge import KEY_BYTES, line_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ORIGINALS = f"{STATE_FOLDER}/originals.zip"
KEYS = f"pairs{8 * KEY_BYTES}"
"""Of the archive: the member with the keys of pairs of lines, named by their bits."""
MAX_BYTES = 8 << 20
"""Of the archive."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3


def belongs(path: str) -> bool:
    """Whether the file at ``path`` is kept among the originals."""
    return path != "LICENSE" and not (
        path.startswith(("cubins/", f"{STATE_FOLDER}/"))
        or (path.startswith("kernels/") and path.endswith(".json"))
    )


def pack_originals(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of those of ``files`` that belong in it.

    Two members, since one for each file would take more than its keys: ``files.json`` has the
    number of keys by path, the other the keys of all lines in that order.
    """
    keys = {path: line_keys(files[path]) for path in sorted(files) if belongs(path)}
    counts = {path: len(of_file) // KEY_BYTES for path, of_file in keys.items()}
    members = {
        "files.json": json.dumps(counts, indent=0).encode(),
        KEYS: b"".join(keys.values()),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = _UNIX
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
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
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(entry.file_size > MAX_BYTES for entry in archive.infolist()):
                return {}
            counts = json.loads(archive.read("files.json"))
            keys = io.BytesIO(archive.read(KEYS))
        return {str(path): keys.read(int(count) * KEY_BYTES) for path, count in counts.items()}
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError):
        return {}  # of another fa4gen
