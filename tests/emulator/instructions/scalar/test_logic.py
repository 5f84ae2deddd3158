"""Logic, shifts, permutations, comparisons and selections."""

from __future__ import annotations

import math
import operator
import random

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.lanes import execute, refused

WORD = st.integers(0, 2**32 - 1)
RNG = np.random.default_rng(7)
A = RNG.integers(0, 2**32, 64, np.uint32)
B = RNG.integers(0, 2**32, 64, np.uint32)
C = RNG.integers(0, 2**32, 64, np.uint32)


@pytest.mark.parametrize(("cls", "bits"), [("h", 16), ("r", 32), ("d", 64)])
def test_bitwise(cls, bits):
    dtype = f"u{bits // 8}"
    a, b = RNG.integers(0, 2**bits, (2, 64), np.uint64).astype(dtype)
    a[0] = 0
    rows = {f"{cls}1": a, f"{cls}2": b}
    target = f"{cls}3"
    for name, function in (("and", a & b), ("or", a | b), ("xor", a ^ b)):
        text = f"{name}.b{bits} %{target}, %{cls}1, %{cls}2;"
        np.testing.assert_array_equal(execute(text, target, **rows), function)
    found = execute(f"not.b{bits} %{target}, %{cls}1;", target, **rows)
    np.testing.assert_array_equal(found, ~a)
    found = execute(f"cnot.b{bits} %{target}, %{cls}1;", target, **rows)
    np.testing.assert_array_equal(found, a == 0)


def test_predicates():
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert execute("and.pred %p3, %p1, %p2;", "p3", p1=p, p2=q).tolist() == [0, 0, 0, 1]
    assert execute("or.pred %p3, %p1, !%p2;", "p3", p1=p, p2=q).tolist() == [1, 0, 1, 1]
    assert execute("xor.pred %p3, %p1, 1;", "p3", p1=p, p2=q).tolist() == [1, 1, 0, 0]
    assert execute("not.pred %p3, %p1;", "p3", p1=p, p2=q).tolist() == [1, 1, 0, 0]


def test_every_table_of_lop3():
    # lane n has the three bits of n as its operands
    lanes = np.arange(8, dtype=np.uint32)
    a, b, c = (-(lanes >> n & 1).astype(np.int32) for n in (2, 1, 0))
    for table in range(256):
        found = execute(f"lop3.b32 %r4, %r1, %r2, %r3, {table};", "r4", r1=a, r2=b, r3=c)
        assert found.tolist() == [0xFFFFFFFF * (table >> n & 1) for n in range(8)]


def test_lop3_with_predicate():
    a, q = np.uint32([0, 0, 5, 5]), np.array([0, 1, 0, 1], bool)
    rows = {"r1": a, "r2": np.uint32(0), "p1": q}
    text = "lop3.{}.b32 {}|%p2, %r1, %r2, 0, 0xFC, {};"
    d, p = execute(text.format("or", "%r4", "%p1"), "r4 p2", **rows)
    assert d.tolist() == a.tolist()
    assert p.tolist() == [0, 1, 1, 1]
    assert execute(text.format("and", "_", "!%p1"), "p2", **rows).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("count", [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 200, 2**31, 2**32 - 1])
@pytest.mark.parametrize(("cls", "bits"), [("h", 16), ("r", 32), ("d", 64)])
def test_shifts(cls, bits, count):
    values = [0, 1, (1 << bits) - 1, 1 << (bits - 1), 0x1234567890ABCDEF % (1 << bits)]
    row = {f"{cls}1": np.array(values, f"u{bits // 8}"), "r8": np.uint32(count)}
    moved = min(count, 2 * bits)
    signed = [v - (v >> (bits - 1) << bits) for v in values]
    expected = {
        f"shl.b{bits}": [v << moved for v in values],
        f"shr.u{bits}": [v >> moved for v in values],
        f"shr.b{bits}": [v >> moved for v in values],
        f"shr.s{bits}": [v >> moved for v in signed],
    }
    for name, wanted in expected.items():
        for amount in ("%r8", str(count)):
            found = execute(f"{name} %{cls}2, %{cls}1, {amount};", f"{cls}2", **row)
            assert found.tolist() == [v % (1 << bits) for v in wanted], name


