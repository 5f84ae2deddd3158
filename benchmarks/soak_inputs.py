"""Files for a soak: configs, sweeps, launch files, PTX, templates; some of them wrong."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from random_configs import draw_numbered

from fa4gen.config.find import shipped_configs
from fa4gen.config.load import load_config
from fa4gen.resources import data_root

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

PTX = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry reverse(.param .u64 source, .param .u64 target, .param .f32 factor)
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>;
    .shared .align 16 .b8 tile[1024];
    ld.param.u64 %d0, [source];
    ld.param.u64 %d1, [target];
    ld.param.f32 %f0, [factor];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d3, %d0, %d2;
    ld.global.f32 %f1, [%d3];
    mov.u32 %r6, 0;
again:
    mul.f32 %f1, %f1, %f0;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p0, %r6, 3;
    @%p0 bra again;
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    st.shared.f32 [%r2], %f1;
    bar.sync 0;
    sub.u32 %r3, 255, %r0;
    mad.lo.u32 %r4, %r3, 4, %r1;
    ld.shared.f32 %f2, [%r4];
    add.u64 %d4, %d1, %d2;
    st.global.f32 [%d4], %f2;
    ret;
}
"""
LAUNCH = """\
block: 256
grid: 1
arguments:
- {name: source, make: arange, shape: [256], dtype: float32}
- {name: target, make: zeros, shape: [256], dtype: float32, output: target.npy}
- {scalar: 2.0, dtype: float32}
seeds: 2
schedules: [uniform, starve]
"""
SWEEP = """\
name: tried
base: {kernel: attention, arch: sm_90a, dtype: bf16, depth: 64}
matrix:
  mask: [none, causal]
  BN: [64, 128, 250]
exclude:
- {mask: none, BN: 64}
include:
- {mask: none, lse: false}
"""
PROJECT = """\
[vendor]
configs = ["configs/good.yaml"]
into = "vendored"
prefix = "acme"
"""
ODD_VALUES = (
    *("0", "-1", "1", "3", "2147483648", "-9223372036854775809", "1e400", ".nan", "-.inf", "1_0"),
    *("~", "[]", "{}", "''", "auto", "true", "no", "0x7f", "1:30", "2026-11-22", "x", "%r99"),
    *(
        "é",
        "\uff11\uff12\uff18",
        "\u202e",
        "*a",
        "&a [*a]",
        "{<<: *b}",
        "? [1]",
        "'",
        '"',
        "- -",
        "!!binary x",
    ),
    *("!!python/object/apply:os.mkdir [made_by_yaml]", "${HOME}", "../../up", "con", "a" * 300),
    *("[" * 2000, "(" * 2000, "9" * 5000, "%tid.q", "sm_999", "\\", "#", ":", "x/0", "max(x"),
)
ODD_BYTES = (b"\0", b"\xff\xfe", b"\t", b"\r\n", b"\xef\xbb\xbf", b"\x1b[31m", b"\xed\xa0\x80")
_WORD = re.compile(r"[A-Za-z0-9_.%]+")


def mutated(text: str, rng: random.Random) -> bytes:
    """Return ``text`` with up to three random changes."""
    data = text
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(_CHANGES)(data, rng)
    raw = data.encode(errors="replace")
    if rng.random() < 0.1:
        place = rng.randrange(len(raw) + 1)
        raw = raw[:place] + rng.choice(ODD_BYTES) + raw[place:]
    return raw[: rng.randrange(len(raw) + 1)] if rng.random() < 0.05 else raw


def _other_word(text: str, rng: random.Random) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text + rng.choice(ODD_VALUES)
    word = rng.choice(words)
    other = rng.choice(ODD_VALUES) if rng.random() < 0.6 else rng.choice(words)[0]
    return text[: word.start()] + other + text[word.end() :]


