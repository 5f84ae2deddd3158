"""The meaning of scalar instructions in whole numbers and fractions: bits in, bits out."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.rounding import FORMATS, decode, encode

Meaning = Callable[..., Any]
"""From the bits of the operands to those of the result; None stands for any NaN."""

NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
FLOATS = tuple(FORMATS)
INTEGERS = tuple(f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us")
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32", "u16x2": "u16", "s16x2": "s16"}
# name: bits, NumPy's type, largest code
SMALL: dict[str, tuple[int, Any, int]] = {
    "e4m3": (8, ml_dtypes.float8_e4m3fn, 0x7E), "e5m2": (8, ml_dtypes.float8_e5m2, 0x7B),
    "e2m3": (6, ml_dtypes.float6_e2m3fn, 0x1F), "e3m2": (6, ml_dtypes.float6_e3m2fn, 0x1F),
    "e2m1": (4, ml_dtypes.float4_e2m1fn, 0x07),
}  # fmt: skip
MODES = ("rn", "rz", "rm", "rp")
SMALL_COUNTS = [0, 1, 2, 5, 7, 8, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 79, 200, 255]


def width(kind: str) -> int:
    """Bits of a type of PTX, of a pair of small floats, or of a count."""
    if kind in PACKED:
        return 2 * width(PACKED[kind])
    if kind.removesuffix("x2") in SMALL:
        return 16
    return {"pred": 1, "count": 32, "place": 32, "bf16": 16}.get(kind) or int(kind[1:])


def register(kind: str) -> str:
    """The class of registers that hold it."""
    return {1: "p", 8: "h", 16: "h", 32: "r", 64: "d"}[width(kind)]


def whole(bits: int, kind: str) -> int:
    """The number of an integer type that bits are."""
    size = width(kind)
    bits &= (1 << size) - 1
    return bits - (1 << size) if kind[0] == "s" and bits >> (size - 1) else bits


def clamp(value: int, kind: str) -> int:
    size = width(kind)
    low, high = (-(1 << size - 1), (1 << size - 1) - 1) if kind[0] == "s" else (0, (1 << size) - 1)
    return max(low, min(high, value))


# ---- operands


def integer_samples(kind: str, seed: int, count: int = 60) -> list[int]:
    """Corner values and random ones of a type."""
    bits = width(kind)
    rng = random.Random(seed)
    corners = [0, 1, 2, -1, -2, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits // 2) + 1]
    values = [
        rng.choice(corners) if rng.random() < 0.4 else rng.getrandbits(bits) for _ in range(count)
    ]
    return [whole(v >> rng.randrange(bits) if rng.random() < 0.3 else v, kind) for v in values]


def float_samples(kind: str, seed: int, count: int = 120) -> list[int]:
    """Bit patterns: corners, neighbours of powers of two, few-bit and any numbers."""
    form, rng = FORMATS[kind], random.Random(seed)
    fraction = form.precision - 1
    bias = 1 - form.low
    one = bias << fraction
    infinity = special_bits(math.inf, kind)
    corners = [
        0, 1, 1 << fraction, (1 << fraction) - 1, one, one + 1, one - 1, infinity, infinity - 1,
        infinity + 1, one + (1 << (fraction - 1)),
    ]  # fmt: skip
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


def corners(kind: str) -> list[int]:
    """Bits of numbers of which each two should meet."""
    if kind in FORMATS:
        infinity, one = special_bits(math.inf, kind), encode(Fraction(1), kind)
        positive = [0, 1, one, encode(Fraction(5, 2), kind), infinity, infinity + 1]
        return [*positive, *(sign_bit(kind) | bits for bits in positive)]
    if kind in INTEGERS:
        return [n % (1 << width(kind)) for n in (0, 1, 2, -1, -2, 1 << width(kind) - 1)]
    return []


def samples(kind: str, seed: int, count: int = 60) -> list[int]:
    """Bits of operands of a type."""
    rng = random.Random(seed)
    if kind == "pred":
        return [rng.getrandbits(1) for _ in range(count)]
    if kind in ("count", "place"):
        large = [] if kind == "place" else [2**31, 2**32 - 1]
        return [rng.choice([*SMALL_COUNTS, *large, rng.randrange(40)]) for _ in range(count)]
    if kind in PACKED:
        low, high = (samples(PACKED[kind], seed + n, count) for n in (0, 100))
        return [a | b << width(kind) // 2 for a, b in zip(low, high, strict=True)]
    if kind.removesuffix("x2") in SMALL:
        codes = range(1 << SMALL[kind[:-2]][0])
        shift = 4 if kind == "e2m1x2" else 8
        return [a | b << shift for a, b in zip(codes, reversed(codes), strict=True)]
    if kind in FORMATS:
        near = [encode(Fraction(n, 2) * s, kind) for n in range(1, 9) for s in (1, -1)]
        edges = [encode(Fraction(2) ** n + d, kind) for n in (7, 8, 15, 31, 63) for d in (-1, 0)]
        return [*float_samples(kind, seed, 2 * count - 26), *near, *edges]
    size = width(kind)
    return [value & (1 << size) - 1 for value in integer_samples(kind, seed, count)]


# ---- floats


def special_bits(value: float, kind: str) -> int:
    """The bits of a zero or an infinity."""
    form = FORMATS[kind]
    sign = 1 << (form.bits - 1) if math.copysign(1, value) < 0 else 0
    infinity = ((1 << (form.bits - form.precision)) - 1) << (form.precision - 1)
    return sign | (infinity if math.isinf(value) else 0)


def is_nan(bits: int, kind: str) -> bool:
    return math.isnan(decode(bits, kind))


def sign_bit(kind: str) -> int:
    return 1 << (FORMATS[kind].bits - 1)


def flushed(bits: int, kind: str) -> int:
    """A subnormal number becomes a zero of its sign."""
    small = bits & ~sign_bit(kind) < 1 << (FORMATS[kind].precision - 1)
    return bits & sign_bit(kind) if small else bits


def sum_bits(terms: list[Any], kind: str, mode: str) -> int | None:
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


def product(x: Any, y: Any) -> Any:
    """Exact; zeros and infinities as floats."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    x, y = (math.copysign(1.0, v) if isinstance(v, Fraction) else v for v in (x, y))
    return x * y