@settings(max_examples=40, deadline=None)
@given(WORD, WORD, WORD | st.integers(0, 40))
def test_funnel_shifts(low, high, count):
    rows = {"r1": np.uint32(low), "r2": np.uint32(high), "r3": np.uint32(count)}
    pair = high << 32 | low
    for mode, n in (("wrap", count % 32), ("clamp", min(count, 32))):
        left = execute(f"shf.l.{mode}.b32 %r4, %r1, %r2, %r3;", "r4", **rows)[0]
        right = execute(f"shf.r.{mode}.b32 %r4, %r1, %r2, %r3;", "r4", **rows)[0]
        assert left == (pair << n) >> 32 & 0xFFFFFFFF
        assert right == pair >> n & 0xFFFFFFFF


def permuted(a, b, selector):
    source = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    result = []
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = source[nibble & 7]
        result.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(result), "little")


@settings(max_examples=60, deadline=None)
@given(WORD, WORD, st.integers(0, 0xFFFF) | st.sampled_from([0x5410, 0x7632, 0x3210, 0x0123]))
def test_prmt(a, b, selector):
    rows = {"r1": np.uint32(a), "r2": np.uint32(b), "r3": np.uint32(selector)}
    wanted = permuted(a, b, selector)
    assert execute(f"prmt.b32 %r4, %r1, %r2, {selector};", "r4", **rows)[0] == wanted
    assert execute("prmt.b32 %r4, %r1, %r2, %r3;", "r4", **rows)[0] == wanted


# the selector that each mode stands for, by the low two bits of its operand
MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_prmt(mode):
    choice = np.arange(4, dtype=np.uint32) + 4
    rows = {"r1": np.uint32(0x33221100), "r2": np.uint32(0x77665544), "r3": choice}
    found = execute(f"prmt.b32.{mode} %r4, %r1, %r2, %r3;", "r4", **rows)
    wanted = [permuted(0x33221100, 0x77665544, s) for s in MODES[mode]]
    assert found.tolist() == wanted
    for n in range(4):
        assert execute(f"prmt.b32.{mode} %r4, %r1, %r2, {n};", "r4", **rows)[0] == wanted[n]


