"""cvt and cvt.pack (PTX ISA, "Data Movement and Conversion: cvt")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.scalar.modifiers import (
    ROUNDINGS,
    Words,
    compute,
    compute_into,
    widened,
)
from fa4gen.emulator.instructions.scalar.rows import conversions, ieee, small_floats
from fa4gen.emulator.ptx.syntax import Instruction, Register
from fa4gen.emulator.ptx.types import CLASS_BITS, bits_of, dtype_of
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_INTEGERS: Final = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_HALVES: Final = ("f16x2", "bf16x2")
_SMALL: Final = tuple(f"{name}x2" for name in small_floats.FORMATS)
_TO_INTEGER: Final = ("rni", "rzi", "rmi", "rpi")
_KINDS: Final = (*_INTEGERS, *_FLOATS, *_HALVES, *_SMALL, "ue8m0x2", "tf32")
_BITS: Final = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


_FOUR: Final = tuple(f"{name}x4" for name in small_floats.FORMATS)


def _cvt(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    if "rs" in i.modifiers and set(i.modifiers) & {"f16x2", *_FOUR}:
        raise e.refuse(
            "where the random bits of .rs are added if more bits are dropped than there are random "
            "ones: the PTX ISA says that in figures only"
        )
    result, source = words.kind(*_KINDS), words.kind(*_KINDS)
    if result in _HALVES and source == "f32":
        _pair(i, e, words, result.removesuffix("x2"))
    elif result == "tf32" and source == "f32":
        _tf32(i, e, words)
    elif result in _SMALL and source in ("f32", "f16x2"):
        _to_small(i, e, words, result, source)
    elif source in _SMALL and result == "f16x2":
        _from_small(i, e, words, source)
    elif result == "ue8m0x2" and source in ("f32", "bf16x2"):
        _to_exponents(i, e, words, source)
    elif source == "ue8m0x2" and result == "bf16x2":
        words.kind("rn")
        words.end(2)
        compute(e, _two_exponents, "b32", i.operands[0], i.operands[1:], ["b16"])
    elif result in _INTEGERS and source in _INTEGERS:
        _integers(i, e, words, result, source)
    elif result in _INTEGERS and source in _FLOATS:
        _to_integer(i, e, words, result, source)
    elif result in _FLOATS and source in _INTEGERS:
        _from_integer(i, e, words, result, source)
    elif result in _FLOATS and source in _FLOATS:
        _floats(i, e, words, result, source)
    else:
        raise e.refuse(f".{source} to .{result}")


def _integers(i: Instruction, e: Emitter, words: Words, result: str, source: str) -> None:
    saturated = words.has("sat")
    words.end(2)
    d, a = i.operands
    target = widened(d, result)
    if saturated:
        clamp = partial(conversions.clamp_integer, dtype=np.dtype(dtype_of(result)))
        compute(e, clamp, target, d, [a], [source])
        return
    text = e.get(a, source)
    if isinstance(d, Register) and CLASS_BITS[d.cls] > bits_of(result):
        text = f"{text}.astype({e.name(np.dtype(dtype_of(result)))})"
    e.assign(target, d, text)


def _to_integer(i: Instruction, e: Emitter, words: Words, result: str, source: str) -> None:
    mode = words.kind(*_TO_INTEGER)
    ftz = source == "f32" and words.has("ftz")
    words.has("sat")  # these clamp with or without it
    words.end(2)
    dtype = np.dtype(dtype_of(result))

    def apply(a: Any) -> Any:
        return conversions.float_to_integer(ieee.flush(a, source) if ftz else a, mode, dtype)

    d = i.operands[0]
    compute(e, apply, widened(d, result), d, i.operands[1:], [source])


def _from_integer(i: Instruction, e: Emitter, words: Words, result: str, source: str) -> None:
    mode = words.kind(*ROUNDINGS)
    saturated = result != "bf16" and words.has("sat")
    if result == "f32":
        words.has("ftz")  # no integer becomes subnormal
    words.end(2)
    d, a = i.operands
    if mode == "rn" and result in ("f32", "f64") and not saturated:
        e.assign(result, d, e.get(a, source))
        return

    def apply(x: Any) -> Any:
        value = conversions.integer_to_float(x, result, mode)
        return ieee.clamp_unit(value, result) if saturated else value

    compute(e, apply, result, d, [a], [source])


def _floats(i: Instruction, e: Emitter, words: Words, result: str, source: str) -> None:
    mode = words.one(*ROUNDINGS)
    whole = words.one(*_TO_INTEGER) if result == source else None
    ftz = "f32" in (result, source) and words.has("ftz")
    half = result in ("f16", "bf16") and source == "f32"
    relu = half and words.has("relu")
    finite = half and words.has("satfinite")
    saturated = result != "bf16" and words.has("sat")
    words.end(2)
    rounds = _BITS[result] < _BITS[source]
    if mode is None and rounds and (result, source) != ("bf16", "f16"):  # there ptxas takes rn
        raise e.refuse("a rounding mode was expected")
    if mode is not None and whole is not None:
        raise e.refuse(f".{mode} and .{whole}")

    def apply(a: Any) -> Any:
        if ftz and source == "f32":
            a = ieee.canonical(ieee.flush(a, "f32"), "f32")
        if whole is not None:
            value = ieee.canonical(conversions.to_integral(a, whole), result)
        else:
            value = conversions.float_to_float(a, result, mode or "rn")
        if ftz and result == "f32":
            value = ieee.canonical(ieee.flush(value, "f32"), "f32")
        if finite:
            value = conversions.clamp_finite(value, result)
        if relu:
            value = ieee.clamp_positive(value, result)
        return ieee.clamp_unit(value, result) if saturated else value

    d = i.operands[0]
    if isinstance(d, Register) and CLASS_BITS[d.cls] > bits_of(result):
        # zero-extended, as bits
        bits = np.dtype(f"u{bits_of(result) // 8}")
        target = widened(d, f"u{bits_of(result)}")
        compute(e, lambda a: apply(a).view(bits), target, d, i.operands[1:], [source])
    else:
        compute(e, apply, result, d, i.operands[1:], [source])


def _pair(i: Instruction, e: Emitter, words: Words, kind: str) -> None:
    """Two float32 to a pair: the first operand becomes the upper half."""
    mode = words.kind("rn", "rz", "rs") if kind == "bf16" else words.kind("rn", "rz")
    relu, finite = words.has("relu"), words.has("satfinite")
    if mode == "rs":
        words.end(4)
        _pair_by_chance(i, e, relu, finite)
        return
    words.end(3)
    d, a, b = i.operands
    registers = isinstance(a, Register) and isinstance(b, Register)
    if kind == "bf16" and mode == "rn" and registers and not (relu or finite):
        compute_into(e, conversions.pack_bf16, "b32", d, (a, b), ("f32", "f32"))
        return

    def narrow(x: Any) -> Any:
        value = conversions.float_to_float(x, kind, mode)
        if finite:
            value = conversions.clamp_finite(value, kind)
        return ieee.clamp_positive(value, kind) if relu else value

    compute(
        e,
        lambda high, low: conversions.pack_halves(narrow(high), narrow(low)),
        "b32",
        d,
        (a, b),
        ("f32", "f32"),
    )


def _pair_by_chance(i: Instruction, e: Emitter, relu: bool, finite: bool) -> None:
    """Stochastic rounding to bf16: the upper half of the random bits is for the first operand."""

    def narrow(x: Any, random: Any) -> Any:
        value = conversions.to_bf16_by_chance(x, random)
        if finite:
            value = conversions.clamp_finite(value, "bf16")
        return ieee.clamp_positive(value, "bf16") if relu else value

    def apply(high: Any, low: Any, random: Any) -> Any:
        upper = narrow(high, random >> np.uint32(16))
        return conversions.pack_halves(upper, narrow(low, random))

    compute(e, apply, "b32", i.operands[0], i.operands[1:], ("f32", "f32", "b32"))


def _tf32(i: Instruction, e: Emitter, words: Words) -> None:
    mode = words.kind("rna", "rn", "rz")
    relu, finite = mode != "rna" and words.has("relu"), words.has("satfinite")
    words.end(2)
    apply = partial(conversions.to_tf32, mode=mode, relu=relu, finite=finite)
    # written to a .b32 register
    compute(e, apply, "f32", i.operands[0], i.operands[1:], ["f32"])


def _to_small(i: Instruction, e: Emitter, words: Words, result: str, source: str) -> None:
    """Two float32 (the first becomes the upper part) or an f16x2 to a pair of small floats."""
    words.kind("rn")
    words.kind("satfinite")
    relu = words.has("relu")
    name = result.removesuffix("x2")
    if source == "f16x2" and name not in ("e4m3", "e5m2", "e2m1"):
        raise e.refuse(f".f16x2 to .{result}")
    words.end(3 if source == "f32" else 2)
    # pairs of four bits fill a byte, all others two
    shift = np.uint16(4 if name == "e2m1" else 8)

    def join(high: Any, low: Any) -> Any:
        upper = small_floats.encode(high, name, relu) << shift
        return upper | small_floats.encode(low, name, relu)

    def split(pair: Any) -> Any:
        halves = np.atleast_1d(pair).view(np.float16)
        return join(halves[1::2], halves[::2])

    d = i.operands[0]
    target = widened(d, "u8" if name == "e2m1" else "u16")
    if source == "f32":
        compute(e, join, target, d, i.operands[1:], ("f32", "f32"))
    else:
        compute(e, split, target, d, i.operands[1:], ["b32"])


def _from_small(i: Instruction, e: Emitter, words: Words, source: str) -> None:
    words.kind("rn")
    relu = words.has("relu")
    words.end(2)
    name = source.removesuffix("x2")
    shift = np.uint16(4 if name == "e2m1" else 8)

    def apply(codes: Any) -> Any:
        codes = codes.astype(np.uint16)
        values = [small_floats.decode(part, name) for part in (codes >> shift, codes)]
        if relu:
            values = [ieee.clamp_positive(value, "f16") for value in values]
        return conversions.pack_halves(*values)

    kind = "b8" if name == "e2m1" else "b16"
    compute(e, apply, "b32", i.operands[0], i.operands[1:], [kind])


def _to_exponents(i: Instruction, e: Emitter, words: Words, source: str) -> None:
    upwards = words.kind("rz", "rp") == "rp"
    saturated = words.has("satfinite")
    words.end(3 if source == "f32" else 2)
    encode = partial(small_floats.encode_exponent, upwards=upwards, saturated=saturated)

    def join(high: Any, low: Any) -> Any:
        return (encode(high) << np.uint16(8)) | encode(low)

    def split(pair: Any) -> Any:
        # a bf16 is the upper half of a float32
        high = (pair & np.uint32(0xFFFF0000)).view(np.float32)
        return join(high, (pair << np.uint32(16)).view(np.float32))

    d = i.operands[0]
    target = widened(d, "u16")
    if source == "f32":
        compute(e, join, target, d, i.operands[1:], ("f32", "f32"))
    else:
        compute(e, split, target, d, i.operands[1:], ["b32"])


def _two_exponents(codes: Any) -> Any:
    high = small_floats.decode_exponent(codes >> np.uint16(8))
    return conversions.pack_halves(high, small_floats.decode_exponent(codes & np.uint16(0xFF)))


_PACKED_BITS: Final = {"u2": 2, "s2": 2, "u4": 4, "s4": 4, "u8": 8, "s8": 8, "u16": 16, "s16": 16}


def _pack(i: Instruction, e: Emitter) -> None:
    """cvt.pack: two s32 clamped to a narrow type, above them the low bits of a third operand."""
    words = Words(i, e)
    words.kind("pack")
    words.kind("sat")
    kind = words.kind(*_PACKED_BITS)
    words.kind("s32")
    bits = _PACKED_BITS[kind]
    if bits < 16:
        words.kind("b32")
    words.end(3 if bits == 16 else 4)
    low, high = (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    keep = np.uint32((1 << bits) - 1)

    def clamp(x: Any) -> Any:
        # on int64, since a bound may not be an int32
        return np.clip(np.asarray(x).astype(np.int64), low, high).astype(np.uint32) & keep

    def apply(a: Any, b: Any, *rest: Any) -> Any:
        word = (clamp(a) << np.uint32(bits)) | clamp(b)
        for c in rest:
            word = word | (c << np.uint32(2 * bits))
        return word

    kinds = ["s32", "s32", *(["b32"] if bits < 16 else [])]
    compute(e, apply, "b32", i.operands[0], i.operands[1:], kinds)


TRANSLATIONS: Final[Mapping[str, Translate]] = {"cvt": _cvt, "cvt.pack": _pack}
