"""Integer instructions against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.lanes import execute, refused

CLASS = {16: "h", 32: "r", 64: "d"}
KINDS = ["u16", "s16", "u32", "s32", "u64", "s64"]
WORD = st.integers(0, 2**32 - 1)


def parse(kind):
    return kind[0] == "s", int(kind[1:])


def wrap(value, kind):
    signed, bits = parse(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def samples(kind, seed, count=60):
    """Corner values and random ones of a type, as Python integers."""
    bits = parse(kind)[1]
    rng = random.Random(seed)
    corners = [0, 1, 2, -1, -2, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits // 2) + 1]
    values = [
        rng.choice(corners) if rng.random() < 0.4 else rng.getrandbits(bits) for _ in range(count)
    ]
    return [wrap(v >> rng.randrange(bits) if rng.random() < 0.3 else v, kind) for v in values]


def run(text, kinds, columns, result):
    """Execute ``text`` with operands in registers 1, 2, …; register 9 as integers of ``result``."""
    registers = {}
    operands = []
    for place, (kind, column) in enumerate(zip(kinds, columns, strict=True), 1):
        signed, bits = parse(kind)
        name = f"{CLASS[bits]}{place}"
        registers[name] = np.array(column, f"{'i' if signed else 'u'}{bits // 8}")
        operands.append(f"%{name}")
    target = f"{CLASS[parse(result)[1]]}9"
    row = execute(f"{text} %{target}, {', '.join(operands)};", target, **registers)
    return [wrap(int(v), result) for v in row]


def check(text, kinds, result, expected, seed=1):
    columns = [samples(kind, seed + place) for place, kind in enumerate(kinds)]
    found = run(text, kinds, columns, result)
    wanted = [wrap(expected(*row), result) for row in zip(*columns, strict=True)]
    for row, one, other in zip(zip(*columns, strict=True), found, wanted, strict=True):
        assert one == other, (text, row, one, other)


def quotient(a, b):
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def clamp(value, kind):
    signed, bits = parse(kind)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return max(low, min(high, value))


@pytest.mark.parametrize("kind", KINDS)
def test_two_operands(kind):
    bits = parse(kind)[1]
    two = [kind, kind]
    check(f"add.{kind}", two, kind, lambda a, b: a + b)
    check(f"sub.{kind}", two, kind, lambda a, b: a - b)
    check(f"min.{kind}", two, kind, min)
    check(f"max.{kind}", two, kind, max)
    check(f"mul.lo.{kind}", two, kind, lambda a, b: a * b)
    check(f"mul.hi.{kind}", two, kind, lambda a, b: a * b >> bits)
    check(f"div.{kind}", two, kind, quotient)
    check(f"rem.{kind}", two, kind, lambda a, b: a - b * quotient(a, b) if b else -1)


@pytest.mark.parametrize("kind", KINDS)
def test_three_operands(kind):
    bits = parse(kind)[1]
    three = [kind] * 3
    check(f"mad.lo.{kind}", three, kind, lambda a, b, c: a * b + c)
    check(f"mad.hi.{kind}", three, kind, lambda a, b, c: (a * b >> bits) + c)
    check(f"sad.{kind}", three, kind, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide(kind):
    wide = f"{kind[0]}{parse(kind)[1] * 2}"
    check(f"mul.wide.{kind}", [kind, kind], wide, lambda a, b: a * b)
    check(f"mad.wide.{kind}", [kind, kind, wide], wide, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_signs(kind):
    check(f"abs.{kind}", [kind], kind, abs)
    check(f"neg.{kind}", [kind], kind, lambda a: -a)


def test_saturating():
    check("add.sat.s32", ["s32", "s32"], "s32", lambda a, b: clamp(a + b, "s32"))
    check("sub.sat.s32", ["s32", "s32"], "s32", lambda a, b: clamp(a - b, "s32"))
    check("mad.hi.sat.s32", ["s32"] * 3, "s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32"))
    check("min.relu.s32", ["s32", "s32"], "s32", lambda a, b: max(min(a, b), 0))
    check("max.relu.s32", ["s32", "s32"], "s32", lambda a, b: max(a, b, 0))


def test_halves():
    def halves(function, kind):
        def apply(a, b):
            low = function(wrap(a, kind), wrap(b, kind))
            high = function(wrap(a >> 16, kind), wrap(b >> 16, kind))
            return low & 0xFFFF | (high & 0xFFFF) << 16

        return apply

    two = ["u32", "u32"]
    for kind in ("u16", "s16"):
        check(f"add.{kind}x2", two, "u32", halves(lambda a, b: a + b, kind))
        check(f"min.{kind}x2", two, "u32", halves(min, kind))
        check(f"max.{kind}x2", two, "u32", halves(max, kind))
    check("min.relu.s16x2", two, "u32", halves(lambda a, b: max(0, min(a, b)), "s16"))


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bits(kind):
    def product(a, b, high):
        low = [v & 0xFFFFFF for v in (a, b)]
        if kind == "s32":
            low = [v - (v >> 23 << 24) for v in low]
        return low[0] * low[1] >> (16 if high else 0)

    for half in ("lo", "hi"):
        high = half == "hi"
        check(f"mul24.{half}.{kind}", [kind] * 2, kind, lambda a, b, h=high: product(a, b, h))
        check(
            f"mad24.{half}.{kind}", [kind] * 3, kind, lambda a, b, c, h=high: product(a, b, h) + c
        )


@pytest.mark.parametrize("bits", [32, 64])
def test_bits(bits):
    word = f"u{bits}"
    check(f"popc.b{bits}", [word], "u32", lambda a: a.bit_count())
    check(f"clz.b{bits}", [word], "u32", lambda a: bits - a.bit_length())
    check(f"brev.b{bits}", [word], word, lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    for kind in (f"u{bits}", f"s{bits}"):
        check(f"bfind.{kind}", [kind], "u32", lambda a: (~a if a < 0 else a).bit_length() - 1)
        check(
            f"bfind.shiftamt.{kind}",
            [kind],
            "u32",
            lambda a: bits - n if (n := (~a if a < 0 else a).bit_length()) else -1,
        )


def reference_bfe(a, position, length, kind):
    """The loop of the PTX manual."""
    signed, bits = parse(kind)
    top = bits - 1
    pos, count = position & 255, length & 255
    bit = [a >> n & 1 for n in range(bits)]
    sign = bit[min(pos + count - 1, top)] if signed and count else 0
    return sum((bit[pos + n] if n < count and pos + n <= top else sign) << n for n in range(bits))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind):
    rng = random.Random(3)
    bits = parse(kind)[1]
    for _ in range(8):
        position, length = (
            rng.randrange(80),
            rng.choice([0, 1, 5, 31, 32, 33, 64, rng.randrange(256)]),
        )
        check(
            f"bfe.{kind}",
            [kind, "u32", "u32"],
            kind,
            lambda a, p, n: reference_bfe(a, p, n, kind),
            seed=position,
        )
        columns = [samples(kind, length), [position] * 60, [length] * 60]
        found = run(f"bfe.{kind}", [kind, "u32", "u32"], columns, kind)
        assert found == [wrap(reference_bfe(a, position, length, kind), kind) for a in columns[0]]
        word = f"u{bits}"

        def insert(a, b, position=position, length=length):
            field = ((1 << length) - 1) << position & ((1 << bits) - 1)
            return b & ~field | a << position & field

        two = [samples(word, 5), samples(word, 6)]
        found = run(
            f"bfi.b{bits}", [word, word, "u32", "u32"], [*two, [position] * 60, [length] * 60], word
        )
        assert found == [insert(a, b) for a, b in zip(*two, strict=True)]


@settings(max_examples=40, deadline=None)
@given(WORD, st.integers(0, 40), st.integers(0, 40))
def test_masks_and_extension(a, position, length):
    row = {"r1": np.uint32(position), "r2": np.uint32(length), "r3": np.uint32(a)}
    clamped = ((1 << min(length, 32)) - 1) << min(position, 32) & 0xFFFFFFFF
    assert execute("bmsk.clamp.b32 %r9, %r1, %r2;", "r9", **row)[0] == clamped
    wrapped = ((1 << length % 32) - 1) << position % 32 & 0xFFFFFFFF
    assert execute("bmsk.wrap.b32 %r9, %r1, %r2;", "r9", **row)[0] == wrapped
    for mode, width in (("clamp", min(length, 32)), ("wrap", length % 32)):
        low = a & ((1 << width) - 1)
        assert execute(f"szext.{mode}.u32 %r9, %r3, %r2;", "r9", **row)[0] == low
        signed = low - (1 << width) if width and low >> (width - 1) else low
        found = execute(f"szext.{mode}.s32 %r9, %r3, %r2;", "r9", **row)[0]
        assert found == signed & 0xFFFFFFFF


def test_find_nth_set():
    masks = np.uint32([0b10110, 0b10110, 0b10110, 0b10110, 0b10110, 0, 1 << 31, 0b10110])
    base = np.uint32([0, 0, 4, 2, 3, 0, 0, 2**32 - 1])
    offset = np.int32([1, 3, -2, 0, 0, 1, 2, -1])
    found = execute("fns.b32 %r9, %r1, %r2, %r3;", "r9", r1=masks, r2=base, r3=offset)
    assert found.view(np.int32).tolist() == [1, 4, 2, 2, -1, -1, -1, -1]


@pytest.mark.parametrize("left", ["u32", "s32"])
@pytest.mark.parametrize("right", ["u32", "s32"])
def test_dot_products(left, right):
    def part(a, n, bits, kind):
        return wrap(a >> n * bits, f"{kind[0]}{bits}")

    kinds = [left, right, "s32"]
    check(
        f"dp4a.{left}.{right}",
        kinds,
        "s32",
        lambda a, b, c: c + sum(part(a, n, 8, left) * part(b, n, 8, right) for n in range(4)),
    )
    for half in (0, 1):
        check(
            f"dp2a.{('lo', 'hi')[half]}.{left}.{right}", kinds, "s32",
            lambda a, b, c, h=half: c + sum(
                part(a, n, 16, left) * part(b, n + 2 * h, 8, right) for n in range(2)
            ),
        )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(*[st.integers(0, 2**128 - 1)] * 3)
def test_long_sums(a, b, c):
    """128-bit sums, differences and sums of products by means of the carry."""
    words = {
        f"r{10 * place + n + 1}": np.uint32(value >> 32 * n & 0xFFFFFFFF)
        for place, value in enumerate((a, b, c))
        for n in range(4)
    }

    def chain(opcode):
        return "\n".join(
            f"{opcode}{'' if n == 0 else 'c'}{'.cc' if n < 3 else ''}.u32"
            f" %r{31 + n}, %r{n + 1}, %r{11 + n};"
            for n in range(4)
        )

    def number(rows):
        return sum(int(row[0]) << 32 * n for n, row in enumerate(rows))

    results = "r31 r32 r33 r34"
    assert number(execute(chain("add"), results, **words)) == (a + b) % 2**128
    assert number(execute(chain("sub"), results, **words)) == (a - b) % 2**128
    text = """
        mad.lo.cc.u32 %r31, %r1, %r11, %r21;
        madc.hi.cc.u32 %r32, %r1, %r11, %r22;
        addc.cc.u32 %r33, %r23, 0;
        addc.u32 %r34, %r24, 0;
    """
    low = (a % 2**32) * (b % 2**32)
    assert number(execute(text, results, **words)) == (low + c) % 2**128


def test_carry_after_a_subtraction():
    """It says that nothing was borrowed, as on an H200."""
    rows = {"r1": np.uint32([5, 7]), "r2": np.uint32(6)}
    text = "sub.cc.u32 %r3, %r1, %r2; addc.u32 %r4, 0, 0;"
    assert execute(text, "r4", **rows).tolist() == [0, 1]


def test_constants_only():
    assert execute("add.s32 %r9, 5, -7;", "r9")[0] == 2**32 - 2
    assert execute("mul.hi.u32 %r9, 0x80000000, 6;", "r9")[0] == 3
    assert execute("div.s32 %r9, -7, 2;", "r9")[0] == 2**32 - 3


def test_what_does_not_exist():
    for text in (
        "add.sat.u32 %r1, %r2, %r3;",
        "sub.u16x2 %r1, %r2, %r3;",
        "mad.lo.sat.s32 %r1, %r2, %r3, %r4;",
        "min.relu.s64 %d1, %d2, %d3;",
        "neg.u32 %r1, %r2;",
        "mul.wide.u64 %d1, %d2, %d3;",
        "add.s32 %d1, %r2, %r3;",
        "add.s64 %d1, %r2, %d3;",
        "vadd.s32.s32.s32 %r1, %r2, %r3;",
    ):
        assert refused(text), text
