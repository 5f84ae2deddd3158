""".fa4gen/originals.zip: the lines of the folder's files as fa4gen wrote them, the base of merges.

A merge needs to know which lines were there, not what they say: the archive has a hash of ten
bits for each statement, a tenth of what the text would take packed. It is the same wherever it is
made. Images of compiled kernels, manifests and the licence are left out: nobody edits them.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from itertools import islice
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.vendor.lock import STATE_FOLDER
from fa4gen.vendor.merge import KEY_BITS, LineKeys, line_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fa4gen.vendor.merge import Grouping

ORIGINALS = f"{STATE_FOLDER}/originals.zip"
KINDS: dict[str, Grouping] = {
    "blocks": "blocks",
    "statements": "statements",
    "joined": "closing",
    "pairs": "lines",
}
"""Of the archive: the member with the keys is called this and their bits; older folders have the
others, with more keys."""
COUNTS = "files.json"
KNOWN_BITS = (KEY_BITS, 8, 12, 16)
"""Of keys that are read: those of today, and of older folders."""
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

    Its one member has the keys of all lines, file by file in the order of the paths, the highest
    bits first; its comment the number of keys of each file. Older folders have the numbers by path
    in a member of its own, COUNTS.
    """
    keys = [line_keys(files[path]).keys for path in sorted(files) if belongs(path)]
    entry = zipfile.ZipInfo(f"blocks{KEY_BITS}", _EPOCH)
    entry.create_system = _UNIX
    entry.external_attr = 0o644 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, _packed([key for of_file in keys for key in of_file]))
        archive.comment = json.dumps(list(map(len, keys)), separators=(",", ":")).encode()
    return buffer.getvalue()


def _packed(keys: Sequence[int]) -> bytes:
    """Return numbers of KEY_BITS one after the other, filled up to whole bytes."""
    bits = "".join(f"{key:0{KEY_BITS}b}" for key in keys)
    size = -(-len(bits) // 8)
    return int(bits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")


def _unpacked(data: bytes, bits: int) -> list[int]:
    """Return the numbers of so many bits in ``data``, the last of which may be no key."""
    text = "".join(f"{byte:08b}" for byte in data)
    return [int(text[i : i + bits], 2) for i in range(0, len(text) - bits + 1, bits)]


def read_originals(folder: Path, recorded: str | None, paths: Iterable[str]) -> dict[str, LineKeys]:
    """Return the line keys of the folder's originals by path, if the archive has the hash recorded.

    ``paths`` are those of the files that were written.

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
            names = archive.namelist()
            if COUNTS in names:
                counts = json.loads(archive.read(COUNTS))
            else:
                own = sorted(path for path in paths if belongs(path))
                counts = dict(zip(own, json.loads(archive.comment), strict=True))
            kind, bits = next(
                (kind, bits) for kind in KINDS for bits in KNOWN_BITS if f"{kind}{bits}" in names
            )
            keys = iter(_unpacked(archive.read(f"{kind}{bits}"), bits))
        return {
            str(path): LineKeys(tuple(islice(keys, int(count))), bits, KINDS[kind])
            for path, count in counts.items()
        }
    except (
        zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError,
        StopIteration,
    ):  # fmt: skip
        return {}  # of another fa4gen
