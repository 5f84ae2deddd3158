"""Packed arithmetic that is taken apart gives what it gives as it stands."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.translate.packed_f32 import count_mentions, take_apart
from tests.emulator.kernel import kernel, run

SINGLES, WORDS = 8, 6
LANES = 32
REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<4>; .reg .f32 %f<32>; .reg .b64 %d<400>;"


def texts(body: str) -> list[str]:
    """The opcodes of a body once it was taken apart."""
    run = parse_module(kernel(body, (), registers=REGISTERS)).functions["k"].instructions
    return [one.text for one in take_apart(run, count_mentions(run))]


IDIOM = """
mov.b64 %d4, {%f0, %f1}; mov.b64 %d5, {%f2, %f2};
add.rm.ftz.f32x2 %d6, %d4, %d5;
mov.b64 {%f3, %f4}, %d6;
"""


def test_nothing_is_packed_for_what_is_unpacked_again() -> None:
    assert texts(IDIOM)[:2] == ["add.rm.ftz.f32", "add.rm.ftz.f32"]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("mov.b64 %d7, %d4;", "mov.b64"),
        ("mov.b64 %d7, %d6;", "add.rm.ftz.f32x2"),
        ("st.global.u64 [%d0], %d5;", "mov.b64"),
    ],
)
def test_words_that_others_read_are_kept(more: str, what: str) -> None:
    assert what in texts(IDIOM + more)[:3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add", "mov.f32 %f0, %f5; add"),  # a half changes after it was packed
        ("mov.b64 {", "mov.f32 %f5, %f3; mov.b64 {"),  # a result is read before it is there
        ("mov.b64 {", "mov.f32 %f4, %f5; mov.b64 {"),
        ("{%f3, %f4}", "{%f1, %f4}"),  # a result takes the place of an operand
        ("add", "wgmma.fence.sync.aligned; add"),
        ("add", "@%p0 add"),
        ("{%f3, %f4}", "{%f3, %f3}"),
    ],
)
def test_what_is_in_the_way_is_seen(old: str, new: str) -> None:
    assert "add.rm.ftz.f32x2" in texts(IDIOM.replace(old, new))


def random_body(random: Random) -> str:
    """Packs, arithmetic and unpacks of few registers, so that they get in each other's way."""

    def single() -> str:
        return f"%f{random.randrange(SINGLES)}"

    def word() -> str:
        return f"%d{10 + random.randrange(WORDS)}"

    fresh = iter(range(20, 400))
    lines = [f"mov.b64 %d{10 + number}, {{{single()}, {single()}}};" for number in range(WORDS)]
    while len(lines) < 80:
        choice = random.random()
        mode = random.choice(("rn", "rn.ftz", "rz", "rm.ftz"))
        if choice < 0.5:
            count = random.choice((2, 3))
            names = [f"%d{next(fresh)}" for _ in range(count + 1)]
            lines += [f"mov.b64 {name}, {{{single()}, {single()}}};" for name in names[1:]]
            operands = ", ".join([names[0], *names[1:]])
            if random.random() < 0.3:
                lines.append(f"mov.f32 {single()}, {single()};")
            lines.append(f"{'fma' if count == 3 else 'add'}.{mode}.f32x2 {operands};")
            if random.random() < 0.3:
                lines.append(f"add.f32 {single()}, {single()}, {single()};")
            if random.random() < 0.9:
                lines.append(f"mov.b64 {{{single()}, {single()}}}, {names[0]};")
        elif choice < 0.6:
            lines.append(f"mov.b64 {word()}, {{{single()}, {single()}}};")
        elif choice < 0.7:
            lines.append(f"mul.{mode}.f32x2 {word()}, {word()}, {word()};")
        elif choice < 0.8:
            first, second = random.sample(range(SINGLES), 2)
            lines.append(f"mov.b64 {{%f{first}, %f{second}}}, {word()};")
        else:
            lines.append(f"mov.f32 {single()}, {single()};")
    return "\n".join(lines)


def outputs(body: str, lanes: int) -> np.ndarray:
    """Registers after a body that the first ``lanes`` lanes execute; fewer keep it as it stands."""
    values = np.random.default_rng(5).standard_normal((SINGLES, LANES)).astype(np.float32)
    out = np.zeros((SINGLES + 2 * WORDS, LANES), np.float32)
    head = f"mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, {lanes}; @%p1 bra END;"
    head += "mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;"
    for index in range(SINGLES):
        head += f"ld.global.f32 %f{index}, [%d4 + {4 * LANES * index}];"
    tail = ""
    for index in range(SINGLES):
        tail += f"st.global.f32 [%d3 + {4 * LANES * index}], %f{index};"
    for index in range(WORDS):
        row = SINGLES + 2 * index
        tail += f"mov.b64 {{%f30, %f31}}, %d{10 + index};"
        tail += f"st.global.f32 [%d3 + {4 * LANES * row}], %f30;"
        tail += f"st.global.f32 [%d3 + {4 * LANES * (row + 1)}], %f31;"
    text = head + body + tail + "\nEND:"
    ptx = kernel(text, ("u64", "u64"), target="sm_100a", registers=REGISTERS)
    report = run(ptx, out, values)
    assert report.verdict.value == "clean", str(report)
    return out


@pytest.mark.parametrize("seed", range(12))
def test_random_bodies_give_the_same_bits(seed: int) -> None:
    body = random_body(Random(seed))
    whole, half = outputs(body, LANES), outputs(body, LANES // 2)
    part = (slice(None), slice(0, LANES // 2))
    np.testing.assert_array_equal(whole[part].view(np.uint32), half[part].view(np.uint32))
    assert np.count_nonzero(whole)