def quotient(x: Any, y: Any) -> Any:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x / y
    x, y = (np.float64(math.copysign(1.0, v) if isinstance(v, Fraction) else v) for v in (x, y))
    with np.errstate(all="ignore"):
        return float(x / y)


def root(x: Any) -> Any:
    """Enough digits of a square root, pushed off exactness if it is not exact."""
    if not isinstance(x, Fraction):
        return x if x == 0 or x == math.inf else math.nan
    if x < 0:
        return math.nan
    digits = 60 - min(0, math.frexp(x)[1])
    value = Fraction(math.isqrt(int(x * 4**digits)), 2**digits)
    return value if value * value == x else value + Fraction(1, 2 ** (digits + 1))


def _terms(opcode: str, values: list[Any]) -> list[Any]:
    """The exact terms of a result."""
    match opcode, values:
        case "add", [x, y]:
            return [x, y]
        case "sub", [x, y]:
            return [x, -y]
        case "mul", [x, y]:
            return [product(x, y)]
        case "fma" | "mad", [x, y, z]:
            return [product(x, y), z]
        case "div", [x, y]:
            return [quotient(x, y)]
        case "rcp", [x]:
            return [quotient(Fraction(1), x)]
        case _, [x]:
            return [root(x)]
    raise AssertionError(opcode)


def _arithmetic(opcode: str, words: list[str], kind: str, sources: list[str]) -> Meaning:
    mode = next((word for word in words if word in MODES), "rn")

    def apply(*operands: int) -> int | None:
        if "ftz" in words:
            operands = tuple(map(flushed, operands, sources))
        bits = sum_bits(_terms(opcode, list(map(decode, operands, sources))), kind, mode)
        return finished(bits, kind, words)

    return apply


def finished(bits: int | None, kind: str, words: list[str]) -> int | None:
    """A result after its modifiers; None is a NaN."""
    if "sat" in words:
        value = math.nan if bits is None else decode(bits, kind)
        if math.isnan(value) or value <= 0:
            return 0
        bits = encode(Fraction(1), kind) if value >= 1 else bits
    if bits is None or is_nan(bits, kind):
        return NAN.get(kind)
    if "relu" in words and bits & sign_bit(kind):
        return 0
    return flushed(bits, kind) if "ftz" in words else bits


