"""One small kernel per scalar instruction: what an H200 gives for hard and for random inputs.

A probe is a line of PTX over %a, %b, %c (inputs) and %y (result). Its kernel applies it to one set
of inputs per thread. All kernels share one module, so that a GPU compiles it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

THREADS = 320

_DTYPES = {
    "b16": np.uint16, "u16": np.uint16, "s16": np.int16, "b32": np.uint32, "u32": np.uint32,
    "s32": np.int32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f32": np.float32,
    "f64": np.float64, "f16": np.float16, "bf16": np.uint16, "f16x2": np.uint32,
    "bf16x2": np.uint32,
}  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """``line`` over %a, %b, %c and %y; the types of inputs and result; ``ulps`` of slack."""

    name: str
    line: str
    inputs: tuple[str, ...]
    output: str
    ulps: float = 0.0


def _simple(opcode: str, inputs: str, output: str, ulps: float = 0.0, tail: str = "") -> Probe:
    kinds = tuple(inputs.split())
    operands = ", ".join(("%a", "%b", "%c")[: len(kinds)])
    return Probe(opcode + tail, f"{opcode} %y, {operands}{tail};", kinds, output, ulps)


def _integer() -> list[Probe]:
    probes = []
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        same = f"{kind} {kind}"
        probes += [_simple(f"{op}.{kind}", same, kind) for op in ("add", "sub", "min", "max")]
        probes += [_simple(f"mul.{part}.{kind}", same, kind) for part in ("lo", "hi")]
        probes += [_simple(f"mad.lo.{kind}", f"{kind} {kind} {kind}", kind)]
        probes += [_simple(f"{op}.{kind}", same, kind) for op in ("div", "rem")]
    for kind, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        probes += [_simple(f"mul.wide.{kind}", f"{kind} {kind}", wide)]
        probes += [_simple(f"mad.wide.{kind}", f"{kind} {kind} {wide}", wide)]
    for kind in ("s16", "s32", "s64"):
        probes += [_simple(f"{op}.{kind}", kind, kind) for op in ("abs", "neg")]
    probes += [_simple(f"{op}.sat.s32", "s32 s32", "s32") for op in ("add", "sub")]
    probes += [_simple(f"mad.hi.{kind}", f"{kind} {kind} {kind}", kind) for kind in ("u32", "s32")]
    probes += [_simple(f"mul24.lo.{kind}", f"{kind} {kind}", kind) for kind in ("u32", "s32")]
    probes += [_simple(f"sad.{kind}", f"{kind} {kind} {kind}", kind) for kind in ("u32", "s32")]
    for kind in ("b32", "b64"):
        probes += [_simple(f"{op}.{kind}", kind, "u32") for op in ("popc", "clz")]
        probes += [_simple(f"brev.{kind}", kind, kind)]
    for kind in ("u32", "s32", "u64", "s64"):
        probes += [_simple(f"bfind.{kind}", kind, "u32")]
        probes += [_simple(f"bfind.shiftamt.{kind}", kind, "u32")]
        probes += [_simple(f"bfe.{kind}", f"{kind} u32 u32", kind)]
    probes += [
        Probe("bfi.b32", "bfi.b32 %y, %a, %b, %c, 7;", ("b32", "b32", "u32"), "b32"),
        _simple("bmsk.clamp.b32", "u32 u32", "b32"),
        _simple("bmsk.wrap.b32", "u32 u32", "b32"),
        _simple("szext.clamp.s32", "s32 u32", "s32"),
        _simple("szext.wrap.u32", "u32 u32", "u32"),
        _simple("dp4a.s32.s32", "b32 b32 s32", "s32"),
        _simple("dp4a.u32.s32", "b32 b32 s32", "s32"),
        _simple("dp2a.lo.s32.u32", "b32 b32 s32", "s32"),
        _simple("fns.b32", "b32 u32 s32", "b32"),
        Probe("carry", "add.cc.u32 %y, %a, %b; addc.u32 %y, %y, %c;", ("u32",) * 3, "u32"),
        Probe("borrow", "sub.cc.u32 %y, %a, %b; subc.u32 %y, %y, %c;", ("u32",) * 3, "u32"),
    ]
    return probes


def _logic() -> list[Probe]:
    probes = []
    for kind in ("b16", "b32", "b64"):
        same = f"{kind} {kind}"
        probes += [_simple(f"{op}.{kind}", same, kind) for op in ("and", "or", "xor")]
        probes += [_simple(f"{op}.{kind}", kind, kind) for op in ("not", "cnot")]
        signed = kind.replace("b", "s")
        probes += [
            _simple(f"shl.{kind}", f"{kind} u32", kind),
            _simple(f"shr.{kind}", f"{kind} u32", kind),
            _simple(f"shr.{signed}", f"{signed} u32", signed),
        ]
    for side in "lr":
        for mode in ("wrap", "clamp"):
            probes.append(_simple(f"shf.{side}.{mode}.b32", "b32 b32 u32", "b32"))
    for table in (0x96, 0xE8, 0x1B, 0xC0):
        probes.append(_simple("lop3.b32", "b32 b32 b32", "b32", tail=f", {table:#x}"))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        probes.append(_simple(f"prmt.b32{mode}", "b32 b32 b32", "b32"))
    floats = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
              "nan")  # fmt: skip
    for kind, comparisons in (
        ("s32", ("eq", "ne", "lt", "le", "gt", "ge")),
        ("u32", ("lo", "ls", "hi", "hs")),
        ("u64", ("lt", "ge")),
        ("s16", ("lt", "gt")),
        ("f32", floats),
        ("f64", ("lt", "neu")),
        ("f16", ("lt", "equ")),
    ):
        for comparison in comparisons:
            line = f"setp.{comparison}.{kind} %p0, %a, %b; selp.u32 %y, 1, 0, %p0;"
            probes.append(Probe(f"setp.{comparison}.{kind}", line, (kind, kind), "u32"))
    probes += [
        _simple("set.lt.u32.f32", "f32 f32", "u32"),
        _simple("set.ge.f32.s32", "s32 s32", "f32"),
        _simple("slct.f32.s32", "f32 f32 s32", "f32"),
        _simple("slct.u32.f32", "u32 u32 f32", "u32"),
    ]
    return probes


def _floating() -> list[Probe]:
    probes = []
    for mode in ("rn", "rz", "rm", "rp"):
        probes += [_simple(f"{op}.{mode}.f32", "f32 f32", "f32") for op in ("add", "sub", "mul")]
        probes += [
            _simple(f"fma.{mode}.f32", "f32 f32 f32", "f32"),
            _simple(f"div.{mode}.f32", "f32 f32", "f32"),
            _simple(f"sqrt.{mode}.f32", "f32", "f32"),
            _simple(f"rcp.{mode}.f32", "f32", "f32"),
            _simple(f"add.{mode}.f64", "f64 f64", "f64"),
            _simple(f"mul.{mode}.f64", "f64 f64", "f64"),
        ]
    for op in ("add", "mul", "fma", "min", "max"):
        count = 3 if op == "fma" else 2
        rounding = ".rn" if op in ("add", "mul", "fma") else ""
        for kind in ("f32",):
            probes.append(_simple(f"{op}{rounding}.ftz.{kind}", " ".join([kind] * count), kind))
        for kind in ("f16", "bf16", "f16x2", "bf16x2", "f64"):
            rounded = ".rn" if op in ("add", "mul", "fma") else ""
            if kind == "f64" and op in ("min", "max"):
                rounded = ""
            probes.append(_simple(f"{op}{rounded}.{kind}", " ".join([kind] * count), kind))
    for op in ("min", "max"):
        for form in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
            probes.append(_simple(f"{op}{form}.f32", "f32 f32", "f32"))
        for kind in ("f16", "bf16", "f16x2", "bf16x2"):
            probes.append(_simple(f"{op}.NaN.{kind}", f"{kind} {kind}", kind))
    for kind in ("f32", "f16", "bf16", "f16x2", "bf16x2"):
        probes += [_simple(f"{op}.{kind}", kind, kind) for op in ("abs", "neg")]
    probes += [
        _simple("fma.rn.relu.f16", "f16 f16 f16", "f16"),
        _simple("fma.rn.relu.bf16x2", "bf16x2 bf16x2 bf16x2", "bf16x2"),
        _simple("fma.rn.sat.f16x2", "f16x2 f16x2 f16x2", "f16x2"),
        _simple("add.sat.f32", "f32 f32", "f32"),
        _simple("copysign.f32", "f32 f32", "f32"),
        _simple("ex2.approx.f32", "f32", "f32", 2),
        _simple("ex2.approx.ftz.f32", "f32", "f32", 2),
        _simple("lg2.approx.f32", "f32", "f32", 4),
        _simple("rcp.approx.f32", "f32", "f32", 1),
        _simple("rcp.approx.ftz.f32", "f32", "f32", 1),
        _simple("rsqrt.approx.f32", "f32", "f32", 2),
        _simple("sqrt.approx.f32", "f32", "f32", 2),
        _simple("div.approx.f32", "f32 f32", "f32", 2),
        _simple("div.full.f32", "f32 f32", "f32", 2),
        _simple("tanh.approx.f32", "f32", "f32", 128),
        _simple("ex2.approx.f16", "f16", "f16", 1),
        _simple("ex2.approx.ftz.bf16", "bf16", "bf16", 1),
        _simple("tanh.approx.f16", "f16", "f16", 2),
    ]
    return probes


def _holds(target: str, source: str) -> bool:
    """Whether every value of an integer type is one of another, so that nothing saturates."""
    wide, narrow = np.iinfo(_DTYPES[target]), np.iinfo(_DTYPES[source])
    return wide.min <= narrow.min and narrow.max <= wide.max


def _conversion() -> list[Probe]:
    probes = []
    for source in ("s32", "u32", "s64", "u64", "s16", "u16"):
        for target in ("s32", "u32", "s64", "u64", "s16", "u16"):
            if source != target:
                probes.append(_simple(f"cvt.{target}.{source}", source, target))
                if not _holds(target, source):
                    probes.append(_simple(f"cvt.sat.{target}.{source}", source, target))
        for target in ("f32", "f64", "f16"):
            probes.append(_simple(f"cvt.rn.{target}.{source}", source, target))
        probes.append(_simple(f"cvt.rz.f32.{source}", source, "f32"))
    for target in ("s32", "u32", "s64", "u64", "s16", "u16"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            probes.append(_simple(f"cvt.{mode}.{target}.f32", "f32", target))
        probes.append(_simple(f"cvt.rzi.{target}.f64", "f64", target))
        probes.append(_simple(f"cvt.rni.{target}.f16", "f16", target))
    for mode in ("rni", "rzi", "rmi", "rpi"):
        probes.append(_simple(f"cvt.{mode}.f32.f32", "f32", "f32"))
    for mode in ("rn", "rz"):
        probes += [
            _simple(f"cvt.{mode}.f16.f32", "f32", "f16"),
            _simple(f"cvt.{mode}.bf16.f32", "f32", "bf16"),
            _simple(f"cvt.{mode}.relu.bf16.f32", "f32", "bf16"),
            _simple(f"cvt.{mode}.bf16x2.f32", "f32 f32", "bf16x2"),
            _simple(f"cvt.{mode}.f16x2.f32", "f32 f32", "f16x2"),
            _simple(f"cvt.{mode}.relu.f16x2.f32", "f32 f32", "f16x2"),
            _simple(f"cvt.{mode}.f32.f64", "f64", "f32"),
        ]
    for kind in ("e4m3x2", "e5m2x2"):
        probes += [
            _simple(f"cvt.rn.satfinite.{kind}.f32", "f32 f32", "b16"),
            _simple(f"cvt.rn.satfinite.relu.{kind}.f32", "f32 f32", "b16"),
            _simple(f"cvt.rn.satfinite.{kind}.f16x2", "f16x2", "b16"),
            _simple(f"cvt.rn.f16x2.{kind}", "b16", "f16x2"),
        ]
    probes += [
        _simple("cvt.f32.f16", "f16", "f32"),
        _simple("cvt.f32.bf16", "bf16", "f32"),
        _simple("cvt.f64.f32", "f32", "f64"),
        _simple("cvt.sat.f32.f32", "f32", "f32"),
        _simple("cvt.ftz.f64.f32", "f32", "f64"),
        _simple("cvt.rna.tf32.f32", "f32", "b32"),
        _simple("cvt.rn.tf32.f32", "f32", "b32"),
        _simple("cvt.rz.tf32.f32", "f32", "b32"),
        _simple("cvt.rn.relu.tf32.f32", "f32", "b32"),
        _simple("cvt.pack.sat.u16.s32", "s32 s32", "b32"),
        _simple("cvt.pack.sat.s8.s32.b32", "s32 s32 b32", "b32"),
    ]
    return probes


@cache
def probes() -> tuple[Probe, ...]:
    """All scalar probes, by unique name."""
    found = {p.name: p for p in (*_integer(), *_logic(), *_floating(), *_conversion())}
    return tuple(found.values())


def entry_name(probe: Probe) -> str:
    """The entry of a probe's kernel."""
    return "probe_" + "".join(c if c.isalnum() else "_" for c in probe.name)


