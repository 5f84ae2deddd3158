"""A cubin as text of C: compressed, so that a folder stays small, in lines of base64.

zlib's format (RFC 1950): anyone can unpack it, and the launcher does without a library.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass

LINE_CHARACTERS = 92
"""A multiple of 4, so that each line decodes on its own."""


@dataclass(frozen=True)
class Image:
    """A compiled kernel as it is written into a C array."""

    sha256: str
    """Of the cubin, in hexadecimal."""
    cubin_bytes: int
    packed_bytes: int
    """Of the zlib stream."""
    lines: tuple[str, ...]
    """base64 of the stream; all but the last of LINE_CHARACTERS."""


def pack_image(cubin: bytes) -> Image:
    """Compress ``cubin``: the same bytes on every machine with the same zlib."""
    packed = zlib.compress(cubin, 9)
    text = base64.b64encode(packed).decode()
    lines = tuple(text[i : i + LINE_CHARACTERS] for i in range(0, len(text), LINE_CHARACTERS))
    return Image(hashlib.sha256(cubin).hexdigest(), len(cubin), len(packed), lines)