def _order(bits: int, kind: str) -> int:
    """Orders bit patterns as numbers, with -0 below +0."""
    return -(bits - sign_bit(kind)) - 1 if bits & sign_bit(kind) else bits


def _extreme(opcode: str, words: list[str], kind: str, sources: list[str]) -> Meaning:
    choose = min if opcode == "min" else max

    def apply(*operands: int) -> int | None:
        values = [flushed(b, kind) for b in operands] if "ftz" in words else list(operands)
        signs = (values[0] ^ values[1]) & sign_bit(kind)
        if "abs" in words:
            values = [b & ~sign_bit(kind) for b in values]
        numbers = [b for b in values if not is_nan(b, kind)]
        if not numbers or ("NaN" in words and len(numbers) < len(values)):
            return NAN.get(kind)
        found = choose(numbers, key=lambda b: _order(b, kind))
        return found | signs if "xorsign" in words else found

    return apply


def _sign(opcode: str, words: list[str], kind: str, sources: list[str]) -> Meaning:
    def apply(a: int, b: int = 0) -> int | None:
        if "ftz" in words:
            a = flushed(a, kind)
        if opcode == "copysign":
            return a & sign_bit(kind) | b & ~sign_bit(kind)
        if is_nan(a, kind):
            return NAN.get(kind)
        return a & ~sign_bit(kind) if opcode == "abs" else a ^ sign_bit(kind)

    return apply


# ---- whole numbers


