"""Floating-point instructions against exact fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tests.emulator.lanes import execute, refused
from tests.emulator.rounding import FORMATS, decode, encode

NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
CLASS = {"f16": "h", "bf16": "h", "f32": "r", "f64": "d"}
DTYPE = {"f16": "u2", "bf16": "u2", "f32": "u4", "f64": "u8"}
MODES = ["rn", "rz", "rm", "rp"]


def samples(kind, seed, count=120):
    """Bit patterns: corners, neighbours of powers of two, few-bit and any numbers."""
    form, rng = FORMATS[kind], random.Random(seed)
    fraction = form.precision - 1
    bias = 1 - form.low
    one = bias << fraction
    infinity = ((1 << (form.bits - form.precision)) - 1) << fraction
    corners = [
        0,
        1,
        1 << fraction,
        (1 << fraction) - 1,
        one,
        one + 1,
        one - 1,
        infinity,
        infinity - 1,
        infinity + 1,
        one + (1 << (fraction - 1)),
    ]
    found = []
    for _ in range(count):
        kind_of = rng.random()
        if kind_of < 0.25:
            bits = rng.choice(corners)
        elif kind_of < 0.6:  # near one another, so that sums cancel and round
            exponent = bias + rng.randrange(-form.precision - 3, form.precision + 3)
            low = rng.getrandbits(fraction) >> (shift := rng.randrange(fraction)) << shift
            bits = exponent << fraction | low
        else:
            bits = rng.getrandbits(form.bits - 1)
        found.append(bits | rng.getrandbits(1) << (form.bits - 1))
    return found


def special_bits(value, kind):
    form = FORMATS[kind]
    sign = 1 << (form.bits - 1) if math.copysign(1, value) < 0 else 0
    infinity = ((1 << (form.bits - form.precision)) - 1) << (form.precision - 1)
    return sign | (infinity if math.isinf(value) else 0)


def run(text, kind, columns):
    cls = CLASS[kind]
    rows = {f"{cls}{n}": np.array(column, DTYPE[kind]) for n, column in enumerate(columns, 1)}
    operands = ", ".join(f"%{name}" for name in rows)
    return execute(f"{text} %{cls}9, {operands};", f"{cls}9", **rows).tolist()


def sum_bits(terms, kind, mode):
    """The bits of a sum of exact terms (zeros keep their sign as floats), or None for NaN."""
    if any(isinstance(t, float) and math.isnan(t) for t in terms):
        return None
    infinite = {t for t in terms if isinstance(t, float) and math.isinf(t)}
    if infinite:
        return None if len(infinite) > 1 else special_bits(infinite.pop(), kind)
    total = sum(Fraction(t) for t in terms)
    if total:
        return encode(total, kind, mode)
    negative = [math.copysign(1, t) < 0 for t in terms]
    minus = all(negative) or (mode == "rm" and any(negative))
    return special_bits(-0.0 if minus else 0.0, kind)


def product(x, y):
    """Exact; zeros and infinities as floats."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    sizes = [math.copysign(1.0, v) if isinstance(v, Fraction) else v for v in (x, y)]
    return sizes[0] * sizes[1]


def check(text, kind, count, expected, mode="rn", seed=0):
    columns = [samples(kind, seed * 10 + n) for n in range(count)]
    found = run(text, kind, columns)
    for bits, got in zip(zip(*columns, strict=True), found, strict=True):
        wanted = expected(*(decode(b, kind) for b in bits), mode)
        if wanted is None and kind == "f64":
            assert math.isnan(decode(got, kind)), (text, [hex(b) for b in bits], hex(got))
            continue
        if wanted is None:
            wanted = NAN[kind]
        assert got == wanted, (text, [hex(b) for b in bits], hex(got), hex(wanted))


def forms(kind):
    return MODES if kind in ("f32", "f64") else ["rn"]


CASES = [(kind, mode) for kind in CLASS for mode in forms(kind)]


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_sums_and_products(kind, mode):
    check(f"add.{mode}.{kind}", kind, 2, lambda a, b, m: sum_bits([a, b], kind, m), mode)
    check(f"sub.{mode}.{kind}", kind, 2, lambda a, b, m: sum_bits([a, -b], kind, m), mode, 1)

    def multiplied(a, b, m):
        value = product(a, b)
        if isinstance(value, Fraction):
            return encode(value, kind, m)
        return None if math.isnan(value) else special_bits(value, kind)

    check(f"mul.{mode}.{kind}", kind, 2, multiplied, mode, 2)