ORDERS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    ("kind", "cls"),
    [("s16", "h"), ("u16", "h"), ("s32", "r"), ("u32", "r"), ("s64", "d"), ("u64", "d")],
)
def test_integer_comparisons(name, kind, cls):
    dtype = ("i" if kind[0] == "s" else "u") + str(int(kind[1:]) // 8)
    values = np.array([0, 1, 2, -1 % 2 ** int(kind[1:])], f"u{int(kind[1:]) // 8}").view(dtype)
    a, b = np.repeat(values, 4), np.tile(values, 4)
    rows = {f"{cls}1": a, f"{cls}2": b}
    found = execute(f"setp.{name}.{kind} %p1, %{cls}1, %{cls}2;", "p1", **rows)
    wanted = [ORDERS[name](x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == wanted
    aliases = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}
    if kind[0] == "u" and name in aliases:
        text = f"setp.{aliases[name]}.{kind} %p1, %{cls}1, %{cls}2;"
        assert execute(text, "p1", **rows).tolist() == wanted


SPECIAL = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan]
FLOATS = {
    "f32": (np.float32, "r"),
    "f64": (np.float64, "d"),
    "f16": (np.float16, "h"),
    "bf16": (ml_dtypes.bfloat16, "h"),
}


def compared(name, x, y):
    unordered = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return name.endswith("u")
    return ORDERS[name.removesuffix("u")](x, y)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", [*ORDERS, *(f"{n}u" for n in ORDERS), "num", "nan"])
def test_float_comparisons(kind, name):
    dtype, cls = FLOATS[kind]
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
    rows = {f"{cls}{n + 1}": np.array([p[n] for p in pairs], dtype) for n in (0, 1)}
    found = execute(f"setp.{name}.{kind} %p1|%p2, %{cls}1, %{cls}2;", "p1 p2", **rows)
    wanted = [compared(name, *pair) for pair in pairs]
    assert found[0].tolist() == wanted
    assert found[1].tolist() == [not value for value in wanted]


def test_comparison_flushes():
    rows = {"r1": np.float32([1e-40, -1e-40]), "r2": np.float32(0)}
    assert execute("setp.eq.f32 %p1, %r1, %r2;", "p1", **rows).tolist() == [False, False]
    assert execute("setp.eq.ftz.f32 %p1, %r1, %r2;", "p1", **rows).tolist() == [True, True]


@pytest.mark.parametrize("join", ["and", "or", "xor"])
@pytest.mark.parametrize("third", ["%p3", "!%p3"])
def test_joined_comparisons(join, third):
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
def test_packed_comparisons(kind, dtype):
    a = np.array([1, 2, 3, math.nan], dtype).view(np.uint32)
    b = np.array([2, 1, 3, 0], dtype).view(np.uint32)
    rows = {"r1": a, "r2": b, "p3": np.array([True, False])}
    p, q = execute(f"setp.le.{kind}x2 %p1|%p2, %r1, %r2;", "p1 p2", **rows)
    assert (p.tolist(), q.tolist()) == ([True, True], [False, False])
    p, q = execute(f"setp.leu.or.{kind}x2 %p1|%p2, %r1, %r2, %p3;", "p1 p2", **rows)
    assert (p.tolist(), q.tolist()) == ([True, True], [True, True])
    found = execute(f"set.leu.{kind}x2.{kind}x2 %r3, %r1, %r2;", "r3", **rows)
    assert found.view(dtype).astype(float).tolist() == [1, 0, 1, 1]


def test_set():
    rows = {"r1": np.int32([-1, 5]), "r2": np.int32([3, 3]), "p1": np.array([True, True])}
    assert execute("set.lt.u32.s32 %r3, %r1, %r2;", "r3", **rows).tolist() == [0xFFFFFFFF, 0]
    found = execute("set.lt.f32.s32 %r3, %r1, %r2;", "r3", **rows)
    assert found.view(np.float32).tolist() == [1.0, 0.0]
    found = execute("set.lt.xor.s32.s32 %r3, %r1, %r2, %p1;", "r3", **rows)
    assert found.tolist() == [0, 0xFFFFFFFF]
    assert execute("set.lt.f16.s32 %h3, %r1, %r2;", "h3", **rows).tolist() == [0x3C00, 0]


def test_selections():
    p = np.array([True, False, True])
    rows = {"r1": np.uint32([1, 2, 3]), "r2": np.uint32([4, 5, 6]), "p1": p}
    assert execute("selp.u32 %r3, %r1, %r2, %p1;", "r3", **rows).tolist() == [1, 5, 3]
    assert execute("selp.b32 %r3, %r1, 9, !%p1;", "r3", **rows).tolist() == [9, 2, 9]
    assert execute("selp.f32 %r3, 0f3F800000, 0f00000000, %p1;", "r3", **rows).tolist() == [
        0x3F800000, 0, 0x3F800000,
    ]  # fmt: skip
    rows["r4"] = np.int32([0, -1, 7])
    assert execute("slct.u32.s32 %r3, %r1, %r2, %r4;", "r3", **rows).tolist() == [1, 5, 3]
    rows["r4"] = np.float32([-0.0, math.nan, -1e-40])
    assert execute("slct.f32.f32 %r3, %r1, %r2, %r4;", "r3", **rows).tolist() == [1, 5, 6]
    assert execute("slct.ftz.b32.f32 %r3, %r1, %r2, %r4;", "r3", **rows).tolist() == [1, 5, 3]


def test_random_tables_of_lop3_on_words():
    rng = random.Random(1)
    for _ in range(10):
        table = rng.randrange(256)
        found = execute(f"lop3.b32 %r1, %r1, %r2, %r3, {table};", "r1", r1=A, r2=B, r3=C)
        wanted = np.zeros_like(A)
        for n in range(8):
            if table >> n & 1:
                wanted |= (A if n & 4 else ~A) & (B if n & 2 else ~B) & (C if n & 1 else ~C)
        np.testing.assert_array_equal(found, wanted)


def test_what_does_not_exist():
    for text in (
        "setp.lt.b32 %p1, %r1, %r2;",
        "setp.lo.s32 %p1, %r1, %r2;",
        "setp.equ.s32 %p1, %r1, %r2;",
        "setp.lt.ftz.bf16 %p1, %h1, %h2;",
        "setp.lt.f16x2 %p1, %r1, %r2;",
        "lop3.b32 %r1, %r2, %r3, %r4, 256;",
        "lop3.b32 %r1, %r2, %r3, %r4, %r5;",
        "selp.pred %p1, %p2, %p3, %p4;",
        "shl.s32 %r1, %r2, %r3;",
        "and.s32 %r1, %r2, %r3;",
    ):
        assert refused(text), text