def _divided(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _low24(value: int, signed: bool) -> int:
    value &= 0xFFFFFF
    return value - (value >> 23 << 24) if signed else value


def _field(a: int, position: int, count: int, kind: str) -> int:
    """The loop of the PTX manual."""
    bits, pos, length = width(kind), position & 255, count & 255
    bit = [a >> n & 1 for n in range(bits)]
    sign = bit[min(pos + length - 1, bits - 1)] if kind[0] == "s" and length else 0
    return sum((bit[pos + n] if n < length and pos + n < bits else sign) << n for n in range(bits))


def _insert(a: int, b: int, position: int, count: int, kind: str) -> int:
    bits, pos, length = width(kind), position & 255, count & 255
    field = ((1 << length) - 1) << pos & ((1 << bits) - 1)
    return b & ~field | a << pos & field


def _up_to(count: int, mode: str) -> int:
    return min(count, 32) if mode == "clamp" else count % 32


def _extended(a: int, count: int, mode: str, kind: str) -> int:
    size = _up_to(count, mode)
    low = a & ((1 << size) - 1)
    return low - (1 << size) if kind[0] == "s" and size and low >> (size - 1) else low


def _dot(a: int, b: int, c: int, left: str, right: str, bits: int, first: int = 0) -> int:
    """Parts of ``a``, 32 bits in all, times bytes of ``b`` from the first on."""
    return c + sum(
        whole(a >> n * bits, f"{left[0]}{bits}") * whole(b >> 8 * (n + first), f"{right[0]}8")
        for n in range(32 // bits)
    )


def permuted(a: int, b: int, selector: int) -> int:
    """prmt of the bytes of two words."""
    source = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    result = []
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = source[nibble & 7]
        result.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(result), "little")


# the selector that each mode of prmt stands for, by the low two bits of its operand
SELECTORS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _integer(opcode: str, words: list[str], kind: str) -> Meaning:
    """On numbers of the sources' types; the result is cut to its own."""
    bits, signed = width(kind), kind[0] == "s"
    mode = words[0] if words else ""
    high = bits if mode == "hi" else 0
    plain: dict[str, Meaning] = {
        "add": operator.add, "sub": operator.sub, "min": min, "max": max, "abs": abs,
        "neg": operator.neg, "mul": lambda a, b: a * b >> high, "div": _divided,
        "rem": lambda a, b: a - b * _divided(a, b) if b else -1,
        "mad": lambda a, b, c: (a * b >> high) + c, "sad": lambda a, b, c: c + abs(a - b),
        "mul24": lambda a, b: _low24(a, signed) * _low24(b, signed) >> 16 * (mode == "hi"),
        "mad24": lambda a, b, c: c + (
            _low24(a, signed) * _low24(b, signed) >> 16 * (mode == "hi")
        ),
        "popc": int.bit_count, "clz": lambda a: bits - a.bit_length(),
        "brev": lambda a: int(f"{a:0{bits}b}"[::-1], 2),
        "bfe": partial(_field, kind=kind), "bfi": partial(_insert, kind=kind),
        "bmsk": lambda a, b: ((1 << _up_to(b, mode)) - 1) << _up_to(a, mode),
        "szext": partial(_extended, mode=mode, kind=kind),
        "dp4a": partial(_dot, left=words[0], right=words[-1], bits=8) if words else abs,
        "dp2a": partial(
            _dot, left=words[-2], right=words[-1], bits=16, first=2 * (mode == "hi")
        ) if len(words) > 1 else abs,
        "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert,
        "cnot": operator.not_, "mov": lambda a: a,
        "shl": lambda a, n: a << min(n, 2 * bits), "shr": lambda a, n: a >> min(n, 2 * bits),
        "shf": lambda a, b, n: ((b << 32 | a) << _up_to(n, words[1])) >> 32 if mode == "l"
        else (b << 32 | a) >> _up_to(n, words[1]),
        "prmt": lambda a, b, s: permuted(a, b, SELECTORS[words[-1]][s & 3])
        if words[-1] in SELECTORS else permuted(a, b, s),
    }  # fmt: skip
    if opcode == "bfind":
        length: Meaning = lambda a: (~a if a < 0 else a).bit_length()  # noqa: E731
        if "shiftamt" in words:
            return lambda a: bits - length(a) if length(a) else -1
        return lambda a: length(a) - 1
    function = plain[opcode]
    if "sat" in words:
        return lambda *operands: clamp(function(*operands), kind)
    if "relu" in words:
        return lambda *operands: max(function(*operands), 0)
    return function


# ---- comparisons

ORDERS: dict[str, Meaning] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def compared(name: str, x: Any, y: Any) -> bool:
    unordered = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return name.endswith("u")
    return bool(ORDERS[name.removesuffix("u")](x, y))


def _number(bits: int, kind: str, words: list[str]) -> Any:
    if kind in FORMATS:
        return decode(flushed(bits, kind) if "ftz" in words else bits, kind)
    return whole(bits, kind)


def _testp(name: str, kind: str, bits: int) -> bool:
    value, small = decode(bits, kind), flushed(bits, kind) != bits
    finite = isinstance(value, Fraction) or value == 0
    return {
        "finite": finite, "infinite": math.isinf(value),
        "number": not math.isnan(value), "notanumber": math.isnan(value),
        "normal": finite and not small, "subnormal": small,
    }[name]  # fmt: skip


# ---- conversions


def rounded(value: Any, mode: str) -> int:
    if mode == "rni":
        return round(value)
    return {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](value)


def _to_integer(bits: int, result: str, source: str, mode: str) -> int:
    value = decode(bits, source)
    if math.isnan(value):
        highest = 1 << (width(result) - 1)
        return whole(highest, result) if source == "f64" or width(result) == 64 else 0
    if math.isinf(value):
        return clamp(int(math.copysign(2**80, value)), result)
    return clamp(rounded(value, mode), result)


def _to_whole_float(bits: int, kind: str, mode: str) -> int | None:
    value = decode(bits, kind)
    if not isinstance(value, Fraction):
        return NAN.get(kind) if math.isnan(value) else bits
    number = rounded(value, mode)
    zero = special_bits(math.copysign(0.0, value), kind)
    return encode(Fraction(number), kind) if number else zero


def _quiet_nan(pattern: int, result: str) -> int:
    """The quiet NaN of a float64: the sign and the upper bits, as an H200 converts it."""
    form = FORMATS[result]
    payload = (pattern & (1 << 52) - 1) >> (53 - form.precision) | 1 << (form.precision - 2)
    return (pattern >> 63) << (form.bits - 1) | special_bits(math.inf, result) | payload


def converted(pattern: int, source: str, result: str, mode: str) -> int | None:
    """From float to float."""
    value = decode(pattern, source)
    if isinstance(value, float) and math.isnan(value):
        if source == "f64":
            return _quiet_nan(pattern, result)
        if (source, result) == ("bf16", "f32"):
            return pattern << 16
        return NAN.get(result)
    if isinstance(value, Fraction):
        return encode(value, result, mode)
    return special_bits(value, result)


def _to_float(bits: int, result: str, source: str, mode: str, words: list[str]) -> int | None:
    if source == result and not {"sat", "relu", "ftz"} & set(words):
        return bits
    if "ftz" in words:
        bits = flushed(bits, source)
    found = converted(bits, source, result, mode) if source != result else bits
    if "satfinite" in words and found == special_bits(math.copysign(math.inf, 1), result):
        return found - 1
    if "satfinite" in words and found == special_bits(-math.inf, result):
        return found - 1
    if {"sat", "relu"} & set(words) or (source == result and "ftz" in words):
        return finished(found, result, words)
    return found


def small_values(name: str) -> np.ndarray:
    bits, dtype, _ = SMALL[name]
    return np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float32)


