"""The launcher's own zlib: every kind of block, and that damage is found and not followed."""

from __future__ import annotations

import base64
import hashlib
import random
import struct
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from fa4gen.errors import CompileError, MissingCapabilityError
from fa4gen.render.environment import open_templates
from fa4gen.vendor.folder import template_values
from fa4gen.vendor.host_build import compile_c, find_c_compiler
from fa4gen.vendor.image import LINE_CHARACTERS, pack_image
from fa4gen.vendor.model import Request
from tests.vendor.launcher.shipped import facts_of, shipped_plans

LARGEST = 1 << 17
SOURCES = ("image", "sha256", "driver")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """unpack.c with the launcher's sources, under the sanitizers where the compiler has them."""
    folder = tmp_path_factory.mktemp("unpack")
    name = "d128_causal_bf16"
    facts = facts_of(name, shipped_plans()[name])
    facts = replace(facts, image=replace(facts.image, cubin_bytes=LARGEST))
    values = template_values(Request("acme", (name,)), (facts,))
    places = {f"src/{each}.c": f"vendor/src/{each}.c.j2" for each in SOURCES}
    places["src/acme_internal.h"] = "vendor/src/internal.h.j2"
    places["include/acme.h"] = "vendor/launcher.h.j2"
    for path, template in places.items():
        (folder / path).parent.mkdir(exist_ok=True)
        text = open_templates().environment().get_template(template).render(values)
        (folder / path).write_text(text)
    sources = [*(folder / f"src/{each}.c" for each in SOURCES), Path(__file__).parent / "unpack.c"]
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
    text = base64.b64encode(packed)
    return [text[i : i + LINE_CHARACTERS] for i in range(0, len(text), LINE_CHARACTERS)]


def unpacked(program: Path, images: list[tuple[int, int, list[bytes]]]) -> list[str]:
    """What the program says of images: bytes packed, bytes unpacked, rows."""
    path = program.with_suffix(".bin")
    with path.open("wb") as stream:
        for packed_bytes, cubin_bytes, rows in images:
            stream.write(struct.pack("<QQ", packed_bytes, cubin_bytes))
            stream.writelines(row.ljust(LINE_CHARACTERS + 1, b"\0") for row in rows)
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
    packed = [zlib.compress(data, level) for level in (0, 1, 6, 9)]
    for strategy in (zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE):
        made = zlib.compressobj(9, zlib.DEFLATED, 15, 9, strategy)
        packed.append(made.compress(data) + made.flush())
    made = zlib.compressobj(9, zlib.DEFLATED, 9, 1)  # many blocks, and empty ones between
    half = len(data) // 2
    packed.append(
        made.compress(data[:half])
        + made.flush(zlib.Z_FULL_FLUSH)
        + made.compress(data[half:])
        + made.flush()
    )
    return packed


def test_every_kind_of_stream_is_unpacked(program) -> None:
    cases = [(data, packed) for data in contents() for packed in streams(data)]
    images = [(len(packed), len(data), rows_of(packed)) for data, packed in cases]
    expected = [hashlib.sha256(data).hexdigest() for data, _ in cases]
    assert unpacked(program, images) == expected
    packed = pack_image(b"cubin" * 1000)
    image = (packed.packed_bytes, packed.cubin_bytes, [line.encode() for line in packed.lines])
    assert unpacked(program, [image]) == [packed.sha256]


def test_damage_is_found(program) -> None:
    chance = random.Random(11)
    images = []
    for data in contents():
        for packed in streams(data):
            changes = [packed[:-1], packed[:-4], packed[: len(packed) // 2], packed[1:]]
            for _ in range(12):
                at = chance.randrange(len(packed))
                other = packed[at] ^ (1 << chance.randrange(8))
                changes.append(packed[:at] + bytes([other]) + packed[at + 1 :])
            images += [
                (len(change), len(data), rows_of(change))
                for change in changes
                if not is_whole(change, data)
            ]
            images.append((len(packed), len(data) + 1, rows_of(packed)))
            images.append((len(packed), LARGEST + 1, rows_of(packed)))
            if data:
                images.append((len(packed), len(data) - 1, rows_of(packed)))
            rows = rows_of(packed)
            rows[0] = b"!" + rows[0][1:]
            images.append((len(packed), len(data), rows))
    assert set(unpacked(program, images)) == {"damaged"}
    assert len(images) > 3000


def is_whole(packed: bytes, data: bytes) -> bool:
    """Whether zlib makes the same of it: some bits mean nothing, as those that fill a byte."""
    try:
        return zlib.decompress(packed) == data
    except zlib.error:
        return False
