"""Literals, sinks, guards and carries of scalar instructions, and what does not exist."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.instructions.scalar.definitions import (
    NAN,
    SMALL,
    nearest_code,
    permuted,
    register,
    small_values,
    special_bits,
)
from tests.emulator.lanes import execute
from tests.emulator.rounding import FORMATS

# ---- whole numbers


def test_constants_only() -> None:
    assert execute("add.s32 %r9, 5, -7;", "r9")[0] == 2**32 - 2
    assert execute("mul.hi.u32 %r9, 0x80000000, 6;", "r9")[0] == 3
    assert execute("div.s32 %r9, -7, 2;", "r9")[0] == 2**32 - 3
    assert execute("cvt.rn.f16x2.f32 %r3, 0f3F800000, 0f40000000;", "r3")[0] == 0x3C004000


def test_find_nth_set() -> None:
    masks = np.uint32([0b10110, 0b10110, 0b10110, 0b10110, 0b10110, 0, 1 << 31, 0b10110])
    base = np.uint32([0, 0, 4, 2, 3, 0, 0, 2**32 - 1])
    offset = np.int32([1, 3, -2, 0, 0, 1, 2, -1])
    found = execute("fns.b32 %r9, %r1, %r2, %r3;", "r9", r1=masks, r2=base, r3=offset)
    assert found.view(np.int32).tolist() == [1, 4, 2, 2, -1, -1, -1, -1]


@settings(max_examples=40, deadline=None)
@given(*[st.integers(0, 2**128 - 1)] * 3)
def test_long_sums(a: int, b: int, c: int) -> None:
    """128-bit sums, differences and sums of products by means of the carry."""
    words = {
        f"r{10 * place + n + 1}": np.uint32(value >> 32 * n & 0xFFFFFFFF)
        for place, value in enumerate((a, b, c))
        for n in range(4)
    }

    def chain(opcode: str) -> str:
        return "\n".join(
            f"{opcode}{'' if n == 0 else 'c'}{'.cc' if n < 3 else ''}.u32"
            f" %r{31 + n}, %r{n + 1}, %r{11 + n};"
            for n in range(4)
        )

    def number(text: str) -> int:
        rows = execute(text, "r31 r32 r33 r34", **words)
        return sum(int(row[0]) << 32 * n for n, row in enumerate(rows))

    assert number(chain("add")) == (a + b) % 2**128
    assert number(chain("sub")) == (a - b) % 2**128
    text = """
        mad.lo.cc.u32 %r31, %r1, %r11, %r21;
        madc.hi.cc.u32 %r32, %r1, %r11, %r22;
        addc.cc.u32 %r33, %r23, 0;
        addc.u32 %r34, %r24, 0;
    """
    assert number(text) == ((a % 2**32) * (b % 2**32) + c) % 2**128


def test_carry_after_a_subtraction() -> None:
    """It says that nothing was borrowed, as on an H200."""
    rows = {"r1": np.uint32([5, 7]), "r2": np.uint32(6)}
    text = "sub.cc.u32 %r3, %r1, %r2; addc.u32 %r4, 0, 0;"
    assert execute(text, "r4", **rows).tolist() == [0, 1]


# ---- logic


def test_predicates() -> None:
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert execute("and.pred %p3, %p1, %p2;", "p3", p1=p, p2=q).tolist() == [0, 0, 0, 1]
    assert execute("or.pred %p3, %p1, !%p2;", "p3", p1=p, p2=q).tolist() == [1, 0, 1, 1]
    assert execute("xor.pred %p3, %p1, 1;", "p3", p1=p, p2=q).tolist() == [1, 1, 0, 0]
    assert execute("not.pred %p3, %p1;", "p3", p1=p, p2=q).tolist() == [1, 1, 0, 0]


def test_every_table_of_lop3() -> None:
    # lane n has the three bits of n as its operands
    lanes = np.arange(8, dtype=np.uint32)
    a, b, c = (-(lanes >> n & 1).astype(np.int32) for n in (2, 1, 0))
    for table in range(256):
        found = execute(f"lop3.b32 %r1, %r1, %r2, %r3, {table};", "r1", r1=a, r2=b, r3=c)
        assert found.tolist() == [0xFFFFFFFF * (table >> n & 1) for n in range(8)]


def test_lop3_with_predicate() -> None:
    a, q = np.uint32([0, 0, 5, 5]), np.array([0, 1, 0, 1], bool)
    rows = {"r1": a, "r2": np.uint32(0), "p1": q}
    text = "lop3.{}.b32 {}|%p2, %r1, %r2, 0, 0xFC, {};"
    d, p = execute(text.format("or", "%r4", "%p1"), "r4 p2", **rows)
    assert d.tolist() == a.tolist()
    assert p.tolist() == [0, 1, 1, 1]
    assert execute(text.format("and", "_", "!%p1"), "p2", **rows).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_shifts_by_literals(kind: str) -> None:
    cls, bits = register(kind), int(kind[1:])
    values = [0, 1, (1 << bits) - 1, 1 << (bits - 1), 0x1234567890ABCDEF % (1 << bits)]
    row = {f"{cls}1": np.array(values, f"u{bits // 8}")}
    for count in (0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 200, 2**31, 2**32 - 1):
        moved = min(count, 2 * bits)
        for name, signed, change in (
            ("shl.b", False, lambda v, n: v << n), ("shr.u", False, lambda v, n: v >> n),
            ("shr.s", True, lambda v, n: v >> n),
        ):  # fmt: skip
            found = execute(f"{name}{bits} %{cls}2, %{cls}1, {count};", f"{cls}2", **row)
            numbers = [v - (v >> (bits - 1) << bits) if signed else v for v in values]
            assert found.tolist() == [change(v, moved) % (1 << bits) for v in numbers], name


@pytest.mark.parametrize("selector", [0x5410, 0x7632, 0x3210, 0x0123, 0x0F8B, 0xFEDC])
def test_prmt_by_literals(selector: int) -> None:
    a, b = 0x80917F00, 0x12F4F60A
    rows = {"r1": np.uint32(a), "r2": np.uint32(b)}
    assert execute(f"prmt.b32 %r4, %r1, %r2, {selector};", "r4", **rows)[0] == permuted(
        a, b, selector
    )
    first = execute("prmt.b32.b4e %r4, %r1, %r2, 1;", "r4", **rows)[0]
    assert first == permuted(a, b, 0x6701)


@pytest.mark.parametrize("join", ["and", "or", "xor"])
@pytest.mark.parametrize("third", ["%p3", "!%p3"])
def test_joined_comparisons(join: str, third: str) -> None:
    a, b = np.int32([1, 1, 2, 2]), np.int32([2, 2, 1, 1])
    c = np.array([0, 1, 0, 1], bool)
    # the third operand is a destination too
    text = f"setp.lt.{join}.s32 %p3|%p2, %r1, %r2, {third};"
    p, q = execute(text, "p3 p2", r1=a, r2=b, p3=c)
    function = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[join]
    other = ~c if third[0] == "!" else c
    np.testing.assert_array_equal(p, function(a < b, other))
    np.testing.assert_array_equal(q, function(a >= b, other))
    found = execute(f"setp.lt.{join}.s32 _|%p2, %r1, %r2, {third};", "p2", r1=a, r2=b, p3=c)
    np.testing.assert_array_equal(found, q)


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_packed_comparisons(kind: str, dtype: type) -> None:
    a = np.array([1, 2, 3, math.nan], dtype).view(np.uint32)
    b = np.array([2, 1, 3, 0], dtype).view(np.uint32)
    rows = {"r1": a, "r2": b, "p3": np.array([True, False])}
    p, q = execute(f"setp.le.{kind}x2 %p1|%p2, %r1, %r2;", "p1 p2", **rows)
    assert (p.tolist(), q.tolist()) == ([True, True], [False, False])
    p, q = execute(f"setp.leu.or.{kind}x2 %p1|%p2, %r1, %r2, %p3;", "p1 p2", **rows)
    assert (p.tolist(), q.tolist()) == ([True, True], [True, True])
    found = execute(f"set.leu.{kind}x2.{kind}x2 %r3, %r1, %r2;", "r3", **rows)
    assert found.view(dtype).astype(float).tolist() == [1, 0, 1, 1]


def test_selections_by_joined_predicates_and_of_literals() -> None:
    rows = {"r1": np.int32([-1, 5]), "r2": np.int32([3, 3]), "p1": np.array([True, True])}
    found = execute("set.lt.xor.s32.s32 %r3, %r1, %r2, %p1;", "r3", **rows)
    assert found.tolist() == [0, 0xFFFFFFFF]
    rows = {"r1": np.uint32([1, 2, 3]), "p1": np.array([True, False, True])}
    assert execute("selp.b32 %r3, %r1, 9, !%p1;", "r3", **rows).tolist() == [9, 2, 9]
    found = execute("selp.f32 %r3, 0f3F800000, 0f00000000, %p1;", "r3", **rows)
    assert found.tolist() == [0x3F800000, 0, 0x3F800000]


# ---- floats


def test_fused_is_rounded_once() -> None:
    """Products that lie halfway between two float32, moved by an addend too small for float64."""
    a = np.float32(1 + 2.0**-12)
    b = np.float32(1 + 2.0**-12)  # the product is 1 + 2^-11 + 2^-24: halfway
    c = np.float32([0, 2.0**-90, -(2.0**-90), 2.0**-149])
    found = execute("fma.rn.f32 %r4, %r1, %r2, %r3;", "r4", r1=a, r2=b, r3=c).view(np.float32)
    low, high = np.float32(1 + 2.0**-11), np.float32(1 + 2.0**-11 + 2.0**-23)
    assert found.tolist() == [low, high, low, high]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("length", [1, 7, 16, 33, 128])
def test_signalling_nans_lose(kind: str, length: int) -> None:
    """At every place of rows of any length; NumPy's fmax differs from place to place and host."""
    form, cls = FORMATS[kind], register(kind)
    one = (1 - form.low) << (form.precision - 1)
    for nan in (special_bits(math.inf, kind) + 1, special_bits(-math.inf, kind) + 1):
        for name in ("min", "max"):
            for pair in ((nan, one), (one, nan)):
                rows = [np.full(length, bits, f"u{form.bits // 8}") for bits in pair]
                text = f"{name}.{kind} %{cls}9, %{cls}1, %{cls}2;"
                found = execute(text, f"{cls}9", **{f"{cls}1": rows[0], f"{cls}2": rows[1]})
                assert found.tolist() == [one] * length


