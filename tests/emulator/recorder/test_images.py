"""PTX out of what programs load: fat binaries packed in every way, cubins, text."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import struct

import pytest

from fa4gen.emulator.recorder.images import ImageError, find_ptx, kernels_of, lz4

PTX = ".version 8.0\n.target sm_90a\n.visible .entry k() { ret; }\n" * 20


def part(kind: int, arch: int, data: bytes, flags: int = 0, whole: int = 0) -> bytes:
    packed = len(data)
    data = data.ljust(-(-packed // 8) * 8, b"\0")
    head = struct.pack("<HHIQI", kind, 0x101, 64, len(data), packed if flags else 0)
    head += struct.pack("<IHHIIIQQQ", 0, 0, 9, arch, 0, 0, flags, 0, whole)
    return head.ljust(64, b"\0") + data


def fatbin(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(*sections: str) -> bytes:
    """An ELF file with sections of these names and nothing in them."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in sections)
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, 64 + len(names))
    struct.pack_into("<3H", head, 0x3A, 64, len(sections) + 1, 0)
    table = struct.pack("<IIQQQQ", 0, 3, 0, 0, 64, len(names)).ljust(64, b"\0")
    at = 1
    for name in sections:
        table += struct.pack("<I", at).ljust(64, b"\0")
        at += len(name) + 1
    return bytes(head) + names + table


def test_text_is_itself() -> None:
    assert find_ptx(PTX.encode(), (), 90) == PTX


def test_the_newest_ptx_that_runs_is_taken() -> None:
    image = fatbin(
        part(1, 80, b"old\0"), part(2, 90, elf(".text.k")), part(1, 90, b"right\0"),
        part(1, 100, b"new\0"),
    )  # fmt: skip
    assert find_ptx(image, (), 90) == "right"
    assert find_ptx(image, (), 103) == "new"


# "ab" x 20, then "end": literals, an overlapping copy of 38 from 2 back, literals
PACKED = b"\x2fab\x02\x00\x13" + b"\x30end"


def test_lz4() -> None:
    assert lz4(PACKED, 43) == b"ab" * 20 + b"end"
    text = bytes(range(256)) * 2  # 512 literals: the length goes on over several bytes
    assert lz4(b"\xf0" + bytes([255, 242]) + text, 512) == text
    image = fatbin(part(1, 90, PACKED, 0x2000, 43))
    assert find_ptx(image, (), 90) == "ab" * 20 + "end"


@pytest.mark.parametrize("packed", [b"\x0fab", b"\x10a\x02\x00", PACKED[:-1]])
def test_damaged_text_is_refused(packed: bytes) -> None:
    with pytest.raises(ImageError, match="damaged"):
        lz4(packed, 43)


@pytest.mark.skipif(ctypes.util.find_library("zstd") is None, reason="there is no libzstd")
def test_zstandard() -> None:
    library = ctypes.CDLL(ctypes.util.find_library("zstd"))
    library.ZSTD_compress.restype = ctypes.c_size_t
    room = ctypes.create_string_buffer(10000)
    raw = PTX.encode()
    size = library.ZSTD_compress(room, ctypes.c_size_t(10000), raw, ctypes.c_size_t(len(raw)), 3)
    image = fatbin(part(1, 90, room.raw[:size], 0x8000, len(raw)))
    assert find_ptx(image, (), 90) == PTX
    with pytest.raises(ImageError, match="damaged"):
        find_ptx(fatbin(part(1, 90, room.raw[: size - 9], 0x8000, len(raw))), (), 90)


def test_machine_code_takes_the_ptx_that_has_its_kernels(tmp_path) -> None:
    image = elf(".text.k", ".nv.info")
    assert kernels_of(image) == ["k"]
    other, right, cache = tmp_path / "other.ptx", tmp_path / "right.ptx", tmp_path / "cache"
    other.write_text(".entry other()")
    right.write_text(PTX)
    assert find_ptx(image, (other, right), 90) == PTX
    assert find_ptx(fatbin(part(2, 90, image)), (right,), 90) == PTX
    with pytest.raises(ImageError, match=r"machine code only \(k\).*--ptx"):
        find_ptx(image, (other, cache), 90)
    for age, text in enumerate((PTX + "// new", PTX + "// old")):
        path = cache / str(age) / "k.ptx"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (1000 - age, 1000 - age))
    assert find_ptx(image, (other, cache), 90).endswith("// new")


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(ImageError, match="not PTX text"):
        find_ptx(b"\xff\xfe\xfd", (), 90)
    with pytest.raises(ImageError, match="nothing in it for sm_90"):
        find_ptx(fatbin(part(1, 100, b"new\0")), (), 90)