def _width(kind: str) -> int:
    return np.dtype(_DTYPES[kind]).itemsize * 8


def source(probe: Probe) -> str:
    """The PTX of one probe's entry."""
    lines = []
    for name, kind in zip("abc", probe.inputs, strict=False):
        lines.append(f".reg .b{_width(kind)} %{name};")
    lines.append(f".reg .b{_width(probe.output)} %y;")
    for index, (name, kind) in enumerate(zip("abc", probe.inputs, strict=False)):
        width = _width(kind)
        lines.append(f"""
    ld.param.u64 %q0, [p{index}]; mad.wide.u32 %q0, %r0, {width // 8}, %q0;
    ld.global.b{width} %{name}, [%q0];""")
    count = len(probe.inputs)
    parameters = ", ".join(f".param .u64 p{n}" for n in range(count + 1))
    width = _width(probe.output)
    return f"""
.visible .entry {entry_name(probe)}({parameters})
{{
    .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %q<2>;
    {" ".join(lines[: count + 1])}
    mov.u32 %r0, %tid.x;
    {"".join(lines[count + 1 :])}
    {probe.line}
    ld.param.u64 %q0, [p{count}]; mad.wide.u32 %q0, %r0, {width // 8}, %q0;
    st.global.b{width} [%q0], %y;
    ret;
}}
"""


