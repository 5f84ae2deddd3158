from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.instructions.tcgen05.kernels import (
    fill,
    kinds,
    launch,
    program,
    save,
)
from tests.emulator.kernel import vector

NOTHING = np.zeros(1, np.uint32)


def saved(body: str, count: int, first: int, **options: Any) -> np.ndarray:
    """So many registers of each thread after ``body``, which has to be clean."""
    out = np.zeros((128, count), np.uint32)
    report = launch(program(body + save(count, first), **options), NOTHING, out)
    assert report.verdict is Verdict.CLEAN, str(report)
    return out


def cell(shape: str, t: int, r: int, split: int = 0) -> tuple[int, int]:
    """(lane, column) of register r of lane t of a warp, as the PTX ISA draws it."""
    if shape == "32x32b":
        return t, r
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2
    if shape == "16x128b":
        return t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    if shape == "16x256b":
        return t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    return t % 16, r + (split if t >= 16 else 0)


CASES = [
    ("32x32b", 1, 1, 0), ("32x32b", 32, 32, 0), ("16x64b", 1, 1, 0), ("16x64b", 8, 8, 0),
    ("16x128b", 4, 8, 0), ("16x256b", 1, 4, 0), ("16x256b", 4, 16, 0), ("16x32bx2", 4, 4, 16),
    ("16x32bx2", 8, 8, 8),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "times", "count", "split"), CASES)
@pytest.mark.parametrize("half", [0, 16])
def test_loads(shape: str, times: int, count: int, split: int, half: int) -> None:
    if half and shape == "32x32b":
        pytest.skip("reaches all 32 lanes")
    more = f", {split}" if shape == "16x32bx2" else ""
    body = f"""
    {fill(64)}
    add.u32 %r11, %r10, {half << 16 | 2};
    tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {vector(200, count)}, [%r11]{more};
    tcgen05.wait::ld.sync.aligned;
    """
    out = saved(body, count, 200)
    for thread in range(128):
        for r in range(count):
            lane, column = cell(shape, thread % 32, r, split)
            lane += thread // 32 * 32 + half
            assert out[thread, r] == lane * 512 + column + 2


@pytest.mark.parametrize(("shape", "times", "count", "split"), CASES)
def test_stores(shape: str, times: int, count: int, split: int) -> None:
    """Values stored in a shape are found in the cells of that shape, and nothing else changes."""
    more = f", {split}" if shape == "16x32bx2" else ""
    values = "\n".join(f"add.u32 %r{200 + r}, %r12, {r};" for r in range(count))
    body = f"""
    {fill(64)}
    add.u32 %r12, %r1, 0x100000;
    {values}
    tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r10]{more}, {vector(200, count)};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x64.b32 {vector(100, 64)}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    """
    out = saved(body, 64, 100)
    expected = np.arange(128)[:, None] * 512 + np.arange(64)
    for thread in range(128):
        for r in range(count):
            lane, column = cell(shape, thread % 32, r, split)
            expected[lane + thread // 32 * 32, column] = 0x100000 + thread * 512 + r
    assert (out == expected).all()


def test_sixteen_bit_values_are_packed_and_unpacked() -> None:
    body = f"""
    mov.u32 %r100, 0x00020001; mov.u32 %r101, 0x00040003;
    tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r10], {vector(100, 2)};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(110, 4)}, [%r10];
    tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {vector(114, 2)}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    """
    out = saved(body, 6, 110)
    assert (out == [1, 2, 3, 4, 0x00020001, 0x00040003]).all()


def test_warps_may_use_different_columns() -> None:
    body = f"""
    {fill(32)}
    add.u32 %r11, %r10, %r3;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r50}}, [%r11];
    tcgen05.wait::ld.sync.aligned;
    """
    out = saved(body, 1, 50)
    thread = np.arange(128)
    assert (out[:, 0] == thread * 512 + thread // 32).all()


def test_a_store_without_its_wait_is_late() -> None:
    """The load finds the old cells when the store has not been waited for."""
    body = f"""
    {fill(1)}
    mov.u32 %r100, 7;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {{%r100}};
    WAIT
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r50}}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    {save(1, 50)}
    """
    for wait, late in (("", True), ("tcgen05.wait::st.sync.aligned;", False)):
        out = np.zeros(128, np.uint32)
        launch(program(body.replace("WAIT", wait)), NOTHING, out, schedule="lazy")
        assert (out != 7).all() == late


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r50}, [%r10];", "uninitialised"),
        (
            "add.u32 %r10, %r10, 100; tcgen05.ld.sync.aligned.32x32b.x32.b32 "
            f"{vector(100, 32)}, [%r10];",
            "tensor-memory",
        ),
        (
            "add.u32 %r10, %r10, 500; tcgen05.ld.sync.aligned.32x32b.x32.b32 "
            f"{vector(100, 32)}, [%r10];",
            "tensor-memory",
        ),
        (
            "add.u32 %r10, %r10, 0x100000; mov.u32 %r50, 1;"
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r50};",
            "tensor-memory",
        ),
        (
            "add.u32 %r10, %r10, %r0; mov.u32 %r50, 1;"
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r50};",
            "illegal-instruction",
        ),
    ],
    ids=["uninitialised", "unallocated", "beyond", "half a one", "not uniform"],
)
def test_cells_out_of_reach(body: str, kind: str) -> None:
    assert kind in kinds(launch(program(body), NOTHING, NOTHING))


