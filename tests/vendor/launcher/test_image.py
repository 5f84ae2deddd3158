"""What packing.py makes of bytes the launcher unpacks; damage is found and not followed."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pytest

from fa4gen.errors import CompileError, MissingCapabilityError
from fa4gen.render.environment import open_templates
from fa4gen.vendor.folder import template_values
from fa4gen.vendor.host_build import compile_c, find_c_compiler
from fa4gen.vendor.image import ALPHABET, LINE_CHARACTERS, image_lines, pack_image, to_text
from fa4gen.vendor.model import Request
from fa4gen.vendor.packing import RADIX
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


@dataclass(frozen=True)
class Packed:
    """An image as the program reads it."""

    digits: str
    cubin_bytes: int
    checksum: int


def image_of(data: bytes, digits: str, size: int | None = None) -> Packed:
    """``digits`` as an image that is to hold ``data``, of ``size`` bytes."""
    return Packed(digits, len(data) if size is None else size, zlib.crc32(data))


def unpacked(program: Path, images: list[Packed]) -> list[str]:
    """What the program says of images."""
    path = program.with_suffix(".bin")
    with path.open("wb") as stream:
        for image in images:
            numbers = (len(image.digits), image.cubin_bytes, image.checksum)
            stream.write(struct.pack("<QQQ", *numbers))
            rows = image_lines(image.digits)
            stream.writelines(row.encode().ljust(LINE_CHARACTERS + 1, b"\0") for row in rows)
    made = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()


def instructions(chance: random.Random, count: int) -> bytes:
    """Some kinds of 16 bytes, in which a few change."""
    kinds = [chance.randbytes(16) for _ in range(12)]
    made = b""
    for kind in chance.choices(kinds, k=count):
        at = chance.randrange(2, 16)
        made += kind[:at] + chance.randbytes(1) + kind[at + 1 :]
    return made


@lru_cache(maxsize=1)
def contents() -> dict[bytes, str]:
    """Bytes of all kinds, and their digits."""
    chance = random.Random(7)
    noise = chance.randbytes(3000)
    code = instructions(chance, 500)
    kinds = [
        b"",
        b"a",
        b"ab" * 3,
        bytes(20_000),
        b"\xff" * 5000,
        noise,
        bytes(chance.choices(range(256), [1 / (1 + i) ** 2 for i in range(256)], k=20_000)),
        b"".join(noise[i : i + 258] for i in chance.choices(range(2700), k=60)),
        noise + bytes(5000) + noise,
        code,
        code[:4001] + code[16:6000],  # instructions that do not begin at a multiple of 16
        *(chance.randbytes(size) for size in range(5, 37)),
    ]
    return {data: to_text(data) for data in kinds}


def test_what_is_packed_is_unpacked(program) -> None:
    expected = [f"{zlib.crc32(data):08x}" for data in contents()]
    assert unpacked(program, [image_of(*each) for each in contents().items()]) == expected


def test_an_image_is_packed_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path))
    image = pack_image(b"cubin" * 1000)
    (kept,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert image.packed_bytes == len("".join(image.lines)) < 200
    with monkeypatch.context() as without:
        without.setattr("fa4gen.vendor.image.pack", None)
        assert pack_image(b"cubin" * 1000) == image
    kept.write_text(kept.read_text().replace(image.lines[0][5], "!"))
    assert pack_image(b"cubin" * 1000) == image
    kept.write_bytes(b"\xff")
    assert pack_image(b"cubin" * 1000) == image
    assert pack_image(b"cubin" * 1000).checksum == zlib.crc32(b"cubin" * 1000)


def test_damage_is_found(program) -> None:
    images = []
    for data, digits in contents().items():
        if not data:
            continue
        wrong = ["~" + digits[1:], digits[1:], "#" + digits, digits[: len(digits) // 2]]
        images += [image_of(data, change) for change in wrong if change.rstrip("#") != digits]
        for size in (len(data) + 1, len(data) - 1, LARGEST + 1):
            images.append(image_of(data, digits, size))
        images.append(image_of(data + b"!", digits, len(data)))
        images += [image_of(data, c + digits[1:]) for c in ('"', "\t", "\x7f")]
    assert set(unpacked(program, images)) == {"damaged"}


def test_changed_digits_are_found_unless_they_say_nothing(program) -> None:
    chance = random.Random(11)
    images = []
    for data, digits in contents().items():
        for _ in range(40 if 0 < len(data) < 1000 else 2):
            at = chance.randrange(len(digits) or 1)
            other = chance.choice(ALPHABET.replace(digits[at : at + 1] or "#", ""))
            images.append(image_of(data, digits[:at] + other + digits[at + 1 :]))
    outcomes = list(zip(unpacked(program, images), images, strict=True))
    found = [image for said, image in outcomes if said == "damaged"]
    assert all(said in ("damaged", f"{image.checksum:08x}") for said, image in outcomes)
    assert len(found) > len(images) * 0.9 > 1000  # the last digits but close the number


def test_no_digit_is_wasted() -> None:
    """Noise takes what it is, and what repeats a few digits."""
    noise = random.Random(3).randbytes(4000)
    assert len(to_text(noise)) < 4000 * 8 / math.log2(len(ALPHABET)) * 1.05
    assert len(to_text(noise * 2)) < len(to_text(noise)) * 1.08
    assert not any(text.endswith("#") for text in contents().values())


def test_the_digits_mean_themselves_in_a_string_of_c() -> None:
    assert len(set(ALPHABET)) == RADIX == 90
    assert not set(ALPHABET) & set('"\\?{}')
    assert all(" " <= digit <= "~" for digit in ALPHABET)