@pytest.mark.parametrize(("kind", "mode"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_fused(kind, mode, seed):
    def expected(a, b, c, m):
        return sum_bits([product(a, b), c], kind, m)

    check(f"fma.{mode}.{kind}", kind, 3, expected, mode, seed)
    if kind in ("f32", "f64"):
        check(f"mad.{mode}.{kind}", kind, 3, expected, mode, seed + 10)


def test_fused_is_rounded_once():
    """Products that lie halfway between two float32, moved by an addend too small for float64."""
    a = np.float32(1 + 2.0**-12)
    b = np.float32(1 + 2.0**-12)  # the product is 1 + 2^-11 + 2^-24: halfway
    c = np.float32([0, 2.0**-90, -(2.0**-90), 2.0**-149])
    found = execute("fma.rn.f32 %r4, %r1, %r2, %r3;", "r4", r1=a, r2=b, r3=c).view(np.float32)
    low, high = np.float32(1 + 2.0**-11), np.float32(1 + 2.0**-11 + 2.0**-23)
    assert found.tolist() == [low, high, low, high]


@pytest.mark.parametrize(("kind", "mode"), [c for c in CASES if c[0] in ("f32", "f64")])
def test_division_and_roots(kind, mode):
    def quotient(a, b, m):
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return encode(a / b, kind, m)
        with np.errstate(all="ignore"):
            sizes = [math.copysign(1.0, v) if isinstance(v, Fraction) else v for v in (a, b)]
            value = float(np.float64(sizes[0]) / np.float64(sizes[1]))
        return None if math.isnan(value) else special_bits(value, kind)

    check(f"div.{mode}.{kind}", kind, 2, quotient, mode)
    check(f"rcp.{mode}.{kind}", kind, 1, lambda a, m: quotient(Fraction(1), a, m), mode)

    def root(a, m):
        if not isinstance(a, Fraction):
            return special_bits(a, kind) if a == 0 or a == math.inf else None
        if a < 0:
            return None
        # enough digits: the root as a fraction, pushed off exactness if it is not exact
        digits = 60 - min(0, math.frexp(a)[1])
        whole = math.isqrt(int(a * 4**digits))
        value = Fraction(whole, 2**digits)
        if value * value != a:
            value += Fraction(1, 2 ** (digits + 1))
        return encode(value, kind, m)

    check(f"sqrt.{mode}.{kind}", kind, 1, root, mode, 3)


def flushed(bits, kind):
    size = bits & ~(1 << (FORMATS[kind].bits - 1))
    small = size < 1 << (FORMATS[kind].precision - 1)
    return bits & (1 << (FORMATS[kind].bits - 1)) if small else bits


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("name", ["add", "mul", "fma"])
def test_flushing_and_saturating(kind, name):
    mode = ".rn" if name == "fma" else ""
    columns = [samples(kind, 20 + n) for n in range(3 if name == "fma" else 2)]
    zeroed = [[flushed(b, kind) for b in column] for column in columns]
    plain = run(f"{name}{mode}.{kind}", kind, zeroed)
    found = run(f"{name}{mode}.ftz.{kind}", kind, columns)
    assert found == [flushed(b, kind) for b in plain]
    assert found != run(f"{name}{mode}.{kind}", kind, columns)
    one = encode(Fraction(1), kind)
    plain = run(f"{name}{mode}.{kind}", kind, columns)

    def clamped(bits):
        value = decode(bits, kind)
        if math.isnan(value) or value <= 0:
            return 0
        return one if value >= 1 else bits

    assert run(f"{name}{mode}.sat.{kind}", kind, columns) == [clamped(b) for b in plain]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_fused_relu(kind):
    columns = [samples(kind, 30 + n) for n in range(3)]
    plain = run(f"fma.rn.{kind}", kind, columns)

    def positive(bits):
        value = decode(bits, kind)
        return bits if math.isnan(value) or value > 0 else 0

    assert run(f"fma.rn.relu.{kind}", kind, columns) == [positive(b) for b in plain]


def order(bits, kind):
    """Orders bit patterns as numbers, with -0 below +0."""
    top = 1 << (FORMATS[kind].bits - 1)
    return -(bits - top) - 1 if bits & top else bits


@pytest.mark.parametrize("kind", CLASS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes(kind, name):
    columns = [samples(kind, 40 + n) for n in range(2)]
    choose = min if name == "min" else max

    def chosen(values, propagate=False):
        numbers = [b for b in values if not math.isnan(decode(b, kind))]
        if not numbers or (propagate and len(numbers) < len(values)):
            return NAN.get(kind)
        return choose(numbers, key=lambda b: order(b, kind))

    pairs = list(zip(*columns, strict=True))
    if kind == "f64":
        pairs = [p for p in pairs if chosen(p) is not None]
    found = run(f"{name}.{kind}", kind, list(zip(*pairs, strict=True)))
    assert found == [chosen(p) for p in pairs]
    if kind == "f64":
        return
    assert run(f"{name}.NaN.{kind}", kind, columns) == [chosen(p, True) for p in pairs]
    top = 1 << (FORMATS[kind].bits - 1)

    def signed(a, b):
        bits = chosen([a & ~top, b & ~top], True)
        return bits if bits == NAN[kind] else bits | (a ^ b) & top

    found = run(f"{name}.NaN.xorsign.abs.{kind}", kind, columns)
    assert found == [signed(*p) for p in pairs]
    if kind == "f32":
        third = samples(kind, 44)
        found = run(f"{name}.f32", kind, [*columns, third])
        assert found == [chosen([*p, c]) for p, c in zip(pairs, third, strict=True)]
        found = run(f"{name}.NaN.abs.f32", kind, [*columns, third])
        assert found == [
            chosen([b & ~top for b in (*p, c)], True) for p, c in zip(pairs, third, strict=True)
        ]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("length", [1, 7, 16, 33, 128])
def test_signalling_nans_lose(kind, length):
    """At every place of rows of any length; NumPy's fmax differs from place to place and host."""
    form = FORMATS[kind]
    infinity = ((1 << (form.bits - form.precision)) - 1) << (form.precision - 1)
    one = (1 - form.low) << (form.precision - 1)
    for nan in (infinity + 1, infinity + 1 | 1 << (form.bits - 1)):
        for name in ("min", "max"):
            assert run(f"{name}.{kind}", kind, [[nan] * length, [one] * length]) == [one] * length
            assert run(f"{name}.{kind}", kind, [[one] * length, [nan] * length]) == [one] * length


def test_zeros_of_extremes():
    """As observed on an H200: max(-0, +0) is +0 either way round."""
    rows = {"r1": np.float32([-0.0, 0.0]), "r2": np.float32([0.0, -0.0])}
    assert execute("max.f32 %r3, %r1, %r2;", "r3", **rows).tolist() == [0, 0]
    assert execute("min.f32 %r3, %r1, %r2;", "r3", **rows).tolist() == [1 << 31] * 2


@pytest.mark.parametrize("kind", CLASS)
def test_signs(kind):
    column = samples(kind, 50)
    top = 1 << (FORMATS[kind].bits - 1)
    ordered = [b for b in column if not math.isnan(decode(b, kind))]
    assert run(f"abs.{kind}", kind, [ordered]) == [b & ~top for b in ordered]
    assert run(f"neg.{kind}", kind, [ordered]) == [b ^ top for b in ordered]
    unordered = [b for b in column if math.isnan(decode(b, kind))]
    quiet = [b | 1 << (FORMATS[kind].precision - 2) for b in unordered]
    wanted = [NAN.get(kind, b) for b in quiet]
    assert run(f"neg.{kind}", kind, [unordered]) == wanted
    if kind in ("f32", "f64"):
        other = samples(kind, 51)
        found = run(f"copysign.{kind}", kind, [column, other])
        assert found == [a & top | b & ~top for a, b in zip(column, other, strict=True)]
    if kind in ("f32", "f16"):
        assert run(f"abs.ftz.{kind}", kind, [ordered]) == [flushed(b, kind) & ~top for b in ordered]


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_mixed_precision(narrow, mode):
    a, b, c = samples(narrow, 60), samples(narrow, 61), samples("f32", 62)
    rows = {"h1": np.array(a, "u2"), "h2": np.array(b, "u2"), "r3": np.array(c, "u4")}
    added = execute(f"add.{mode}.f32.{narrow} %r4, %h1, %r3;", "r4", **rows)
    taken = execute(f"sub.{mode}.f32.{narrow} %r4, %h1, %r3;", "r4", **rows)
    fused = execute(f"fma.{mode}.f32.{narrow} %r4, %h1, %h2, %r3;", "r4", **rows)
    for n in range(len(a)):
        x, y, z = decode(a[n], narrow), decode(b[n], narrow), decode(c[n], "f32")
        for found, terms in ((added, [x, z]), (taken, [x, -z]), (fused, [product(x, y), z])):
            wanted = sum_bits(terms, "f32", mode)
            assert found[n] == (NAN["f32"] if wanted is None else wanted)


def test_what_does_not_exist():
    for text in (
        "fma.f32 %r1, %r2, %r3, %r4;",
        "add.rz.f16 %h1, %h2, %h3;",
        "add.ftz.bf16 %h1, %h2, %h3;",
        "add.sat.f64 %d1, %d2, %d3;",
        "max.NaN.f64 %d1, %d2, %d3;",
        "max.abs.f32 %r1, %r2, %r3;",
        "div.f32 %r1, %r2, %r3;",
        "rcp.approx.f64 %d1, %d2;",
        "sqrt.f32 %r1, %r2;",
        "ex2.f32 %r1, %r2;",
        "ex2.approx.bf16 %h1, %h2;",
        "tanh.approx.ftz.f32 %r1, %r2;",
        "sin.approx.f16 %h1, %h2;",
        "fma.rn.oob.f16 %h1, %h2, %h3, %h4;",
        "add.f32.s32 %r1, %r2, %r3;",
    ):
        assert refused(text), text