@pytest.mark.parametrize(("shape", "times", "count", "split"), CASES)
@pytest.mark.parametrize("half", [0, 16])
@pytest.mark.parametrize("quarter", [0, 3, 5], ids=["0", "3", "128 lanes on"])
def test_a_warp_reaches_its_own_quarter_whatever_the_address_says(
    shape: str, times: int, count: int, split: int, half: int, quarter: int
) -> None:
    """Kernels that give every warp the address of the first quarter; eight warps."""
    if half and shape == "32x32b":
        pytest.skip("reaches all 32 lanes")
    more = f", {split}" if shape == "16x32bx2" else ""
    body = f"""
    and.b32 %r11, %r3, 3; shl.b32 %r11, %r11, 21; add.u32 %r10, %r11, %r9;
    setp.gt.u32 %p5, %r0, 127;
    @%p5 bra FILLED;
    {fill(64)}
FILLED:
    tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    add.u32 %r11, %r9, {(32 * quarter + half) << 16 | 2};
    tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {vector(200, count)}, [%r11]{more};
    tcgen05.wait::ld.sync.aligned;
    {save(count, 200)}
    """
    out = np.zeros((256, count), np.uint32)
    report = launch(program(body), NOTHING, out, block=256)
    assert kinds(report) == ["tensor-memory"], str(report)
    assert report.verdict is Verdict.REVIEW
    assert "whatever the address says" in report.findings[0].message
    for thread in range(256):
        for r in range(count):
            lane, column = cell(shape, thread % 32, r, split)
            lane += thread // 32 % 4 * 32 + half
            assert out[thread, r] == lane * 512 + column + 2


def test_stores_to_the_first_quarter_go_to_the_warps_own() -> None:
    """Each store is reported once, however often it is executed."""
    body = f"""
    mov.u32 %r12, 0;
AGAIN:
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {{%r1}};
    tcgen05.wait::st.sync.aligned;
    add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, 3;
    @%p5 bra AGAIN;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r60}}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    {save(1, 60)}
    """
    out = np.zeros(128, np.uint32)
    report = launch(program(body), NOTHING, out)
    assert report.verdict is Verdict.REVIEW, str(report)
    assert [(one.kind, one.count) for one in report.findings] == [("tensor-memory", 1)]
    assert (out == np.arange(128) * 512).all()


def test_part_of_a_warp() -> None:
    assert "partial-warp" in kinds(
        launch(program("tcgen05.wait::ld.sync.aligned;"), NOTHING, NOTHING, block=112)
    )