def _other_number(text: str, rng: random.Random) -> str:
    numbers = list(re.finditer(r"\b\d{1,20}\b", text))
    if not numbers:
        return text
    number = rng.choice(numbers)
    value = int(number[0])
    other = rng.choice((value + 1, value - 1, value * 2, -value, value * 2**20, 2**31, 2**63, 0))
    return text[: number.start()] + str(other) + text[number.end() :]


def _other_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[first]
        case 1:
            lines.insert(second, lines[first])
        case 2:
            lines[first], lines[second] = lines[second], lines[first]
        case _:
            lines[first] = rng.choice((" ", "  ", "-", "- ", "\t")) + lines[first]
    return "".join(lines)


def _more(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(ODD_VALUES) + text[place:]


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _other_word, _other_word, _other_number, _other_number, _other_lines, _more,
)  # fmt: skip


@dataclass(frozen=True)
class Names:
    """What command lines may name, relative to the folder that they run in."""

    configs: tuple[str, ...]
    sweeps: tuple[str, ...]
    ptx: tuple[str, ...]
    launches: tuple[str, ...]
    folders: tuple[str, ...]
    new: tuple[str, ...]
    """Files and folders that may not be there yet: to write to."""


NOWHERE = ("missing", "missing/x.yaml", "pipe", "/dev/null", "", "a\nb", "configs/good.yaml/x")
SHIPPED = ("d64_causal_bf16", "gemm_bf16_sm90", "fa4_d64_dense_bf16", "d64_causl_bf16")


def write_inputs(folder: Path, rng: random.Random) -> Names:
    """Write files of every kind into ``folder``; their names."""
    configs = folder / "configs"
    configs.mkdir(parents=True)

    def put(path: Path, text: str, right: float) -> None:
        raw = text.encode() if rng.random() < right else mutated(text, rng)
        path.write_bytes(raw)

    good = draw_numbered(rng.randrange(20), rng.randrange(90))
    shipped = shipped_configs()
    put(configs / "good.yaml", as_yaml({**good, "name": "good"}), 1)
    put(configs / "shipped.yaml", load_config(rng.choice(shipped)).text, 0.7)
    put(configs / "odd.yaml", as_yaml({**good, "name": "odd"}), 0)
    put(configs / "worse.yaml", load_config(rng.choice(shipped)).text, 0)
    put(folder / "sweep.yaml", SWEEP, 0.6)
    put(folder / "kernel.ptx", PTX, 0.6)
    put(folder / "launch.yaml", LAUNCH, 0.5)
    if rng.random() < 0.3:
        put(folder / "fa4gen.toml", PROJECT, 0.5)
    if rng.random() < 0.3:
        template = data_root("templates") / "device" / "skeleton" / "entry.cuh.j2"
        templates = folder / "templates" / "device" / "skeleton"
        templates.mkdir(parents=True)
        put(templates / template.name, template.read_text(), 0.4)
    os.mkfifo(folder / "pipe")
    return Names(
        configs=(
            *(
                "configs/good.yaml",
                "configs/good.yaml",
                "configs/good.yaml",
                "configs/shipped.yaml",
            ),
            *("configs/odd.yaml", "configs/odd.yaml", "configs/worse.yaml", "configs"),
            *("configs/*.yaml", *SHIPPED, *NOWHERE),
        ),
        sweeps=("sweep.yaml",) * 8 + ("hopper_tuning", "configs/good.yaml", *NOWHERE),
        ptx=(*("kernel.ptx",) * 12, *NOWHERE),
        launches=(*("launch.yaml",) * 12, *NOWHERE),
        folders=("configs", "templates", "generated", "missing", "/dev/null", ""),
        new=(
            *("out", "out", "generated", "deep/er/out", "results.jsonl", "report", "plot"),
            *("configs/good.yaml", "pipe", "/dev/null", "", "vendored", "../beside"),
        ),
    )


def as_yaml(keys: dict[str, object]) -> str:
    """Return ``keys`` as a config file."""
    import yaml

    return yaml.safe_dump(keys, sort_keys=False)
