"""The launcher's own LZMA: every kind of match, and that damage is found and not followed."""

from __future__ import annotations

import lzma
import random
import struct
import subprocess
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fa4gen.errors import CompileError, MissingCapabilityError
from fa4gen.render.environment import open_templates
from fa4gen.vendor.folder import template_values
from fa4gen.vendor.host_build import compile_c, find_c_compiler
from fa4gen.vendor.image import (
    ALPHABET,
    LINE_CHARACTERS,
    LITERAL_BITS,
    LITERAL_POSITION_BITS,
    POSITION_BITS,
    from_text,
    image_lines,
    pack_image,
    to_text,
)
from fa4gen.vendor.model import Request
from tests.vendor.launcher.shipped import facts_of, shipped_plans

LARGEST = 1 << 17


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """unpack.c with the launcher's sources, under the sanitizers where the compiler has them."""
    folder = tmp_path_factory.mktemp("unpack")
    name = "d128_causal_bf16"
    facts = facts_of(name, shipped_plans()[name])
    facts = replace(facts, image=replace(facts.image, cubin_bytes=LARGEST))
    values = template_values(Request("acme", (name,)), (facts,))
    places = {
        "src/launcher.c": "vendor/launcher.c.j2",
        "src/acme_internal.h": "vendor/src/internal.h.j2",
        "include/acme.h": "vendor/launcher.h.j2",
    }
    for path, template in places.items():
        (folder / path).parent.mkdir(exist_ok=True)
        text = open_templates().environment().get_template(template).render(values)
        (folder / path).write_text(text)
    sources = [Path(__file__).parent / "unpack.c"]
    flags = ["-g", "-O1", f"-I{folder / 'src'}"]
    checked = [*flags, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    target = folder / "unpack"
    try:
        compile_c(find_c_compiler(), checked, sources, target)
    except CompileError:
        compile_c(find_c_compiler(), flags, sources, target)
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    return target


def rows_of(packed: bytes) -> list[bytes]:
    return [line.encode() for line in image_lines(packed)]


@dataclass(frozen=True)
class Packed:
    """An image as the program reads it."""

    packed_bytes: int
    cubin_bytes: int
    checksum: int
    rows: list[bytes]


def image_of(data: bytes, packed: bytes, size: int | None = None) -> Packed:
    """``packed`` as an image that is to hold ``data``, of ``size`` bytes."""
    size = len(data) if size is None else size
    return Packed(len(packed), size, zlib.crc32(data), rows_of(packed))


def unpacked(program: Path, images: list[Packed]) -> list[str]:
    """What the program says of images."""
    path = program.with_suffix(".bin")
    with path.open("wb") as stream:
        for image in images:
            stream.write(struct.pack("<QQQ", image.packed_bytes, image.cubin_bytes, image.checksum))
            stream.writelines(row.ljust(LINE_CHARACTERS + 1, b"\0") for row in image.rows)
    made = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()


def contents() -> list[bytes]:
    chance = random.Random(7)
    noise = chance.randbytes(5000)
    return [
        b"",
        b"a",
        b"ab" * 3,
        bytes(LARGEST),
        noise,
        bytes(chance.choices(range(256), [1 / (1 + i) ** 2 for i in range(256)], k=70_000)),
        b"".join(noise[i : i + 258] for i in chance.choices(range(4700), k=200)),
        noise + bytes(32768 - 5000) + noise,  # the farthest distance
        *(chance.randbytes(size) for size in range(60, 76)),
    ]


def streams(data: bytes) -> list[bytes]:
    """``data`` packed by encoders that choose otherwise among literals and matches."""
    choices = [
        {"preset": 9 | lzma.PRESET_EXTREME},
        {"preset": 1},
        {"mode": lzma.MODE_FAST, "mf": lzma.MF_HC3, "nice_len": 5, "depth": 1},
        {"mode": lzma.MODE_NORMAL, "mf": lzma.MF_BT2, "nice_len": 273, "dict_size": 4096},
    ]
    fixed = {"lc": LITERAL_BITS, "lp": LITERAL_POSITION_BITS, "pb": POSITION_BITS}
    return [
        lzma.compress(
            data,
            format=lzma.FORMAT_ALONE,
            filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 20, **choice, **fixed}],
        )
        for choice in choices
    ]


def test_every_kind_of_stream_is_unpacked(program) -> None:
    cases = [(data, packed) for data in contents() for packed in streams(data)]
    expected = [f"{zlib.crc32(data):08x}" for data, _ in cases]
    assert unpacked(program, [image_of(data, packed) for data, packed in cases]) == expected
    image = pack_image(b"cubin" * 1000)
    rows = [line.encode() for line in image.lines]
    packed = Packed(image.packed_bytes, image.cubin_bytes, image.checksum, rows)
    assert unpacked(program, [packed]) == [f"{zlib.crc32(b'cubin' * 1000):08x}"]


def test_damage_is_found(program) -> None:
    images = []
    for data in contents():
        for packed in streams(data):
            wrong = [packed[1:], b"\x5e" + packed[1:]]
            wrong += [packed[: len(packed) // 2]] if data else []
            images += [image_of(data, change) for change in wrong]
            images.append(image_of(data, packed, len(data) + 1))
            images.append(image_of(data, packed, LARGEST + 1))
            if data:
                images.append(image_of(data, packed, len(data) - 1))
            images.append(image_of(data + b"!", packed, len(data)))
            rows = rows_of(packed)
            for character in (b"!", b"z", b"?", b"\xc3"):
                other_rows = [character + rows[0][1:], *rows[1:]]
                images.append(replace(image_of(data, packed), rows=other_rows))
    assert set(unpacked(program, images)) == {"damaged"}


def test_flipped_bits_are_found_unless_they_say_nothing(program) -> None:
    chance = random.Random(11)
    images = []
    for data in contents():
        for packed in streams(data):
            for _ in range(40 if len(data) < 1000 else 2):
                at = chance.randrange(14, len(packed))  # behind the header and the 0 after it
                other = packed[at] ^ (1 << chance.randrange(8))
                changed = packed[:at] + bytes([other]) + packed[at + 1 :]
                images.append(image_of(data, changed))
    outcomes = list(zip(unpacked(program, images), images, strict=True))
    found = [image for said, image in outcomes if said == "damaged"]
    assert all(said in ("damaged", f"{image.checksum:08x}") for said, image in outcomes)
    assert len(found) > len(images) // 2 > 900  # the last bits but close the stream


def test_text_of_any_bytes() -> None:
    chance = random.Random(5)
    for size in [*range(12), 71, 72, 73, 1000]:
        for data in (chance.randbytes(size), bytes(size), b"\xff" * size):
            text = to_text(data)
            assert set(text) <= set(ALPHABET)
            assert from_text(text.encode(), size) == data


def test_what_no_bytes_became_is_refused() -> None:
    for text, size in [(b"#####", 5), (b"####", 4), (b"####!", 4), (b"wwwww", 4), (b"####?", 4)]:
        with pytest.raises(ValueError, match="base"):
            from_text(text, size)


def test_the_text_means_itself_in_a_string_of_c() -> None:
    assert len(set(ALPHABET)) == 85
    assert not set(ALPHABET) & set('"\\?')