FLOATS = np.array([1.5, -4.0, np.nan, 0.25], np.float32)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("min.u32", min(FLOATS.view(np.uint32).tolist())),
        ("max.s32", max(FLOATS.view(np.int32).tolist())),
        ("max.f32", np.float32(1.5).view(np.uint32)),
        ("min.f32", np.float32(-4).view(np.uint32)),
        ("max.abs.f32", np.float32(4).view(np.uint32)),
        ("min.NaN.f32", 0x7FFFFFFF),
    ],
)
def test_a_load_that_reduces(words: str, expected: int) -> None:
    values = "".join(
        f"mov.u32 %r{100 + n}, {bits};" for n, bits in enumerate(FLOATS.view(np.uint32))
    )
    body = f"""
    {values}
    tcgen05.st.sync.aligned.32x32b.x4.b32 [%r10], {vector(100, 4)};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.red.sync.aligned.32x32b.x4.{words} {vector(110, 4)}, %r114, [%r10];
    tcgen05.wait::ld.sync.aligned;
    """
    out = saved(body, 5, 110, target="sm_103a")
    assert (out[:, :4] == FLOATS.view(np.uint32)).all()
    assert (out[:, 4] == expected).all()
    assert kinds(launch(program(body), NOTHING, out)) == ["illegal-instruction"]


# ---- allocation

ALLOC = "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+EXTRA], {};"
FREE = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 {}, {};"


def test_columns_are_reused() -> None:
    body = f"""
    {ALLOC.format(64)}
    bar.sync 0; ld.shared.b32 %r60, [tile+EXTRA]; bar.sync 0;
    {FREE.format("%r60", 64)}
    {ALLOC.format(32)}
    bar.sync 0; ld.shared.b32 %r61, [tile+EXTRA];
    {FREE.format("%r61", 32)}
    """
    out = saved(body, 2, 60, columns=64)
    assert (out == [384, 416]).all()


@pytest.mark.parametrize(("columns", "first"), [(512, 0), (256, 256), (32, 480)])
def test_only_an_allocation_of_all_columns_begins_at_column_0(columns: int, first: int) -> None:
    """Another kernel on the SM may have the first ones."""
    assert (saved("", 1, 9, columns=columns) == first).all()


def test_an_allocation_waits_for_columns() -> None:
    """Warp 1 gets its 512 columns when warp 0 has freed its own."""
    body = """
    setp.eq.u32 %p5, %r3, 1;
    @%p5 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+EXTRA], 512;
    bar.sync 0;
    ld.shared.b32 %r9, [tile+EXTRA];
    """
    text = program(body, columns=512)
    report = launch(text, NOTHING, NOTHING)
    assert set(kinds(report)) == {"deadlock"}
    assert any("waits for 512 columns of tensor memory" in str(one) for one in report.findings)
    early = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 512;"
    report = launch(program(early + body, columns=512), NOTHING, NOTHING)
    assert report.verdict is Verdict.CLEAN, str(report)


@pytest.mark.parametrize(
    "body",
    [
        ALLOC.format(256),
        "@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + ALLOC.format(32),
        FREE.format("%r9", 64),
        FREE.format("%r9", 128),
        "mov.u32 %r50, 48; " + ALLOC.format("%r50"),
        "add.u32 %r50, %r9, 32;" + FREE.format("%r50", 32),
    ],
    ids=["growing", "relinquished", "wrong size", "twice", "48 columns", "elsewhere"],
)
def test_rules_of_allocation(body: str) -> None:
    assert "tensor-memory" in kinds(launch(program(body), NOTHING, NOTHING))


def test_columns_that_are_never_given_back() -> None:
    report = launch(program("exit;"), NOTHING, NOTHING)
    assert kinds(report) == ["tensor-memory"]
    assert "has not deallocated columns 384 to 511" in report.findings[0].message


# ---- lanes that nobody wrote

HALF = """
    tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r10], 2, {%r1, %r0};
    tcgen05.wait::st.sync.aligned;
"""


