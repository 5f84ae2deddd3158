from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import (
    EmulatorError,
    LaunchError,
    Memory,
    NamedThreads,
    Names,
    Program,
    PtxSyntaxError,
    UnsupportedError,
    Verdict,
)
from fa4gen.emulator.state.memory import FIXED_BASE
from tests.emulator.kernel import kernel, run

DOUBLE = """
    mov.u32 %r20, %ctaid.x;
    mov.u32 %r21, %ntid.x;
    mov.u32 %r22, %tid.x;
    mad.lo.u32 %r20, %r20, %r21, %r22;
    setp.ge.u32 %p1, %r20, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %d3, %r20, 4;
    add.u64 %d4, %d0, %d3;
    add.u64 %d5, %d1, %d3;
    ld.global.f32 %r23, [%d4];
    add.f32 %r23, %r23, %r23;
    st.global.f32 [%d5], %r23;
DONE:
"""
DOUBLE_KERNEL = kernel(DOUBLE, ("u64", "u64", "u32"))


@pytest.mark.parametrize("size", [1, 31, 32, 100, 1000])
def test_arrays_are_read_and_changed_in_place(size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    y = np.full(size, np.nan, np.float32)
    report = run(DOUBLE_KERNEL, x, y, np.uint32(size), block=96, grid=-(-size // 96))
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (y == 2 * x).all()
    assert report.instructions > 8 * size
    assert report.ctas == -(-size // 96)


def test_strided_and_shared_memory_of_arrays() -> None:
    table = np.arange(64, dtype=np.float32)
    report = run(DOUBLE_KERNEL, table[:32], table[32:], np.uint32(32))
    assert report.verdict is Verdict.CLEAN, str(report)
    assert table[32:].tolist() == [2.0 * n for n in range(32)]


def test_an_access_outside_an_array_names_array_and_distance() -> None:
    x, y = np.ones(40, np.float32), np.zeros(40, np.float32)
    report = run(DOUBLE_KERNEL, x, y, np.uint32(41), block=64)
    assert report.verdict is Verdict.ERROR
    assert report.findings[0].kind == "out-of-bounds"
    assert "p0" in report.findings[0].message


def test_a_read_only_array_is_not_written() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    y.flags.writeable = False
    report = run(DOUBLE_KERNEL, x, y, np.uint32(8))
    assert report.verdict is Verdict.ERROR
    assert not y.any()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "has 3 parameters, 0 arguments"),
        ((np.ones(4), np.ones(4), np.uint64(4)), "has 4 bytes, but 8 were given"),
        ((np.ones(4), np.ones(4), 4), "is a int; pass a NumPy array"),
        ((np.ones(4), np.ones(4), np.ones(4)), "an array is passed as a pointer of 8"),
        ((np.uint32(1), np.ones(4), np.uint32(4)), "has 8 bytes, but 4 were given"),
    ],
)
def test_wrong_arguments(args: tuple, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        run(DOUBLE_KERNEL, *args)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 2000}, "at most 1024"),
        ({"block": (0, 1)}, "positive integers"),
        ({"grid": 3, "cluster": 2}, "no multiple of the cluster"),
        ({"dynamic_shared": 300_000}, "at most 232448"),
        ({"schedule": "fastest"}, "none of uniform"),
        ({"checks": ["spelling"]}, "spelling"),
    ],
)
def test_wrong_launches(options: dict, message: str) -> None:
    with pytest.raises(EmulatorError, match=message):
        run(DOUBLE_KERNEL, np.ones(1), np.ones(1), np.uint32(0), **options)


def test_an_entry_that_does_not_exist() -> None:
    program = Program(DOUBLE_KERNEL)
    assert program.entries == ("k",)
    with pytest.raises(LaunchError, match="no entry is called 'main'; there is k"):
        program.launch("main")


def test_what_is_not_modelled_names_line_and_opcode() -> None:
    ptx = kernel("    tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%d1, {%r5, %r6}];")
    line = next(n for n, text in enumerate(ptx.splitlines(), 1) if "tex.2d" in text)
    with pytest.raises((UnsupportedError, PtxSyntaxError), match=rf"line {line}: .*tex") as caught:
        run(ptx, np.ones(1))
    assert caught.value.line == line


def test_broken_text() -> None:
    with pytest.raises(PtxSyntaxError, match="line"):
        Program(".version 8.8\n.target sm_90a\n.visible .entry k( { ret; }")


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (
        run(DOUBLE_KERNEL, np.ones(70, np.float32), np.zeros(70, np.float32), np.uint32(70),
            block=128, seed=3)
        for _ in range(2)
    )  # fmt: skip
    assert (first.instructions, first.findings) == (second.instructions, second.findings)


