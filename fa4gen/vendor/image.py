"""A cubin as text of C: packed, so that a folder stays small, in lines of digits.

How it is packed is in packing.py; the launcher unpacks it without a library.
"""

from __future__ import annotations

import hashlib
import zlib
from contextlib import suppress
from dataclasses import dataclass

from fa4gen.cache_folder import cache_folder, read_own
from fa4gen.temporary import temporary_path
from fa4gen.vendor.packing import MODEL, RADIX, pack

LINE_CHARACTERS = 4000
"""Nearly as many as C99 takes in a string (4095), since quotes and line ends count."""
_STAND_INS = {"?": "!", "\\": "~", "{": " "}
"""Characters from "#" on that mean something in strings of C or templates, and those instead."""
ALPHABET = "".join(_STAND_INS.get(chr(c), chr(c)) for c in range(ord("#"), ord("#") + RADIX))
"""The characters of the digits 0, 1, ..."""


@dataclass(frozen=True)
class Image:
    """A compiled kernel as it is written into a C array."""

    sha256: str
    """Of the cubin, in hexadecimal."""
    cubin_bytes: int
    packed_bytes: int
    """Digits of the packed cubin, a byte each."""
    lines: tuple[str, ...]
    """The digits; all but the last of LINE_CHARACTERS."""
    checksum: int = 0
    """CRC-32 of the cubin; 0 where the digits are not known."""


def pack_image(cubin: bytes) -> Image:
    """Pack ``cubin``: the same digits on every machine."""
    digest = hashlib.sha256(cubin).hexdigest()
    lines = image_lines(_packed(cubin, digest))
    return Image(digest, len(cubin), sum(map(len, lines)), lines, zlib.crc32(cubin))


def image_lines(digits: str) -> tuple[str, ...]:
    """Return the lines of digits."""
    return tuple(digits[i : i + LINE_CHARACTERS] for i in range(0, len(digits), LINE_CHARACTERS))


def to_text(data: bytes) -> str:
    """Return the digits of ``data``."""
    return "".join(ALPHABET[digit] for digit in pack(data))


def _packed(cubin: bytes, digest: str) -> str:
    """Return ``to_text`` of ``cubin``; kept in the cache folder, since it takes a second or two."""
    key = hashlib.sha256(f"{MODEL} {digest}".encode()).hexdigest()
    path = cache_folder() / "packed" / key[:2] / key
    with suppress(OSError, ValueError):
        check, _, kept = read_own(path).decode("ascii").partition("\n")
        if check == hashlib.sha256(kept.encode()).hexdigest():
            return kept
    digits = to_text(cubin)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        private = temporary_path(path)
        check = hashlib.sha256(digits.encode()).hexdigest()
        private.write_text(f"{check}\n{digits}", encoding="ascii")
        private.chmod(0o644)  # whatever the umask: read_own refuses what a group may write
        private.replace(path)
    return digits