def test_lanes_of_a_load_that_nobody_wrote_are_undefined() -> None:
    """As after a product of 64 rows: a warp's load reaches its other 16 lanes, too."""
    body = f"""{HALF}
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(200, 4)}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    {save(4, 200)}
    """
    out = np.zeros((4, 32, 4), np.uint32)
    report = launch(program(body), NOTHING, out)
    assert [(one.kind, one.severity.value) for one in report.findings] == [
        ("uninitialised", "review")
    ]
    assert "16 of them" in report.findings[0].message
    threads = np.arange(128).reshape(4, 32)[:, :16]
    assert (out[:, :16, 0] == threads * 512).all()
    assert (out[:, :16, 3] == threads + 16).all()
    assert np.isnan(out[:, 16:].view(np.float32)).all()


@pytest.mark.parametrize("first", [2, 8], ids=["some columns", "no column"])
def test_columns_of_a_load_that_nobody_wrote_are_an_error(first: int) -> None:
    body = f"""{HALF} add.u32 %r10, %r10, {first};
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(200, 4)}, [%r10];
    """
    report = launch(program(body), NOTHING, NOTHING)
    assert [(one.kind, one.severity.value) for one in report.findings][:1] == [
        ("uninitialised", "error")
    ]


# ---- kernels that never allocate


def without_allocation(body: str) -> str:
    """The kernel around ``body`` takes tensor memory from column 0."""
    text = "\n".join(
        line
        for line in program(body).splitlines()
        if "tcgen05.alloc" not in line and "tcgen05.dealloc" not in line
    )
    return text.replace("ld.shared.b32 %r9, [tile+0];", "mov.u32 %r9, 0;")


def test_tensor_memory_without_an_allocation_is_all_the_kernels() -> None:
    body = f"""
    {fill(64)}
    add.u32 %r11, %r10, 448;
    tcgen05.st.sync.aligned.32x32b.x64.b32 [%r11], {vector(100, 64)};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x64.b32 {vector(200, 64)}, [%r11];
    tcgen05.wait::ld.sync.aligned;
    {save(64, 200)}
    """
    out = np.zeros((128, 64), np.uint32)
    report = launch(without_allocation(body), NOTHING, out)
    assert [(one.kind, one.severity.value) for one in report.findings] == [
        ("tensor-memory", "review")
    ]
    assert report.findings[0].count == 1
    assert "without tcgen05.alloc" in report.findings[0].message
    assert (out == np.arange(128)[:, None] * 512 + np.arange(64)).all()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("add.u32 %r10, %r10, 32; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r50}, [%r10];",
         "uninitialised"),
        ("add.u32 %r10, %r10, 500; tcgen05.ld.sync.aligned.32x32b.x32.b32 "
         f"{vector(100, 32)}, [%r10];", "tensor-memory"),
        (FREE.format(0, 128).replace("tcgen05.dealloc", "\ntcgen05.DEALLOC"), "tensor-memory"),
    ],
    ids=["uninitialised", "beyond", "freed"],
)  # fmt: skip
def test_what_is_wrong_without_an_allocation_still_is(body: str, kind: str) -> None:
    text = without_allocation(f"{fill(1)} {body}").replace("DEALLOC", "dealloc")
    report = launch(text, NOTHING, NOTHING)
    assert (kind, "error") in [(one.kind, one.severity.value) for one in report.findings]


def test_an_allocation_that_is_not_executed_is_missing() -> None:
    body = fill(1)
    text = program(body).replace("@%p1 tcgen05.alloc", "@!%p1 bra LATER;\n@!%p1 tcgen05.alloc")
    text = text.replace("@%p2 mbarrier.init", "LATER:\n@%p2 mbarrier.init")
    text = text.replace("ld.shared.b32 %r9, [tile+0];", "mov.u32 %r9, 0;")
    report = launch(text, NOTHING, NOTHING)
    assert "not all allocated" in str(report)