@cache
def _small_table(name: str) -> list[Fraction]:
    return [Fraction(float(v)) for v in small_values(name)[: SMALL[name][2] + 1]]


def nearest_code(value: Any, name: str, relu: bool = False) -> int:
    """By distance to every number of the format; ties to the even code."""
    bits, _, largest = SMALL[name]
    if math.isnan(value):
        return {"e4m3": 0x7F, "e5m2": 0x7F}.get(name, largest)
    negative = value < 0 or (value == 0 and math.copysign(1, value) < 0)
    if relu and negative:
        return 0
    table = _small_table(name)
    size = table[-1] if math.isinf(value) else min(abs(Fraction(value)), table[-1])
    code = min(range(largest + 1), key=lambda c: (abs(table[c] - size), c % 2))
    return code | (1 << (bits - 1) if negative else 0)


def _from_small(bits: int, name: str, relu: bool) -> int:
    """Two halves of a word."""
    values = small_values(name)
    shift = 4 if name == "e2m1" else 8
    result = 0
    for n in (0, 1):
        half = values[bits >> shift * n & (1 << SMALL[name][0]) - 1].astype(np.float16)
        found = 0x7FFF if np.isnan(half) else int(half.view(np.uint16))
        result |= (0 if relu and found & 0x8000 else found) << 16 * n
    return result


def _cvt(words: list[str], kinds: list[str]) -> tuple[str, list[str], Meaning]:
    mode = next((word for word in words if word in (*MODES, "rni", "rzi", "rmi", "rpi")), "rn")
    result, source = kinds
    relu = "relu" in words
    if result.removesuffix("x2") in SMALL:
        name, shift = result[:-2], 4 if result == "e2m1x2" else 8
        if source == "f32":
            return (
                result,
                ["f32"] * 2,
                lambda a, b: (
                    nearest_code(decode(a, "f32"), name, relu) << shift
                    | nearest_code(decode(b, "f32"), name, relu)
                ),
            )
        return (
            result,
            ["f16x2"],
            lambda a: (
                nearest_code(decode(a >> 16, "f16"), name, relu) << 8
                | nearest_code(decode(a & 0xFFFF, "f16"), name, relu)
            ),
        )
    if source.removesuffix("x2") in SMALL:
        return result, [source], lambda a: _from_small(a, source[:-2], relu)
    if result in PACKED:
        kind = PACKED[result]
        return (
            result,
            ["f32"] * 2,
            lambda a, b: (
                finished(converted(a, "f32", kind, mode), kind, words) << 16  # type: ignore[operator]
                | finished(converted(b, "f32", kind, mode), kind, words)  # type: ignore[operator]
            ),
        )
    if result in FORMATS and source in FORMATS:
        if mode.endswith("i"):
            return result, [source], lambda a: _to_whole_float(a, result, mode)
        return result, [source], lambda a: _to_float(a, result, source, mode, words)
    if result in FORMATS:
        return (
            result,
            [source],
            lambda a: encode(Fraction(whole(a, source)), result, mode) if whole(a, source) else 0,
        )
    if source in FORMATS:
        return result, [source], lambda a: _to_integer(a, result, source, mode)
    change = clamp if "sat" in words else whole
    return result, [source], lambda a: change(whole(a, source), result)


