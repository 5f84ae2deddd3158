"""Every form of wgmma.mma_async against whole matrices, in shared memory and in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Report, Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.instructions.tensor_cores import (
    TYPES,
    accumulators,
    dense,
    lay_down,
    operand_registers,
    sparse_metadata,
    sparse_places,
)
from tests.emulator.kernel import kernel, run, vector

SIZE, B_AT = 49_152, 16_384
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}


def layout(swizzle: int, k_major: bool) -> dict[str, Any]:
    leading, stride = (4096, 8 * swizzle) if swizzle else (1024, 128)
    return {"k_major": k_major, "leading": leading, "stride": stride, "span": swizzle}


def text(form: str, operands: str, swizzle: int, count: int, steps: int = 1) -> str:
    """Thread t loads its accumulators, 4 registers of A and one of metadata, and stores D."""
    where = layout(swizzle, True)
    high = where["stride"] >> 4 | SWIZZLES[swizzle] << 30
    words = range(count)
    return kernel(
        f"""
    mov.u32 %r70, tile; mov.u32 %r71, %tid.x; mov.u32 %r72, %r71; setp.ne.u32 %p2, %r71, %r71;
FILL:
    shl.b32 %r73, %r72, 4; cvt.u64.u32 %d10, %r73; add.u64 %d11, %d1, %d10;
    ld.global.v4.b32 {{%r74, %r75, %r76, %r77}}, [%d11];
    add.u32 %r78, %r70, %r73; st.shared.v4.b32 [%r78], {{%r74, %r75, %r76, %r77}};
    add.u32 %r72, %r72, 128; setp.lt.u32 %p1, %r72, {SIZE // 16}; @%p1 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r80, %r70, 4; or.b32 %r81, %r80, {where["leading"] >> 4 << 16};
    mov.b64 %d20, {{%r81, {high}}}; add.u32 %r82, %r81, {B_AT >> 4}; mov.b64 %d21, {{%r82, {high}}};
    mul.wide.u32 %d12, %r71, {4 * count}; add.u64 %d13, %d0, %d12;
    {" ".join(f"ld.global.b32 %r{100 + i}, [%d13+{4 * i}];" for i in words)}
    mul.wide.u32 %d14, %r71, 20; add.u64 %d15, %d2, %d14;
    {" ".join(f"ld.global.b32 %r{90 + i}, [%d15+{4 * i}];" for i in range(5))}
    wgmma.fence.sync.aligned;
    {f"wgmma.mma_async.{form} {vector(100, count)}, {operands};" * steps}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {" ".join(f"st.global.b32 [%d13+{4 * i}], %r{100 + i};" for i in words)}
""",
        ("u64", "u64", "u64"),
        shared=SIZE,
        directives=".maxntid 128",
    )


def launch(ptx: str, cells: Any, buffer: Any = None, given: Any = None, **options: Any) -> Report:
    """``cells`` are each thread's accumulators, ``given`` its five other registers."""
    buffer = np.zeros(SIZE, np.uint8) if buffer is None else buffer
    given = np.zeros((128, 5), np.uint32) if given is None else given
    return run(ptx, cells, buffer, given, block=128, **options)


@dataclass(frozen=True)
class Form:
    """A product; ``sparse`` is the selector of the metadata of a sparse A."""

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
    sparse: int | None = None

    @property
    def k(self) -> int:
        return (32 if self.sparse is None else 64) // np.dtype(TYPES[self.a]).itemsize

    @property
    def integer(self) -> bool:
        return self.d == "s32"

    @property
    def ptx(self) -> str:
        shape = f"m64n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}"
        opcode = f"{'' if self.sparse is None else 'sp.'}sync.aligned.{shape}"
        opcode += ".satfinite" if self.saturate else ""
        operands = [vector(90, 4) if self.registers else "%d20", "%d21"]
        if self.sparse is not None:
            operands += ["%r94", str(self.sparse)]
        operands.append(self.scale)
        if not self.integer:
            operands += map(str, self.signs)
        if self.a in ("f16", "bf16"):
            operands += map(str, self.transposes[1:] if self.registers else self.transposes)
        count = self.n // (4 if self.d == "f16" else 2)
        return text(opcode, ", ".join(operands), self.swizzle, count, self.steps)


def random_of(rng: Any, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind in ("s8", "u8"):
        return rng.integers(-128 if kind == "s8" else 0, 128, shape).astype(TYPES[kind])
    return (rng.integers(-8, 9, shape) / 4).astype(TYPES[kind])


def check(form: Form, start: Any = None, **options: Any) -> None:
    rng = np.random.default_rng(form.n + form.swizzle)
    given = np.zeros((128, 5), np.uint32)
    if form.sparse is None:
        a = random_of(rng, form.a, (64, form.k))
        whole = a.astype(np.float64)
    else:
        places, codes = sparse_places(rng, 64, form.k, pairs=form.a != "tf32", ordered=False)
        a = random_of(rng, form.a, (64, form.k // 2))
        whole = dense(a.astype(np.float64), places)
        given[:, 4] = sparse_metadata(codes, 4 if form.k == 64 else 2, form.sparse, rng)
    b = random_of(rng, form.b, (form.n, form.k))
    given[:, :4] = operand_registers(a, threads=128)
    buffer = rng.integers(0, 256, SIZE, np.uint8)
    lay_down(a, buffer, 0, **layout(form.swizzle, not form.transposes[0]))
    lay_down(b, buffer, B_AT, **layout(form.swizzle, not form.transposes[1]))
    before = np.zeros((64, form.n), TYPES[form.d])
    before[...] = rng.integers(-8, 9, before.shape) if start is None else start
    cells = accumulators(before)
    report = launch(form.ptx, cells, buffer, given, **options)
    assert report.verdict is Verdict.CLEAN, str(report)
    product = whole @ b.astype(np.float64).T
    if not form.integer:
        product *= form.signs[0] * form.signs[1]
    wanted = before.astype(np.float64) * (form.scale in ("1", "!%p2"))
    for _ in range(form.steps):
        wanted = wanted + product
        if form.d == "f16":
            wanted = wanted.astype(np.float16).astype(np.float64)
    if form.saturate:
        wanted = np.clip(wanted, -(2.0**31), 2.0**31 - 1)
    elif form.integer:
        wanted = wanted.astype(np.int64)
    # quarters and sixteenths of small numbers: every float32 sum is exact
    np.testing.assert_array_equal(cells, accumulators(wanted.astype(before.dtype)))


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


def test_infinities_and_nans_of_8_bit_floats() -> None:
    a = np.ones((64, 32), TYPES["e5m2"])
    a[0, 5], a[1, 6], a[2, 7], a[2, 8] = np.inf, np.nan, np.inf, -np.inf
    buffer = np.zeros(SIZE, np.uint8)
    lay_down(a, buffer, 0, **layout(128, True))
    lay_down(np.ones((8, 32), TYPES["e5m2"]), buffer, B_AT, **layout(128, True))
    wanted = np.full((64, 8), 64 + 2.0**-7, np.float32)  # of 2^-7 + 2^-8: 2^-8 is cut off
    wanted[:3] = [[np.inf], [np.nan], [np.nan]]
    cells = accumulators(np.full((64, 8), 2.0**-7 + 2.0**-8, np.float32))
    launch(Form(8, "f32", "e5m2", "e5m2", steps=2).ptx, cells, buffer)
    np.testing.assert_array_equal(cells, accumulators(wanted))


@pytest.mark.parametrize("edge", [2**31 - 5, -(2**31) + 5])
def test_integers_wrap_or_saturate(edge: int) -> None:
    check(Form(16, "s32", "s8", "s8"), start=edge)
    check(Form(16, "s32", "s8", "s8", saturate=True), start=edge)


def test_largest_integers_are_exact() -> None:
    cells = np.ones((128, 4), np.int32)
    launch(Form(8, "s32", "u8", "u8", steps=9).ptx, cells, np.full(SIZE, 255, np.uint8))
    assert (cells == 1 + 9 * 32 * 255 * 255).all()


@pytest.mark.parametrize(
    ("a", "b", "swizzle", "registers", "selector", "transpose"),
    [
        ("bf16", "bf16", 128, False, 0, 0), ("bf16", "bf16", 128, True, 1, 0),
        ("f16", "f16", 0, False, 1, 0), ("f16", "f16", 64, True, 0, 1),
        ("tf32", "tf32", 64, False, 1, 0), ("tf32", "tf32", 128, True, 0, 0),
        ("e4m3", "e5m2", 128, False, 0, 0), ("e4m3", "e4m3", 0, True, 0, 0),
        ("s8", "u8", 64, False, 0, 0), ("u8", "s8", 128, True, 0, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("schedule", ["lazy", "eager"])
def test_sparse(a, b, swizzle, registers, selector, transpose, schedule) -> None:
    """Three of them in a row, which run as one; A and B in every place where they can be."""
    d = "s32" if a in ("s8", "u8") else "f32"
    form = Form(24, d, a, b, registers, swizzle, (0, transpose), (1, -1), steps=3, sparse=selector)
    check(form, schedule=schedule)


def test_single_bits() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (64, 32), np.uint8), rng.integers(0, 256, (24, 32), np.uint8)
    start = rng.integers(-9, 9, (64, 24)).astype(np.int32)
    buffer = np.zeros(SIZE, np.uint8)
    lay_down(a, buffer, 0, **layout(128, True))
    lay_down(b, buffer, B_AT, **layout(128, True))
    cells = accumulators(start)
    ptx = text("sync.aligned.m64n24k256.s32.b1.b1.and.popc", "%d20, %d21, 1", 128, 12, 2)
    report = launch(ptx, cells, buffer)
    assert report.verdict is Verdict.CLEAN, str(report)
    both = np.unpackbits(a, axis=1).astype(int) @ np.unpackbits(b, axis=1).T
    np.testing.assert_array_equal(cells, accumulators((start + 2 * both).astype(np.int32)))


SPARSE = Form(24, "f32", "bf16", "bf16", sparse=0).ptx
NOTHING = np.zeros((128, 12), np.float32)


def test_operands_are_read_until_the_wait() -> None:
    """Both halves of K of B: a write to either meanwhile is a race."""
    given = np.zeros((128, 5), np.uint32)
    given[:, 4] = 0x44444444
    for byte, races in ((0, True), (B_AT + 16, True), (B_AT + 48, True), (B_AT + 80, False)):
        write = f"setp.eq.u32 %p3, %r71, 0; @%p3 st.shared.b32 [%r70+{byte}], %r71;"
        early = SPARSE.replace("wgmma.wait_group", f"{write} wgmma.wait_group")
        report = launch(early, NOTHING.copy(), given=given)
        found = {finding.kind for finding in report.findings}
        assert bool(found & {"race", "proxy-war", "missing-proxy-fence"}) == races, (byte, report)


def test_metadata_without_a_meaning() -> None:
    report = launch(SPARSE, NOTHING.copy())
    assert "illegal-instruction" in [finding.kind for finding in report.findings]


@pytest.mark.parametrize(("old", "new"), [
    ("m64n16k16", "m64n12k16"), ("m64n16k16", "m64n264k16"), ("m64n16k16", "m64n16k8"),
    ("f32.f16.f16", "f32.f16.bf16"), ("f32.f16.f16", "f32.f16.f16.satfinite"),
    ("mma_async.sync", "mma_async.sp.sync"), ("1, 1, 1, 0, 0;", "1, 2, 1, 0, 0;"),
    ("1, 1, 1, 0, 0;", "1, 1, 1, 0, 2;"), ("1, 1, 1, 0, 0;", "1, 1, 1, 0;"),
    ("{%r100, ", "{"), ("%d21, 1,", "%d21, 2,"), ("commit_group.sync.aligned", "commit_group.sync"),
])  # fmt: skip
def test_forms_that_do_not_exist(old: str, new: str) -> None:
    ptx = Form(16, "f32", "f16", "f16").ptx
    assert old in ptx
    with pytest.raises(UnsupportedError):
        launch(ptx.replace(old, new), NOTHING)


@pytest.mark.parametrize(
    ("form", "operands", "swizzle"),
    [
        ("sp.sync.aligned.m64n24k16.f32.bf16.bf16", "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 128),
        ("sp.sync.aligned.m64n24k32.f32.bf16.bf16", "%d20, %d21, %r94, 2, 1, 1, 1, 0, 0", 128),
        ("sp.sync.aligned.m64n24k64.f32.e4m3.e4m3", "%d20, %d21, %r94, 1, 1, 1, 1", 128),
        ("sp.sync.aligned.m64n24k32.f32.bf16.bf16", "%d20, %d21, %r94, 0, 1, 1, 1, 0, 0", 32),
        ("sync.aligned.m64n24k256.s32.b1.b1", "%d20, %d21, 1", 128),
        ("sync.aligned.m64n24k32.s32.s8.s8.and.popc", "%d20, %d21, 1", 128),
    ],
)
def test_other_forms_that_do_not_exist(form: str, operands: str, swizzle: int) -> None:
    with pytest.raises(UnsupportedError):
        launch(text(form, operands, swizzle, 12), NOTHING)
