"""The PTX in an image that a program gives the driver to load: text, a fat binary, or a cubin."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fa4gen.emulator.errors import EmulatorError

_FATBIN: Final = 0xBA55ED50
_FATBIN_HEAD: Final = struct.Struct("<IHHQ")
_PART_HEAD: Final = struct.Struct("<HHIQI")
_PTX: Final = 1
_LZ4, _ZSTD = 0x2000, 0x8000
_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)")


class ImageError(EmulatorError):
    """An image from which no PTX can be had."""


@dataclass(frozen=True, slots=True)
class _Part:
    kind: int
    arch: int
    data: bytes


def find_ptx(image: bytes, supplied: Sequence[Path], sm: int) -> str:
    """The PTX text of an image; of several for ``sm`` (such as 90) or less, that for the highest.

    ``supplied`` are files of PTX, or folders with such files, for images that hold machine code
    only: the newest file that has the image's kernels is taken. Raises ImageError.
    """
    if image.startswith(b"\x7fELF"):
        return _supplied_for(kernels_of(image), supplied)
    if len(image) >= 4 and struct.unpack_from("<I", image)[0] == _FATBIN:
        parts = list(_parts(image))
        texts = {part.arch: part.data for part in parts if part.kind == _PTX and part.arch <= sm}
        if texts:
            return _text(texts[max(texts)].rstrip(b"\0"))
        names = [name for part in parts if part.kind != _PTX for name in kernels_of(part.data)]
        if not names:
            raise ImageError(f"a fat binary with nothing in it for sm_{sm}")
        return _supplied_for(names, supplied)
    return _text(image)


def kernels_of(cubin: bytes) -> list[str]:
    """The kernels in a cubin: its sections ``.text.NAME``."""
    if not cubin.startswith(b"\x7fELF\x02"):
        return []
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    (strings,) = struct.unpack_from("<Q", cubin, table + names * size + 0x18)
    found = []
    for index in range(count):
        (at,) = struct.unpack_from("<I", cubin, table + index * size)
        begin = strings + at
        name = cubin[begin : cubin.index(b"\0", begin)].decode(errors="replace")
        if name.startswith(".text."):
            found.append(name.removeprefix(".text."))
    return found


def _supplied_for(kernels: Sequence[str], supplied: Sequence[Path]) -> str:
    files = [path for path in supplied if path.is_file()]
    for folder in supplied:
        found = folder.rglob("*.ptx") if folder.is_dir() else ()
        files += sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        if set(kernels) <= set(_ENTRY.findall(text)):
            return text
    names = ", ".join(kernels) or "no kernel"
    raise ImageError(
        f"an image with machine code only ({names}), which the emulator does not run: have the "
        "program compile to PTX, or give the PTX of these kernels with --ptx"
    )


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ImageError("an image that is not PTX text, a fat binary or a cubin") from None


def _parts(image: bytes) -> Iterator[_Part]:
    _, _, at, size = _FATBIN_HEAD.unpack_from(image)
    stop = min(at + size, len(image))
    while at + 64 <= stop:
        kind, _, head, size, packed = _PART_HEAD.unpack_from(image, at)
        (arch,) = struct.unpack_from("<I", image, at + 28)
        (flags,) = struct.unpack_from("<Q", image, at + 40)
        (whole,) = struct.unpack_from("<Q", image, at + 56)
        data = image[at + head : at + head + size]
        if flags & _ZSTD:
            data = _zstd(data[:packed], whole)
        elif flags & _LZ4:
            data = lz4(data[:packed], whole)
        yield _Part(kind, arch, data)
        at += head + size


def lz4(packed: bytes, whole: int) -> bytes:
    """Unpack a block of LZ4 to ``whole`` bytes. Raises ImageError for damaged ones."""
    try:
        out = _lz4(packed)
    except IndexError:
        out = b""
    if len(out) != whole:
        raise ImageError("a fat binary whose compressed text is damaged")
    return out


def _lz4(packed: bytes) -> bytes:
    out = bytearray()
    at = 0

    def length(first: int) -> int:
        nonlocal at
        total, more = first, 255 if first == 15 else 0
        while more == 255:
            more = packed[at]
            at += 1
            total += more
        return total

    while at < len(packed):
        token = packed[at]
        at += 1
        literals = length(token >> 4)
        out += packed[at : at + literals]
        at += literals
        if at + 2 > len(packed):
            break
        distance = packed[at] | packed[at + 1] << 8
        at += 2
        if distance == 0:
            break
        for _ in range(length(token & 15) + 4):  # the source of a copy may overlap its destination
            out.append(out[-distance])
    return bytes(out)


def _zstd(packed: bytes, whole: int) -> bytes:
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise ImageError(
            "a fat binary compressed with Zstandard, and there is no libzstd here: install it, or "
            "compile the program with nvcc -compress-mode=speed"
        )
    library = ctypes.CDLL(name)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
    )  # fmt: skip
    target = ctypes.create_string_buffer(max(whole, 1))
    if library.ZSTD_decompress(target, whole, packed, len(packed)) != whole:
        raise ImageError("a fat binary whose compressed text is damaged")
    return target.raw[:whole]
