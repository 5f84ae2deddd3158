"""Every scalar instruction gives the bits that its definition says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle, islice, product

import numpy as np
import pytest

from tests.emulator.instructions.scalar.definitions import (
    corners,
    define,
    register,
    samples,
    width,
)
from tests.emulator.lanes import execute
from tests.emulator.rounding import FORMATS, decode, encode

FORMS = """
{add,sub,min,max,mul.lo,mul.hi,div,rem,mad.lo,mad.hi,sad}.{u16,s16,u32,s32,u64,s64}
{mul,mad}.wide.{u16,s16,u32,s32}
{abs,neg}.{s16,s32,s64}
{add,sub,mad.hi}.sat.s32
{min,max}.relu.s32
{add,min,max}.{u16x2,s16x2}
{min,max}.relu.s16x2
{mul24,mad24}.{lo,hi}.{u32,s32}
{popc,clz,brev}.{b32,b64}
bfind{,.shiftamt}.{u32,s32,u64,s64}
bfe.{u32,s32,u64,s64}
bfi.{b32,b64}
bmsk.{clamp,wrap}.b32
szext.{clamp,wrap}.{u32,s32}
{dp4a,dp2a.lo,dp2a.hi}.{u32,s32}.{u32,s32}
{and,or,xor,not,cnot}.{b16,b32,b64}
shl.{b16,b32,b64}
shr.{b16,u16,s16,b32,u32,s32,b64,u64,s64}
shf.{l,r}.{wrap,clamp}.b32
prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}
mov.{b16,u16,s16,b32,u32,s32,b64,u64,s64}
setp.{eq,ne,lt,le,gt,ge}.{u16,s16,u32,s32,u64,s64}
setp.{eq,ne}.{b16,b32,b64}
setp.{lo,ls,hi,hs}.{u16,u32,u64}
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.{f16,bf16,f32,f64}
setp.{eq,ltu}.ftz.{f16,f32}
set.{lt,ge}.{u32,s32,f32,f16,bf16,u16,s16}.{s32,u64,f32,f64,bf16}
set.{leu,nan}.{u32,f32}.{f16,f32}
selp.{b16,u32,s64,f32,f64}
slct.{b16,u32,s64,f32,f64}.{s32,f32}
slct.ftz.b32.f32
{add,sub,mul,fma,mad}.{rn,rz,rm,rp}.{f32,f64}
{add,sub,mul,fma}.rn.{f16,bf16}
{add,sub,mul,fma.rn}{.ftz,.sat,.ftz.sat}.{f32,f16}
{add,sub,fma}.{rn,rz,rm,rp}{,.sat}.f32.{f16,bf16}
fma.rn{,.ftz}.relu.f16
fma.rn.relu.bf16
{div,rcp,sqrt}.{rn,rz,rm,rp}.{f32,f64}
{div,rcp,sqrt}.{rn,rz}.ftz.f32
{min,max}.f64
{min,max}{,.NaN,.NaN.xorsign.abs,.xorsign.abs}.{f16,bf16,f32}
{min,max}.ftz{,.NaN}.{f16,f32}
{abs,neg}.{f16,bf16,f32,f64}
{abs,neg}.ftz.{f16,f32}
copysign.{f32,f64}
testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}
{add,sub,mul,fma}.rn.{f16x2,bf16x2}
{add,sub,mul,fma}.{rn,rz,rm,rp}{,.ftz}.f32x2
add.ftz.sat.f16x2
fma.rn{.ftz,.sat,.ftz.relu}.f16x2
fma.rn.relu.bf16x2
{min,max}{,.NaN,.xorsign.abs,.NaN.xorsign.abs}.{f16x2,bf16x2}
max.ftz.NaN.f16x2
{abs,neg}.{f16x2,bf16x2}
neg.ftz.f16x2
cvt{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16,u32,s32,u64,s64}
cvt.{rn,rz,rm,rp}.{f16,bf16,f32,f64}.{u8,s8,u16,s16,u32,s32,u64,s64}
cvt.{rni,rzi,rmi,rpi}.{u8,s8,u16,s16,u32,s32,u64,s64}.{f16,bf16,f32,f64}
cvt.{rni,rzi,rmi,rpi}.{f16.f16,bf16.bf16,f32.f32,f64.f64}
cvt.{rn,rz,rm,rp}.{f32.f64,f16.f64,bf16.f64,f16.f32,bf16.f32,bf16.f16,f16.bf16}
cvt.{f32.f16,f32.bf16,f64.f32,f64.f16,f64.bf16,f32.f32}
cvt.rn.{sat,relu,satfinite}.f16.f32
cvt.ftz.f32.f32
cvt.rn.ftz.bf16.f32
cvt.{rn,rz}{,.relu}.{f16x2,bf16x2}.f32
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2}.f32
cvt.rn.satfinite.{e4m3x2,e5m2x2}.f16x2
cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2}
"""


def spread(text: str) -> Iterator[str]:
    """The words that braces with commas stand for, as in a shell."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        yield text
        return
    for choice in found[1].split(","):
        yield from spread(text[: found.start()] + choice + text[found.end() :])


def check(text: str, count: int = 0, seed: int = 1) -> None:
    """Compare with the definition, lane by lane; the last register of a class has the result."""
    result, sources, meaning = define(text, count)
    columns = [samples(kind, seed + place) for place, kind in enumerate(sources)]
    meetings = list(product(*map(corners, sources[:2]))) if len(sources) > 1 else []
    for place, column in enumerate(columns):
        more = [pair[place] for pair in meetings] if place < 2 else samples(sources[place], 7)
        column[:0] = islice(cycle(more), len(meetings))
    length = min(map(len, columns))
    columns = [column[:length] for column in columns]
    names = [f"{register(kind)}{place}" for place, kind in enumerate(sources, 1)]
    rows = {
        name: np.array(column, bool if name[0] == "p" else f"u{max(16, width(kind)) // 8}")
        for name, column, kind in zip(names, columns, sources, strict=True)
    }
    target = f"{register(result)}9"
    both = f"|%{target[0]}8" if text.startswith("setp") else ""
    operands = ", ".join(f"%{name}" for name in names)
    found = execute(f"{text} %{target}{both}, {operands};", target, **rows).tolist()
    bits = 1 if result == "pred" else max(16, width(result))
    for row, got in zip(zip(*columns, strict=True), found, strict=True):
        wanted = meaning(*row)
        if wanted is None:
            assert math.isnan(decode(got, result)), (text, [*map(hex, row)], hex(got))
        else:
            assert got == int(wanted) % (1 << bits), (text, [*map(hex, row)], hex(got), wanted)
    if both:
        other = execute(f"{text} %{target}{both}, {operands};", "p8", **rows).tolist()
        assert other == [not one for one in found]


@pytest.mark.parametrize("text", [text for line in FORMS.split() for text in spread(line)])
def test_an_instruction_gives_what_its_definition_says(text: str) -> None:
    for seed in (1, 51) if text.startswith("fma") else (1,):
        check(text, seed=seed)


@pytest.mark.parametrize("text", ["min.f32", "max.f32", "min.NaN.abs.f32", "max.NaN.abs.f32"])
def test_extremes_of_three(text: str) -> None:
    check(text, count=3)


def test_formats_know_themselves() -> None:
    for kind in FORMATS:
        for bits in samples(kind, 99, 30):
            value = decode(bits, kind)
            if isinstance(value, Fraction):
                assert encode(value, kind) == bits
