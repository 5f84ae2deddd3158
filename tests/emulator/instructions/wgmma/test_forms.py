"""Every form of wgmma.mma_async against sums written out from the ISA's fragments and layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.kernel import kernel, run

SHARED = 49_152
B_AT = 16_384
TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
}
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Form:
    n: int
    d: str
    a: str
    b: str
    registers: bool = False
    swizzle: int = 128
    transposes: tuple[int, int] = (0, 0)
    signs: tuple[int, int] = (1, 1)
    scale: str = "1"
    saturate: bool = False
    steps: int = 1

    @property
    def size(self) -> int:
        return np.dtype(TYPES[self.a]).itemsize

    @property
    def k(self) -> int:
        return 32 // self.size

    @property
    def integer(self) -> bool:
        return self.d == "s32"

    @property
    def count(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def strides(self) -> tuple[int, int]:
        """LBO and SBO."""
        return (4096, 8 * self.swizzle) if self.swizzle else (1024, 128)


def ptx(form: Form) -> str:
    leading, stride = form.strides
    high = stride >> 4 | SWIZZLES[form.swizzle] << 30
    d = ", ".join(f"%r{100 + i}" for i in range(form.count))
    a = "{%r90, %r91, %r92, %r93}" if form.registers else "%d20"
    text = f"wgmma.mma_async.sync.aligned.m64n{form.n}k{form.k}.{form.d}.{form.a}.{form.b}"
    text += ".satfinite" if form.saturate else ""
    text += f" {{{d}}}, {a}, %d21, {form.scale}"
    if not form.integer:
        text += f", {form.signs[0]}, {form.signs[1]}"
    if form.a in ("f16", "bf16"):
        text += f", {form.transposes[1]}" if form.registers else ", {}, {}".format(*form.transposes)
    words = range(form.count)
    return kernel(
        f"""
    mov.u32 %r70, tile; mov.u32 %r71, %tid.x; mov.u32 %r72, %r71; setp.ne.u32 %p2, %r71, %r71;