# ---- all of them

COUNTS = {
    "abs": 1, "neg": 1, "popc": 1, "clz": 1, "brev": 1, "bfind": 1, "not": 1, "cnot": 1, "mov": 1,
    "rcp": 1, "sqrt": 1, "mad": 3, "mad24": 3, "sad": 3, "fma": 3,
}  # fmt: skip
"""Operands, where they are not two."""
OTHER_SOURCES = {
    "shl": ["", "count"], "shr": ["", "count"], "shf": ["", "", "count"], "prmt": ["", "", ""],
    "bfe": ["", "place", "place"], "bfi": ["", "", "place", "place"], "bmsk": ["count", "count"],
    "szext": ["", "count"],
}  # fmt: skip
"""Types of operands; an empty one is that of the instruction."""


def define(text: str, count: int = 0) -> tuple[str, list[str], Meaning]:
    """The type of an instruction's result, those of its operands, and what it means."""
    opcode, *words = text.split(".")
    kinds = [w for w in words if w in (*FORMATS, *PACKED, *INTEGERS, "b16", "b32", "b64", "pred")
             or w.removesuffix("x2") in SMALL]  # fmt: skip
    kind = kinds[-1]
    if opcode == "cvt":
        return _cvt(words, kinds)
    if opcode in ("setp", "set", "testp"):
        if opcode == "testp":
            return "pred", [kind], lambda a: _testp(words[0], kind, a)
        result = "pred" if opcode == "setp" else kinds[0]
        true = {"pred": 1}.get(result, encode(Fraction(1), result) if result in FORMATS else -1)
        return (
            result,
            [kind] * 2,
            lambda a, b: (
                true * compared(words[0], _number(a, kind, words), _number(b, kind, words))
            ),
        )
    if opcode == "selp":
        return kind, [kind, kind, "pred"], lambda a, b, p: a if p else b
    if opcode == "slct":
        return (
            kinds[0],
            [kinds[0], kinds[0], kind],
            lambda a, b, c: a if _number(c, kind, words) >= 0 else b,
        )
    if kind in PACKED:
        return kind, *_in_halves(opcode, words, kind)
    sources = [kind] * (count or COUNTS.get(opcode, 2))
    if opcode in OTHER_SOURCES:
        sources = [one or kind for one in OTHER_SOURCES[opcode]]
    if opcode in ("dp4a", "dp2a"):
        return "s32", [*kinds, "s32"], _of_numbers(_integer(opcode, words, "s32"), [*kinds, "s32"])
    result = "u32" if opcode in ("popc", "clz", "bfind") else kind
    if "wide" in words:
        result = f"{kind[0]}{2 * width(kind)}"
        sources[2:] = [result] * len(sources[2:])
    if len(kinds) == 2:  # sums in f32 of narrow numbers
        result, sources[-1] = kinds[0], kinds[0]
    if result in FORMATS:
        family = {"min": _extreme, "max": _extreme, "abs": _sign, "neg": _sign, "copysign": _sign}
        return result, sources, family.get(opcode, _arithmetic)(opcode, words, result, sources)
    return result, sources, _of_numbers(_integer(opcode, words, kind), sources)


def _of_numbers(function: Meaning, sources: list[str]) -> Meaning:
    kinds = ["u32" if kind in ("count", "place") else kind for kind in sources]
    return lambda *operands: function(*map(whole, operands, kinds))


def _in_halves(opcode: str, words: list[str], kind: str) -> tuple[list[str], Meaning]:
    """Both halves are what the single instruction gives."""
    half = PACKED[kind]
    bits = width(half)
    single = ".".join([opcode, *(half if word == kind else word for word in words)])
    _, sources, meaning = define(single)

    def apply(*operands: int) -> int:
        low, high = (
            meaning(*(a >> shift & (1 << bits) - 1 for a in operands)) for shift in (0, bits)
        )
        return low & (1 << bits) - 1 | (high & (1 << bits) - 1) << bits

    return [kind] * len(sources), apply