def test_roles_are_called_by_their_names() -> None:
    names = Names(roles=(NamedThreads("loader", 0, 32), NamedThreads("worker", 32, 64)))
    body = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 trap;"
    report = run(kernel(body, params=()), block=64, names=names)
    assert report.findings[0].who.startswith("loader (CTA 0, threads 0-31")


def test_variables_of_the_module() -> None:
    module = """
.global .align 4 .u32 table[4] = {7, 8, 9, 10};
.const .align 4 .u32 factor = 3;
"""
    body = """
    mov.u32 %r1, %tid.x;
    mov.u64 %d1, table;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    ld.global.u32 %r2, [%d3];
    ld.const.u32 %r3, [factor];
    mul.lo.u32 %r2, %r2, %r3;
    add.u64 %d4, %d0, %d2;
    st.global.u32 [%d4], %r2;
"""
    out = np.zeros(4, np.uint32)
    assert run(kernel(body, module=module), out, block=4).verdict is Verdict.CLEAN
    assert out.tolist() == [21, 24, 27, 30]


def test_dynamic_shared_memory_lies_behind_the_static() -> None:
    module = ".extern .shared .align 16 .b8 dynamic[];"
    body = """
    mov.u32 %r1, dynamic;
    mov.u32 %r2, tile;
    sub.u32 %r3, %r1, %r2;
    st.shared.u32 [%r1+60], %r3;
    ld.shared.u32 %r4, [%r1+60];
    st.global.u32 [%d0], %r4;
"""
    out = np.zeros(1, np.uint32)
    ptx = kernel(body, shared=100, module=module)
    assert run(ptx, out, block=1, dynamic_shared=64).verdict is Verdict.CLEAN
    assert out[0] == 112
    assert run(ptx, out, block=1, dynamic_shared=32).findings[0].kind == "out-of-bounds"


def test_types_that_numpy_borrows() -> None:
    body = "ld.global.b16 %h1, [%d0]; st.global.b16 [%d0+2], %h1;"
    array = np.array([1.5, 0.0], ml_dtypes.bfloat16)
    assert run(kernel(body), array, block=1).verdict is Verdict.CLEAN
    assert array[1] == 1.5


def test_a_timeline_is_written(tmp_path) -> None:
    import json

    trace = tmp_path / "trace.json"
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    report = run(DOUBLE_KERNEL, x, y, np.uint32(64), block=64, trace=trace)
    assert report.model_cycles is not None
    document = json.loads(trace.read_text())
    assert {event["ph"] for event in document["traceEvents"]} >= {"X", "M"}


POINTERS = """
.global .align 8 .b8 table[64];
.global .align 8 .u64 places[2] = {table+8, generic(table)+16};
"""


def test_initial_addresses_count_what_is_added_to_them() -> None:
    body = """
        mov.u64 %d1, table; ld.global.u64 %d2, [places]; ld.global.u64 %d3, [places+8];
        sub.u64 %d2, %d2, %d1; sub.u64 %d3, %d3, %d1;
        st.global.u64 [%d0], %d2; st.global.u64 [%d0+8], %d3;
    """
    out = np.zeros(2, np.uint64)
    run(kernel(body, module=POINTERS), out, block=1)
    assert out.tolist() == [8, 16]


def test_variables_come_from_arrays_and_go_back() -> None:
    body = """
        mov.u64 %d1, count; st.global.u64 [%d0], %d1;
        ld.global.u32 %r1, [count]; add.u32 %r1, %r1, 2; st.global.u32 [count], %r1;
    """
    program = Program(kernel(body, module=".global .align 4 .u32 count = 5;"))
    out, count = np.zeros(1, np.uint64), np.array([40], np.int32)
    address = FIXED_BASE + 0x1000
    for expected in (42, 44):
        report = program.launch(
            args=[out], block=1, variables={"count": Memory(count, address=address)}
        )
        assert report.verdict is Verdict.CLEAN
        assert (count[0], out[0]) == (expected, address)
    program.launch(args=[out], block=1, variables={"count": Memory(count)})
    assert count[0] == 46
    assert out[0] < FIXED_BASE
    for wrong, message in (
        ({"cont": Memory(count)}, "no global variable is called 'cont'; there is count"),
        ({"count": Memory(np.zeros(2))}, "a variable of 4 bytes was given an array of 16"),
        ({"count": Memory(count, address=64)}, "can be chosen"),
    ):
        with pytest.raises(LaunchError, match=message):
            program.launch(args=[out], block=1, variables=wrong)