def test_destination_may_be_a_source() -> None:
    pair = np.float32([1.5, -2.0]).view(np.uint64)
    other = np.float32([0.25, 8.0]).view(np.uint64)
    found = execute("fma.rn.f32x2 %d1, %d1, %d2, %d1;", "d1", d1=pair, d2=other)
    assert found.view(np.float32).tolist() == [1.875, -18.0]
    for target in ("r1", "r2"):
        text = f"cvt.rn.bf16x2.f32 %{target}, %r1, %r2;"
        assert execute(text, target, r1=np.float32(1), r2=np.float32(2))[0] == 0x3F804000


# ---- conversions


def test_wider_registers() -> None:
    """A source may be wider than its type, and a destination is extended as its type says."""
    rows = {"r1": np.uint32([0xFFFFFF80, 0x17F])}
    assert execute("cvt.s32.s8 %r2, %r1;", "r2", **rows).tolist() == [0xFFFFFF80, 0x7F]
    assert execute("cvt.u32.u8 %r2, %r1;", "r2", **rows).tolist() == [0x80, 0x7F]
    assert execute("cvt.s8.u32 %r2, %r1;", "r2", **rows).tolist() == [0xFFFFFF80, 0x7F]
    assert execute("cvt.u8.u32 %d2, %r1;", "d2", **rows).tolist() == [0x80, 0x7F]
    assert execute("cvt.s16.s8 %d2, %r1;", "d2", **rows).tolist() == [2**64 - 128, 0x7F]
    assert execute("cvt.u32.u32 %r2, %tid.x;", "r2", **rows).tolist() == [0, 1]
    assert execute("cvt.u16.u32 %h2, 65537;", "h2")[0] == 1


