"""A cubin as text of C: compressed, so that a folder stays small, in lines of base 85.

The stream is LZMA in a .lzma file's format, which anyone can unpack; the launcher does it without a
library. Machine code takes two thirds of what it takes as a zlib stream: LZMA's numbers of bits and
distances depend on where in an instruction of 16 bytes they are.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

from fa4gen.errors import MissingCapabilityError, Problem

LINE_CHARACTERS = 4000
"""A multiple of 5, so that each line decodes on its own; as long as C99 takes strings (4095), since
quotes and line ends count."""
LITERAL_BITS, LITERAL_POSITION_BITS, POSITION_BITS = 0, 0, 4
"""LZMA's lc, lp and pb: the launcher unpacks no others. Smallest for the shipped kernels."""
PROPERTIES = (POSITION_BITS * 5 + LITERAL_POSITION_BITS) * 9 + LITERAL_BITS
"""The same as the stream's first byte."""
_STAND_INS = {"?": "x", "\\": "y"}
"""Characters among the 85 from "#" on that mean something in a string of C, and those instead."""
ALPHABET = "".join(_STAND_INS.get(chr(c), chr(c)) for c in range(ord("#"), ord("#") + 85))
"""The digits of base 85, as text: the character of 0, of 1, ..."""
_RFC_1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""Those of Python's base64."""


@dataclass(frozen=True)
class Image:
    """A compiled kernel as it is written into a C array."""

    sha256: str
    """Of the cubin, in hexadecimal."""
    cubin_bytes: int
    packed_bytes: int
    """Of the stream."""
    lines: tuple[str, ...]
    """The stream in base 85; all but the last of LINE_CHARACTERS."""
    checksum: int = 0
    """CRC-32 of the cubin; 0 where the stream is not known."""


def pack_image(cubin: bytes) -> Image:
    """Compress ``cubin``: the same bytes on every machine with the same liblzma.

    Raises MissingCapabilityError where Python was built without it.
    """
    packed = compress(cubin)
    digest = hashlib.sha256(cubin).hexdigest()
    lines = image_lines(packed)
    return Image(digest, len(cubin), len(packed), lines, zlib.crc32(cubin))


def image_lines(packed: bytes) -> tuple[str, ...]:
    """Return the lines of a stream."""
    text = to_text(packed)
    return tuple(text[i : i + LINE_CHARACTERS] for i in range(0, len(text), LINE_CHARACTERS))


def to_text(data: bytes) -> str:
    """Return ``data`` in base 85: 5 digits for 4 bytes, both with the highest first.

    The last bytes are filled up with zeros.
    """
    digits = base64.b85encode(data, pad=True)
    return digits.translate(bytes.maketrans(_RFC_1924.encode(), ALPHABET.encode())).decode()


def from_text(text: bytes, size: int) -> bytes:
    """Return the ``size`` bytes that became ``text``; ValueError where none did."""
    if len(text) != -(-size // 4) * 5 or not set(text) <= set(ALPHABET.encode()):
        raise ValueError(f"expected {size} bytes in base 85")
    digits = text.translate(bytes.maketrans(ALPHABET.encode(), _RFC_1924.encode()))
    return base64.b85decode(digits)[:size]


def compress(data: bytes) -> bytes:
    """Return ``data`` as an LZMA stream that the launcher can unpack; MissingCapabilityError."""
    lzma = _lzma()
    filters = [
        {
            "id": lzma.FILTER_LZMA1,
            "preset": 9 | lzma.PRESET_EXTREME,
            "dict_size": 1 << 20,
            "lc": LITERAL_BITS,
            "lp": LITERAL_POSITION_BITS,
            "pb": POSITION_BITS,
        }
    ]
    packed: bytes = lzma.compress(data, format=lzma.FORMAT_ALONE, filters=filters)
    return packed


def decompress(packed: bytes, limit: int) -> bytes:
    """Return what ``packed`` holds, at most ``limit`` bytes; ValueError for what is no stream."""
    lzma = _lzma()
    try:
        data: bytes = lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(packed, limit)
    except (lzma.LZMAError, EOFError) as error:
        raise ValueError(str(error)) from None
    return data


def _lzma() -> Any:
    try:
        import lzma
    except ImportError:
        raise MissingCapabilityError(
            Problem(
                "vendored kernels are packed by LZMA, which this Python was built without",
                "Use a Python with the module lzma (build it where liblzma's headers are).",
            )
        ) from None
    return lzma