FILL:
    shl.b32 %r73, %r72, 4; cvt.u64.u32 %d10, %r73; add.u64 %d11, %d1, %d10;
    ld.global.v4.b32 {{%r74, %r75, %r76, %r77}}, [%d11];
    add.u32 %r78, %r70, %r73; st.shared.v4.b32 [%r78], {{%r74, %r75, %r76, %r77}};
    add.u32 %r72, %r72, 128; setp.lt.u32 %p1, %r72, {SHARED // 16}; @%p1 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r80, %r70, 4; or.b32 %r81, %r80, {leading >> 4 << 16};
    mov.b64 %d20, {{%r81, {high}}}; add.u32 %r82, %r81, {B_AT >> 4}; mov.b64 %d21, {{%r82, {high}}};
    mul.wide.u32 %d12, %r71, {4 * form.count}; add.u64 %d13, %d0, %d12;
    {" ".join(f"ld.global.b32 %r{100 + i}, [%d13+{4 * i}];" for i in words)}
    mul.wide.u32 %d14, %r71, 16; add.u64 %d15, %d2, %d14;
    ld.global.v4.b32 {{%r90, %r91, %r92, %r93}}, [%d15];
    wgmma.fence.sync.aligned;
    {f"{text};" * form.steps}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {" ".join(f"st.global.b32 [%d13+{4 * i}], %r{100 + i};" for i in words)}
""",
        ("u64", "u64", "u64"),
        shared=SHARED,
        directives=".maxntid 128",
    )


def address(form: Form, k_major: bool, mn: int, k: int) -> int:
    """Where an element lies from the start of its (aligned) operand."""
    span, size = form.swizzle, form.size
    leading, stride = form.strides
    chunk = 16 // size
    if k_major and not span:
        return mn % 8 * 16 + mn // 8 * stride + k % chunk * size + k // chunk * leading
    if not span:
        return mn % chunk * size + mn // chunk * stride + k % 8 * 16 + k // 8 * leading
    if k_major:
        at = mn % 8 * span + mn // 8 * stride + k * size
    else:
        per = span // size
        at = mn % per * size + mn // per * leading + k % 8 * span + k // 8 * stride
    return at ^ (at >> 7 & (span // 16 - 1)) << 4


def matrix(form: Form, shared: np.ndarray, at: int, k_major: bool, mn: int, kind: str) -> Any:
    rows = [[at + address(form, k_major, i, j) for j in range(form.k)] for i in range(mn)]
    elements = shared.view(TYPES[kind])[np.array(rows) // form.size]
    return elements.astype(np.float64)


def fragment(form: Form, registers: np.ndarray) -> Any:
    per = 4 // form.size
    elements = registers.view(TYPES[form.a]).reshape(128, 4 * per)
    result = np.zeros((64, form.k))
    for thread in range(128):
        for index in range(4 * per):
            warp, lane = divmod(thread, 32)
            register, part = divmod(index, per)
            row = 16 * warp + lane // 4 + 8 * (register & 1)
            result[row, per * (lane % 4) + part + 4 * per * (register >> 1)] = float(
                elements[thread, index]
            )
    return result


def as_matrix(form: Form, registers: np.ndarray) -> Any:
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.d]
    elements = registers.view(dtype).reshape(128, form.n // 2)
    thread, index = np.indices(elements.shape)
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (index >> 1 & 1)
    column = 8 * (index >> 2) + 2 * (thread % 4) + (index & 1)
    result = np.zeros((64, form.n))
    result[row, column] = elements
    return result


def random_of(rng: Any, kind: str, count: int) -> np.ndarray:
    if kind in ("s8", "u8"):
        return rng.integers(-128 if kind == "s8" else 0, 128, count).astype(TYPES[kind])
    values = rng.integers(-8, 9, count) / 4
    return values.astype(TYPES[kind])


def check(form: Form, start: Any = None, **options: Any) -> None:
    rng = np.random.default_rng(form.n)
    shared = np.concatenate(
        [
            random_of(rng, form.a, B_AT // form.size).view(np.uint8),
            random_of(rng, form.b, (SHARED - B_AT) // form.size).view(np.uint8),
        ]
    )
    operand = random_of(rng, form.a, 128 * 16 // form.size)
    accumulators = np.zeros((128, form.n // 2), {"f32": np.float32, "f16": np.float16}.get(
        form.d, np.int32))  # fmt: skip
    accumulators[...] = rng.integers(-8, 9, accumulators.shape) if start is None else start
    before = as_matrix(form, accumulators)
    report = run(ptx(form), accumulators, shared, operand, block=128, **options)
    assert report.verdict is Verdict.CLEAN, str(report)
    if form.registers:
        a = fragment(form, operand)
    else:
        a = matrix(form, shared, 0, not form.transposes[0], 64, form.a)
    b = matrix(form, shared, B_AT, not form.transposes[1], form.n, form.b)
    product = form.signs[0] * form.signs[1] * a @ b.T
    wanted = before if form.scale in ("1", "!%p2") else 0 * before
    for _ in range(form.steps):
        wanted = wanted + product
        if form.d == "f16":
            wanted = wanted.astype(np.float16).astype(np.float64)
    if form.saturate:
        wanted = np.clip(wanted, -(2.0**31), 2.0**31 - 1)
    elif form.integer:
        wanted = wanted.astype(np.int64).astype(np.int32)
    # quarters and sixteenths of small numbers: every float32 sum is exact
    assert np.array_equal(as_matrix(form, accumulators), wanted)


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("d", "a", "b"), [
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
])  # fmt: skip
def test_types(d: str, a: str, b: str, registers: bool) -> None:
    check(Form(32, d, a, b, registers))


@pytest.mark.parametrize("n", [8, 16, 40, 72, 128, 248, 256])
@pytest.mark.parametrize("d", ["f32", "f16"])
def test_widths(n: int, d: str) -> None:
    check(Form(n, d, "f16", "f16"))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("transposes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_layouts(swizzle: int, transposes: tuple[int, int]) -> None:
    check(Form(64, "f32", "bf16", "bf16", swizzle=swizzle, transposes=transposes))
    if not transposes[0]:
        check(Form(64, "f32", "bf16", "bf16", True, swizzle, transposes))


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
def test_signs(signs: tuple[int, int]) -> None:
    check(Form(16, "f32", "f16", "f16", signs=signs))


@pytest.mark.parametrize("scale", ["0", "1", "%p2", "!%p2"])
def test_accumulators_kept_or_not(scale: str) -> None:
    check(Form(16, "f32", "f16", "f16", scale=scale))


@pytest.mark.parametrize("schedule", ["lazy", "eager", "uniform"])
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("d", "a"), [("f32", "bf16"), ("s32", "u8"), ("f16", "f16")])
def test_chains(d: str, a: str, registers: bool, schedule: str) -> None:
    check(Form(24, d, a, a, registers, steps=11), schedule=schedule)


@pytest.mark.parametrize("edge", [2**31 - 5, -(2**31) + 5])
def test_integers_wrap_or_saturate(edge: int) -> None:
    check(Form(16, "s32", "s8", "s8"), start=edge)
    check(Form(16, "s32", "s8", "s8", saturate=True), start=edge)


def test_largest_integers_are_exact() -> None:
    form = Form(8, "s32", "u8", "u8", steps=9)
    accumulators = np.ones((128, 4), np.int32)
    run(ptx(form), accumulators, np.full(SHARED, 255, np.uint8), np.zeros(512, np.uint32),
        block=128)  # fmt: skip
    assert (accumulators == 1 + 9 * 32 * 255 * 255).all()


@pytest.mark.parametrize(("old", "new"), [
    ("m64n16k16", "m64n12k16"), ("m64n16k16", "m64n264k16"), ("m64n16k16", "m64n16k8"),
    ("f32.f16.f16", "f32.f16.bf16"), ("f32.f16.f16", "f32.f16.f16.satfinite"),
    ("mma_async.sync", "mma_async.sp.sync"), ("1, 1, 1, 0, 0;", "1, 2, 1, 0, 0;"),
    ("1, 1, 1, 0, 0;", "1, 1, 1, 0, 2;"), ("1, 1, 1, 0, 0;", "1, 1, 1, 0;"),
    ("{%r100, ", "{"), ("%d21, 1,", "%d21, 2,"), ("commit_group.sync.aligned", "commit_group.sync"),
])  # fmt: skip
def test_forms_that_do_not_exist(old: str, new: str) -> None:
    text = ptx(Form(16, "f32", "f16", "f16"))
    assert old in text
    with pytest.raises(UnsupportedError):
        run(text.replace(old, new), *(np.zeros(512, np.uint32) for _ in range(3)), block=128)