@pytest.mark.parametrize("name", SMALL)
def test_halfway_between_small_floats(name: str) -> None:
    """Every number of the format, halfway to the next one, and the floats beside these."""
    exact = small_values(name)[: SMALL[name][2] + 1]
    halfway = (exact[:-1] + exact[1:]) / 2
    beside = [np.nextafter(halfway, np.float32(to)) for to in (-np.inf, np.inf)]
    values = np.concatenate([exact, halfway, *beside, [exact[-1] * 1.01, 1000]]).astype(np.float32)
    shift = 4 if name == "e2m1" else 8
    text = f"cvt.rn.satfinite.{name}x2.f32 %h3, %r1, %r2;"
    found = execute(text, "h3", r1=values, r2=-values[::-1])
    codes = [nearest_code(Fraction(float(v)) or 0.0, name) for v in values]
    negative = [code | 1 << SMALL[name][0] - 1 for code in reversed(codes)]
    assert found.tolist() == [a << shift | b for a, b in zip(codes, negative, strict=True)]


@pytest.mark.parametrize(
    ("mode", "tie"), [("rna", 0x3F802000), ("rn", 0x3F800000), ("rz", 0x3F800000)]
)
def test_tf32(mode: str, tie: int) -> None:
    column = np.uint32([0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x7F800000, 0xFF800001,
                        0x7F7FFFFF, 0xBF801001])  # fmt: skip
    up = mode != "rz"
    wanted = [tie, 0x3F804000 if up else 0x3F802000, 0x3F800000, 0x3F802000 if up else 0x3F800000,
              0x7F800000, 0xFF800000 if mode == "rna" else 0x7FFFE000,
              0x7F800000 if up else 0x7F7FE000, 0xBF802000 if up else 0xBF800000]  # fmt: skip
    assert execute(f"cvt.{mode}.tf32.f32 %r2, %r1;", "r2", r1=column).tolist() == wanted
    finite = [b - 0x2000 if b & 0x7FFFFFFF == 0x7F800000 else b for b in wanted]
    found = execute(f"cvt.{mode}.satfinite.tf32.f32 %r2, %r1;", "r2", r1=column)
    assert found.tolist() == finite


