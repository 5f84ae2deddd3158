"""cvt against exact arithmetic, and against values observed on an H200."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.instructions.scalar import test_integer as integers
from tests.emulator.instructions.scalar.test_floating_point import (
    CLASS,
    DTYPE,
    MODES,
    NAN,
    flushed,
    samples,
    special_bits,
)
from tests.emulator.lanes import execute, refused
from tests.emulator.rounding import FORMATS, decode, encode

INTEGERS = ["u8", "s8", *integers.KINDS]


def register_of(kind):
    return {8: "h", **integers.CLASS}[int(kind[1:])]


def row_of(values, kind):
    bits = max(16, int(kind[1:]))
    return np.array([v % (1 << bits) for v in values], f"u{bits // 8}")


def integer_samples(kind, seed=1):
    return (
        integers.samples(kind, seed)
        if kind[1:] != "8"
        else [integers.wrap(n, kind) for n in range(256)]
    )


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", INTEGERS)
def test_integers(result, source):
    values = integer_samples(source)
    cls, target = register_of(source), register_of(result)
    rows = {f"{cls}1": row_of(values, source)}
    bits = max(16, int(result[1:]))
    for sat, change in (("", integers.wrap), (".sat", integers.clamp)):
        found = execute(f"cvt{sat}.{result}.{source} %{target}2, %{cls}1;", f"{target}2", **rows)
        assert found.tolist() == [change(v, result) % (1 << bits) for v in values], sat


def test_wider_registers():
    """A source may be wider than its type, and a destination is extended as its type says."""
    rows = {"r1": np.uint32([0xFFFFFF80, 0x17F])}
    assert execute("cvt.s32.s8 %r2, %r1;", "r2", **rows).tolist() == [0xFFFFFF80, 0x7F]
    assert execute("cvt.u32.u8 %r2, %r1;", "r2", **rows).tolist() == [0x80, 0x7F]
    assert execute("cvt.s8.u32 %r2, %r1;", "r2", **rows).tolist() == [0xFFFFFF80, 0x7F]
    assert execute("cvt.u8.u32 %d2, %r1;", "d2", **rows).tolist() == [0x80, 0x7F]
    assert execute("cvt.s16.s8 %d2, %r1;", "d2", **rows).tolist() == [2**64 - 128, 0x7F]
    assert execute("cvt.u32.u32 %r2, %tid.x;", "r2", **rows).tolist() == [0, 1]
    assert execute("cvt.u16.u32 %h2, 65537;", "h2")[0] == 1


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", CLASS)
@pytest.mark.parametrize("mode", MODES)
def test_integer_to_float(result, source, mode):
    values = [0, *integer_samples(source)]
    cls, target = register_of(source), CLASS[result]
    rows = {f"{cls}1": row_of(values, source)}
    found = execute(f"cvt.{mode}.{result}.{source} %{target}2, %{cls}1;", f"{target}2", **rows)
    wanted = [encode(Fraction(v), result, mode) if v else 0 for v in values]
    assert found.tolist() == wanted


def whole(value, mode):
    if mode == "rni":
        return round(value)
    return {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](value)


@pytest.mark.parametrize("source", CLASS)
@pytest.mark.parametrize("result", INTEGERS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer(result, source, mode):
    signed, bits = integers.parse(result)
    near = [encode(Fraction(n, 2) * s, source) for n in range(1, 9) for s in (1, -1)]
    edges = [encode(Fraction(2) ** (bits - signed) + d, source) for d in (-1, 0, 1)]
    columns = [*samples(source, 5), *near, *edges]
    cls, target = CLASS[source], register_of(result)
    rows = {f"{cls}1": np.array(columns, DTYPE[source])}
    found = execute(f"cvt.{mode}.{result}.{source} %{target}2, %{cls}1;", f"{target}2", **rows)
    for pattern, got in zip(columns, found.tolist(), strict=True):
        value = decode(pattern, source)
        if math.isnan(value):
            wanted = 1 << (bits - 1) if source == "f64" or bits == 64 else 0
            wanted = integers.wrap(wanted, result)
        elif math.isinf(value):
            wanted = integers.clamp(int(math.copysign(2**80, value)), result)
        else:
            wanted = integers.clamp(whole(value, mode), result)
        assert got == wanted % (1 << max(16, bits)), (hex(pattern), mode)


@pytest.mark.parametrize("kind", CLASS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_whole_float(kind, mode):
    column = [*samples(kind, 6), *(encode(Fraction(n, 2), kind) for n in range(-9, 9) if n)]
    cls = CLASS[kind]
    rows = {f"{cls}1": np.array(column, DTYPE[kind])}
    found = execute(f"cvt.{mode}.{kind}.{kind} %{cls}2, %{cls}1;", f"{cls}2", **rows)
    for pattern, got in zip(column, found.tolist(), strict=True):
        value = decode(pattern, kind)
        if not isinstance(value, Fraction):
            if math.isnan(value):
                assert math.isnan(decode(got, kind))
            else:
                assert got == pattern
            continue
        number = whole(value, mode)
        sign = math.copysign(0.0, value)
        assert got == (encode(Fraction(number), kind) if number else special_bits(sign, kind))


def quiet_nan(pattern, result):
    """Return the quiet NaN of a float64: the sign and the upper bits, as an H200 converts it."""
    form = FORMATS[result]
    payload = (pattern & (1 << 52) - 1) >> (53 - form.precision) | 1 << (form.precision - 2)
    infinity = special_bits(math.inf, result)
    return (pattern >> 63) << (form.bits - 1) | infinity | payload


def converted(pattern, source, result, mode):
    value = decode(pattern, source)
    if isinstance(value, float) and math.isnan(value):
        if source == "f64":
            return quiet_nan(pattern, result)
        if (source, result) == ("bf16", "f32"):
            return pattern << 16
    if isinstance(value, Fraction):
        return encode(value, result, mode)
    return NAN.get(result) if math.isnan(value) else special_bits(value, result)


NARROWING = [("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"), ("bf16", "f32"),
             ("bf16", "f16"), ("f16", "bf16")]  # fmt: skip
WIDENING = [("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f64", "bf16")]


def run(text, result, source, column):
    target, cls = CLASS[result], CLASS[source]
    rows = {f"{cls}1": np.array(column, DTYPE[source])}
    return execute(f"{text} %{target}2, %{cls}1;", f"{target}2", **rows).tolist()


@pytest.mark.parametrize(("result", "source"), NARROWING)
@pytest.mark.parametrize("mode", MODES)
def test_narrower_floats(result, source, mode):
    column = samples(source, 7, 400)
    found = run(f"cvt.{mode}.{result}.{source}", result, source, column)
    assert found == [converted(b, source, result, mode) for b in column]


@pytest.mark.parametrize(("result", "source"), WIDENING)
def test_wider_floats(result, source):
    column = samples(source, 8)
    column = [b for b in column if result != "f64" or not math.isnan(decode(b, source))]
    found = run(f"cvt.{result}.{source}", result, source, column)
    assert found == [converted(b, source, result, "rn") for b in column]


def test_modifiers_of_floats():
    column = samples("f32", 9)
    one = encode(Fraction(1), "f16")
    plain = [converted(b, "f32", "f16", "rn") for b in column]

    def unit(bits):
        value = decode(bits, "f16")
        return 0 if math.isnan(value) or value <= 0 else min(bits, one)

    assert run("cvt.rn.sat.f16.f32", "f16", "f32", column) == [unit(b) for b in plain]
    positive = [b if b == 0x7FFF or not b & 0x8000 else 0 for b in plain]
    assert run("cvt.rn.relu.f16.f32", "f16", "f32", column) == positive
    finite = [b - 1 if b & 0x7FFF == 0x7C00 else b for b in plain]
    assert run("cvt.rn.satfinite.f16.f32", "f16", "f32", column) == finite
    small = [flushed(b, "f32") for b in column]
    canonical = [NAN["f32"] if math.isnan(decode(b, "f32")) else b for b in small]
    assert run("cvt.ftz.f32.f32", "f32", "f32", column) == canonical
    assert run("cvt.f32.f32", "f32", "f32", column) == column
    found = run("cvt.rn.ftz.bf16.f32", "bf16", "f32", column)
    assert found == [converted(b, "f32", "bf16", "rn") for b in small]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_pairs(kind, mode):
    high, low = samples("f32", 10), samples("f32", 11)
    rows = {"r1": np.uint32(high), "r2": np.uint32(low)}
    upper = [converted(b, "f32", kind, mode) for b in high]
    lower = [converted(b, "f32", kind, mode) for b in low]
    for target in ("r3", "r1", "r2"):
        found = execute(f"cvt.{mode}.{kind}x2.f32 %{target}, %r1, %r2;", target, **rows)
        assert found.tolist() == [a << 16 | b for a, b in zip(upper, lower, strict=True)]

    def positive(bits):
        return bits if bits == 0x7FFF or not bits & 0x8000 else 0

    found = execute(f"cvt.{mode}.relu.{kind}x2.f32 %r3, %r1, %r2;", "r3", **rows)
    assert found.tolist() == [
        positive(a) << 16 | positive(b) for a, b in zip(upper, lower, strict=True)
    ]


def test_observed():
    """(1.0, 2.0) and the corners of fp8, as an H200 has them."""
    rows = {"r1": np.float32(1.0), "r2": np.float32(2.0)}
    assert execute("cvt.rn.bf16x2.f32 %r3, %r1, %r2;", "r3", **rows)[0] == 0x3F804000
    assert execute("cvt.rn.f16x2.f32 %r3, %r1, %r2;", "r3", **rows)[0] == 0x3C004000
    assert execute("cvt.rn.satfinite.e4m3x2.f32 %h3, %r1, %r2;", "h3", **rows)[0] == 0x3840
    rows = {"r1": np.float32([math.inf, 480, math.nan, -1024]), "r2": np.float32(0)}
    found = execute("cvt.rn.satfinite.e4m3x2.f32 %h3, %r1, %r2;", "h3", **rows)
    assert found.tolist() == [0x7E00, 0x7E00, 0x7F00, 0xFE00]
    found = execute("cvt.rn.satfinite.e5m2x2.f32 %h3, %r1, %r2;", "h3", **rows)
    assert found[0] == 0x7B00
    assert (
        execute("cvt.rn.f16x2.f32 %r3, 0f3F800000, %r2;", "r3", r2=np.float32(2.0))[0] == 0x3C004000
    )


@pytest.mark.parametrize(
    ("mode", "tie"), [("rna", 0x3F802000), ("rn", 0x3F800000), ("rz", 0x3F800000)]
)
def test_tf32(mode, tie):
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


# name: bits, NumPy's type, largest code
SMALL = {
    "e4m3": (8, ml_dtypes.float8_e4m3fn, 0x7E),
    "e5m2": (8, ml_dtypes.float8_e5m2, 0x7B),
    "e2m3": (6, ml_dtypes.float6_e2m3fn, 0x1F),
    "e3m2": (6, ml_dtypes.float6_e3m2fn, 0x1F),
    "e2m1": (4, ml_dtypes.float4_e2m1fn, 0x07),
}


def small_values(name):
    bits, dtype, _ = SMALL[name]
    return np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float32)


def nearest_code(value, name, relu=False):
    """By distance to every number of the format; ties to the even code."""
    bits, _, largest = SMALL[name]
    if math.isnan(value):
        return {"e4m3": 0x7F, "e5m2": 0x7F}.get(name, largest)
    if relu and math.copysign(1, value) < 0:
        return 0
    table = [Fraction(float(v)) for v in small_values(name)[: largest + 1]]
    size = table[-1] if math.isinf(value) else min(abs(Fraction(value)), table[-1])
    code = min(range(largest + 1), key=lambda c: (abs(table[c] - size), c % 2))
    return code | (1 << (bits - 1) if math.copysign(1, value) < 0 else 0)


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_to_small_floats(name, data):
    exact = small_values(name)[: SMALL[name][2] + 1]
    halfway = (exact[:-1] + exact[1:]) / 2
    number = (
        st.sampled_from(np.concatenate([exact, halfway]).tolist())
        | st.floats(-1000, 1000, width=32)
        | st.floats(width=32)
    )
    a, b = data.draw(number), data.draw(number)
    rows = {"r1": np.float32(a), "r2": np.float32(b)}
    shift = SMALL[name][0] if name == "e2m1" else 8
    for relu in (False, True):
        text = f"cvt.rn.satfinite{'.relu' * relu}.{name}x2.f32 %h3, %r1, %r2;"
        wanted = nearest_code(a, name, relu) << shift | nearest_code(b, name, relu)
        assert execute(text, "h3", **rows)[0] == wanted
    if name in ("e4m3", "e5m2"):
        with np.errstate(all="ignore"):
            pair = np.float16([b, a])
        found = execute(f"cvt.rn.satfinite.{name}x2.f16x2 %h3, %r1;", "h3", r1=pair.view(np.uint32))
        wanted = nearest_code(float(pair[1]), name) << 8 | nearest_code(float(pair[0]), name)
        assert found[0] == wanted


@pytest.mark.parametrize("name", SMALL)
def test_from_small_floats(name):
    bits = SMALL[name][0]
    codes = np.arange(1 << bits, dtype=np.uint16)
    shift = bits if name == "e2m1" else 8
    packed = codes << shift | codes[::-1]
    found = execute(f"cvt.rn.f16x2.{name}x2 %r2, %h1;", "r2", h1=packed).view(np.uint16)
    wanted = small_values(name).astype(np.float16)
    pattern = np.where(np.isnan(wanted), 0x7FFF, wanted.view(np.uint16))
    np.testing.assert_array_equal(found[1::2], pattern)
    np.testing.assert_array_equal(found[::2], pattern[::-1])
    relu = execute(f"cvt.rn.relu.f16x2.{name}x2 %r2, %h1;", "r2", h1=packed).view(np.uint16)
    positive = np.where((pattern & 0x8000 != 0), 0, pattern)
    np.testing.assert_array_equal(relu[1::2], positive)


def test_exponents():
    column = np.float32([1.0, 1.5, 2.0**-127, 2.0**-127 * 1.25, 0, -3.0, math.inf, math.nan])
    rows = {"r1": column, "r2": np.float32(2.0)}

    def upper(text):
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


def test_pack():
    rows = {"r1": np.int32([100000, -5]), "r2": np.int32([-100000, 300]), "r3": np.uint32(0xABCDEF)}
    found = execute("cvt.pack.sat.s16.s32 %r4, %r1, %r2;", "r4", **rows)
    assert found.tolist() == [0x7FFF8000, 0xFFFB012C]
    found = execute("cvt.pack.sat.u8.s32.b32 %r4, %r1, %r2, %r3;", "r4", **rows)
    assert found.tolist() == [0xCDEFFF00, 0xCDEF00FF]
    found = execute("cvt.pack.sat.s4.s32.b32 %r4, %r1, %r2, %r3;", "r4", **rows)
    assert found.tolist() == [0xABCDEF78, 0xABCDEFB7]


def test_what_does_not_exist():
    for text in (
        "cvt.f32.s32 %r1, %r2;",
        "cvt.s32.f32 %r1, %r2;",
        "cvt.f16.f32 %h1, %r2;",
        "cvt.rm.bf16x2.f32 %r1, %r2, %r3;",
        "cvt.rn.e4m3x2.f32 %h1, %r2, %r3;",
        "cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4;",
        "cvt.rn.bf16x2.e4m3x2 %r1, %h2;",
        "cvt.rn.ue8m0x2.f32 %h1, %r2, %r3;",
        "cvt.rn.s32.f32 %r1, %r2;",
        "cvt.rni.f16.f32 %h1, %r2;",
        "cvt.pack.sat.u8.s32 %r1, %r2, %r3;",
        "cvt.rna.satfinite.relu.tf32.f32 %r1, %r2;",
        "cvt.u32.u64 %r1, %r2;",
    ):
        assert refused(text), text


def test_formats_know_themselves():
    for kind in FORMATS:
        for bits in samples(kind, 99, 30):
            value = decode(bits, kind)
            if isinstance(value, Fraction):
                assert encode(value, kind) == bits


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


@pytest.mark.parametrize("kind", ["f16x2", "e4m3x4", "e2m1x4"])
def test_stochastic_rounding_that_drops_more_bits_is_refused(kind: str) -> None:
    operands = "%r1, %r2" if kind == "f16x2" else "{%r1, %r2, %r3, %r4}"
    assert refused(f"cvt.rs.satfinite.{kind}.f32 %r5, {operands}, %r6;")