def module() -> str:
    """The PTX of all probes."""
    head = ".version 8.8\n.target sm_90a\n.address_size 64\n"
    return head + "".join(source(probe) for probe in probes())


def inputs(probe: Probe) -> list[np.ndarray]:
    """The inputs of a probe: every pair of hard values that fits, then random ones."""
    rng = np.random.default_rng(sum(map(ord, probe.name)))
    return [_values(kind, rng, n, probe) for n, kind in enumerate(probe.inputs)]


def output(probe: Probe) -> np.ndarray:
    """An empty result."""
    return np.zeros(THREADS, _DTYPES[probe.output])


_HARD_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 3.5, -2.5, 1e-40, -1e-42, 3.4e38, -3.4e38,
                np.inf, -np.inf, np.nan, 65504.0, 65520.0, 448.0, 464.0, 1e-8, 127.5, 2.0**31,
                2.0**63, -(2.0**31), 32767.5, 1e10, 88.7, -150.0, 1e-38, 0.3333, 7.0)  # fmt: skip


def _values(kind: str, rng: np.random.Generator, position: int, probe: Probe) -> np.ndarray:
    dtype = _DTYPES[kind]
    if kind in ("f32", "f64", "f16"):
        hard = np.array(_HARD_FLOATS)
        # made of integers, so that every machine makes the same
        whole = rng.integers(-(2**52), 2**52, THREADS).astype(np.float64)
        random = np.ldexp(whole, rng.integers(-74, -30, THREADS))
        with np.errstate(over="ignore"):
            values = random.astype(dtype)
            # every hard value beside many others
            chosen = np.repeat(hard, 8) if position == 1 else np.tile(np.roll(hard, position), 8)
            values[:256] = chosen.astype(dtype)
        return values
    if kind in ("f16x2", "bf16x2", "bf16"):
        width = 16
        raw = rng.integers(0, 1 << width, THREADS * 2, dtype=np.uint32).astype(np.uint16)
        special = np.array([0, 0x8000, 0x3C00, 0x3F80, 0x7C00, 0x7F80, 0xFF80, 0x7FC0, 1, 0x8001,
                            0x7BFF, 0x7F7F, 0x0400, 0x0080, 0xBC00, 0xBF80], np.uint16)  # fmt: skip
        raw[:256] = np.tile(special, 16) if position == 0 else np.repeat(special, 16)
        return raw[:THREADS] if kind == "bf16" else raw.view(np.uint32)[:THREADS]
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, THREADS, dtype=dtype, endpoint=True)
    hard_ints = np.array([0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, 255, info.max, info.max - 1,
                          info.min, info.min + 1], dtype=dtype)  # fmt: skip
    values[:256] = np.tile(hard_ints, 16) if position == 0 else np.repeat(hard_ints, 16)
    if probe.name.startswith(("div", "rem")) and kind[0] in "us" and position == 1:
        values[values == 0] = 1  # undefined
        if kind[0] == "s":
            values[values == -1] = 5  # the least number divided by -1 overflows
    if probe.name.startswith(("shl", "shr", "bfe", "bfi", "bmsk", "szext", "fns")) and position:
        values[256:] = values[256:] % np.array(48, dtype)
    return values