def test_exponents() -> None:
    column = np.float32([1.0, 1.5, 2.0**-127, 2.0**-127 * 1.25, 0, -3.0, math.inf, math.nan])
    rows = {"r1": column, "r2": np.float32(2.0)}

    def upper(text: str) -> list[int]:
        found = execute(text, "h3", **rows)
        assert (found & 0xFF == 128).all()
        return (found >> 8).tolist()

    assert upper("cvt.rz.ue8m0x2.f32 %h3, %r1, %r2;") == [127, 127, 0, 0, 0, 128, 255, 255]
    assert upper("cvt.rp.ue8m0x2.f32 %h3, %r1, %r2;") == [127, 128, 0, 1, 0, 129, 255, 255]
    found = upper("cvt.rp.satfinite.ue8m0x2.f32 %h3, %r1, %r2;")
    assert found == [127, 128, 0, 1, 0, 129, 254, 255]
    pair = np.array([2.0, 1.5], ml_dtypes.bfloat16).view(np.uint32)
    assert execute("cvt.rp.ue8m0x2.bf16x2 %h3, %r1;", "h3", r1=pair)[0] == 128 << 8 | 128
    found = execute("cvt.rn.bf16x2.ue8m0x2 %r2, %h1;", "r2", h1=np.uint16([0x7F80, 0x00FF]))
    assert found.tolist() == [0x3F804000, 0x00407FFF]


def test_pack() -> None:
    rows = {"r1": np.int32([100000, -5]), "r2": np.int32([-100000, 300]), "r3": np.uint32(0xABCDEF)}
    found = execute("cvt.pack.sat.s16.s32 %r4, %r1, %r2;", "r4", **rows)
    assert found.tolist() == [0x7FFF8000, 0xFFFB012C]
    found = execute("cvt.pack.sat.u8.s32.b32 %r4, %r1, %r2, %r3;", "r4", **rows)
    assert found.tolist() == [0xCDEFFF00, 0xCDEF00FF]
    found = execute("cvt.pack.sat.s4.s32.b32 %r4, %r1, %r2, %r3;", "r4", **rows)
    assert found.tolist() == [0xABCDEF78, 0xABCDEFB7]


def by_chance(bits: int, random: int, relu: bool, finite: bool) -> int:
    """A float32 rounded to bf16: away from zero where the dropped bits and the random ones carry.

    Worked out on magnitudes, as fractions of the last place.
    """
    sign, size = bits >> 31, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return NAN["bf16"]
    kept, dropped = divmod(size, 1 << 16)
    if size < 0x7F800000 and Fraction(dropped, 1 << 16) + Fraction(random, 1 << 16) >= 1:
        kept += 1
    if finite and kept == 0x7F80:
        kept = 0x7F7F
    return 0 if relu and sign else kept | sign << 15


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("finite", [False, True])
def test_stochastic_rounding_to_bf16(relu: bool, finite: bool) -> None:
    """The upper half of the random bits is for the first operand, which is the upper half."""
    rng = np.random.default_rng(1)
    special = [0, 1, 0x8000, 0x7F7FFFFF, 0x7F7F0001, 0x7F800000, 0x7F800001, 0x7FC00000, 0x3F800000]
    special += [one | 0x80000000 for one in special]
    values = np.array(special * 40, np.uint32)
    a = np.concatenate([values, rng.integers(0, 1 << 32, 2000, np.uint32)])
    b, random = rng.permutation(a), rng.integers(0, 1 << 32, len(a), np.uint32)
    words = ".relu" * relu + ".satfinite" * finite
    found = execute(f"cvt.rs{words}.bf16x2.f32 %r4, %r1, %r2, %r3;", "r4", r1=a, r2=b, r3=random)
    for x, y, bits, pair in zip(*(row.tolist() for row in (a, b, random, found)), strict=True):
        assert pair >> 16 == by_chance(x, bits >> 16, relu, finite), hex(x)
        assert pair & 0xFFFF == by_chance(y, bits & 0xFFFF, relu, finite), hex(y)


# ---- what does not exist
