"""Exchanges within a warp, against plain loops over lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.emulator import Report
from tests.emulator.kernel import launch

FULL = 0xFFFFFFFF


def results(
    body: str, lanes: int, values: np.ndarray, target: str = "sm_90a", expect: str = "clean"
) -> np.ndarray:
    """Run ``body`` with the lane's value in %r1; it leaves results in %r2 and %r3."""
    found, report = report_of(body, lanes, values, target)
    assert report.verdict.value == expect, report
    return found


def report_of(
    body: str, lanes: int, values: np.ndarray, target: str = "sm_90a"
) -> tuple[np.ndarray, Report]:
    out = np.full((lanes, 2), 0xDEADBEEF, np.uint32)
    text = f"""
    mov.u32 %r10, %tid.x;
    mul.wide.u32 %d2, %r10, 4; add.u64 %d2, %d0, %d2;
    mul.wide.u32 %d3, %r10, 8; add.u64 %d3, %d1, %d3;
    ld.global.b32 %r1, [%d2];
    mov.b32 %r2, 0; mov.b32 %r3, 0;
    {body}
    st.global.v2.b32 [%d3], {{%r2, %r3}};
    """
    report = launch(text, values.view(np.uint32), out, target=target, block=lanes)
    return out, report


def shuffled(mode: str, a: np.ndarray, b: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """The rule of PTX, lane by lane; only for whole warps."""
    result, inside = a.copy(), np.zeros(len(a), np.uint32)
    for at in range(len(a)):
        lane, first = at % 32, at - at % 32
        clamp, segment = c & 31, c >> 8 & 31
        low = lane & segment
        high = low | (clamp & ~segment)
        source = {
            "up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment),
        }[mode]  # fmt: skip
        if source >= high if mode == "up" else source <= high:
            result[at], inside[at] = a[first + source], 1
    return result, inside


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["up", "down", "bfly", "idx"]),
    st.integers(0, 31),
    st.sampled_from([0x1F, 0, 0x181F, 0x1C1F, 0x1800, 0x1E1E]),
    st.booleans(),
)
def test_shfl(mode: str, b: int, c: int, registers: bool) -> None:
    a = np.arange(100, 164, dtype=np.uint32)
    operands = f"{b}, {c}"
    if registers:
        operands = f"%r5, %r6; mov.b32 %r5, {b}; mov.b32 %r6, {c}"
    head, _, tail = operands.partition(";")
    body = f"""{tail}{";" if tail else ""}
    shfl.sync.{mode}.b32 %r2|%p1, %r1, {head}, -1; selp.u32 %r3, 1, 0, %p1;"""
    wanted, inside = shuffled(mode, a, b, c)
    found = results(body, 64, a)
    np.testing.assert_array_equal(found[:, 0], wanted)
    np.testing.assert_array_equal(found[:, 1], inside)


def test_shfl_of_an_absent_lane_is_remarked() -> None:
    a = np.arange(16, dtype=np.uint32)
    found, report = report_of("shfl.sync.down.b32 %r2, %r1, 8, 31, 0xffff;", 16, a)
    assert report.verdict.value == "review"
    assert report.findings[0].kind == "illegal-instruction"
    np.testing.assert_array_equal(found[:8, 0], a[8:])


def test_lane_outside_its_membermask() -> None:
    _, report = report_of("vote.sync.any.pred %p1, 1, 0xfffffffe;", 32, np.zeros(32, np.uint32))
    assert [(f.kind, f.severity.value) for f in report.findings] == [
        ("illegal-instruction", "error")
    ]
    assert "thread 0" in report.findings[0].who


def test_halves_of_a_warp_vote_apart() -> None:
    body = """
    setp.lt.u32 %p1, %r10, 16;
    selp.b32 %r4, 0xffff, 0xffff0000, %p1;
    setp.gt.u32 %p2, %r1, 5;
    vote.sync.ballot.b32 %r2, %p2, %r4;
    vote.sync.all.pred %p3, %p2, %r4;
    vote.sync.any.pred %p4, !%p2, %r4;
    vote.sync.uni.pred %p5, %p2, %r4;
    selp.u32 %r3, 1, 0, %p3; @%p4 add.u32 %r3, %r3, 2; @%p5 add.u32 %r3, %r3, 4;
    """
    found = results(body, 32, np.arange(32, dtype=np.uint32))
    np.testing.assert_array_equal(found[:16, 0], 0xFFC0)
    np.testing.assert_array_equal(found[16:, 0], 0xFFFF0000)
    np.testing.assert_array_equal(found[:16, 1], 2)
    np.testing.assert_array_equal(found[16:, 1], 5)


def test_ballot_of_a_short_last_warp() -> None:
    body = "setp.ne.u32 %p2, %r1, 3; vote.sync.ballot.b32 %r2, %p2, -1; activemask.b32 %r3;"
    found = results(body, 40, np.full(40, 1, np.uint32))
    np.testing.assert_array_equal(found[:32, 0], FULL)
    np.testing.assert_array_equal(found[32:], 0xFF)


def test_activemask_of_a_branch() -> None:
    body = "setp.lt.u32 %p1, %r1, 5; @!%p1 bra SKIP; activemask.b32 %r2; SKIP:"
    found = results(body, 32, np.arange(32, dtype=np.uint32))
    np.testing.assert_array_equal(found[:5, 0], 0x1F)


@pytest.mark.parametrize("members", [FULL, 0xFFFFFFE0, 0xAAAAAAAA])
def test_elect(members: int) -> None:
    body = f"""
    shr.u32 %r4, {members}, %r1; and.b32 %r4, %r4, 1; setp.eq.u32 %p2, %r4, 0;
    @%p2 bra SKIP;
    elect.sync %r2|%p1, {members}; selp.u32 %r3, 1, 0, %p1;
    SKIP:"""
    found = results(body, 32, np.arange(32, dtype=np.uint32))
    leader = {FULL: 0, 0xFFFFFFE0: 5, 0xAAAAAAAA: 1}[members]
    np.testing.assert_array_equal(np.flatnonzero(found[:, 1]), [leader])
    assert found[leader, 0] == leader


@pytest.mark.parametrize("wide", [False, True])
def test_match_any(wide: bool) -> None:
    a = np.array([7, 7, 9, 1] * 16, np.uint32)
    a[40] = 5
    form = (
        "cvt.u64.u32 %d5, %r1; shl.b64 %d5, %d5, 32; match.any.sync.b64 %r2, %d5, -1;"
        if wide
        else "match.any.sync.b32 %r2, %r1, -1;"
    )
    found = results(form, 64, a)
    for lane in range(64):
        warp = a[lane - lane % 32 :][:32]
        assert found[lane, 0] == sum(1 << j for j in range(32) if warp[j] == a[lane])


def test_match_all() -> None:
    a = np.array([4] * 32 + [4] * 31 + [5], np.uint32)
    body = "match.all.sync.b32 %r2|%p1, %r1, -1; selp.u32 %r3, 1, 0, %p1;"
    found = results(body, 64, a)
    np.testing.assert_array_equal(found[:32], [[FULL, 1]] * 32)
    np.testing.assert_array_equal(found[32:], 0)


REDUCTIONS = {
    "add.u32": lambda x: np.add.reduce(x, dtype=np.uint32),
    "add.s32": lambda x: np.add.reduce(x, dtype=np.uint32),
    "min.u32": np.min,
    "max.u32": np.max,
    "min.s32": lambda x: x.view(np.int32).min().view(np.uint32),
    "max.s32": lambda x: x.view(np.int32).max().view(np.uint32),
    "and.b32": np.bitwise_and.reduce,
    "or.b32": np.bitwise_or.reduce,
    "xor.b32": np.bitwise_xor.reduce,
}


@pytest.mark.parametrize("form", REDUCTIONS)
def test_redux(form: str) -> None:
    a = np.random.default_rng(3).integers(0, 1 << 32, 64, np.uint32)
    body = f"""redux.sync.{form} %r2, %r1, -1;
    and.b32 %r4, %r10, 4; setp.eq.u32 %p1, %r4, 0; selp.b32 %r4, 0x0f0f0f0f, 0xf0f0f0f0, %p1;
    redux.sync.{form} %r3, %r1, %r4;"""
    found = results(body, 64, a)
    reduce = REDUCTIONS[form]
    for lane in range(64):
        warp = a[lane - lane % 32 :][:32]
        assert found[lane, 0] == reduce(warp)
        assert found[lane, 1] == reduce(warp[np.arange(32) // 4 % 2 == lane // 4 % 2])


def test_redux_of_floats() -> None:
    a = np.linspace(-3, 4, 64, dtype=np.float32)
    a[3], a[40], a[41] = np.nan, -0.0, 0.0
    body = "redux.sync.min.f32 %r2, %r1, -1; redux.sync.max.abs.NaN.f32 %r3, %r1, -1;"
    found = results(body, 64, a, "sm_100a")
    np.testing.assert_array_equal(found[:, 0], np.repeat(a[[0, 40]].view(np.uint32), 32))
    np.testing.assert_array_equal(found[:32, 1], 0x7FFFFFFF)
    np.testing.assert_array_equal(found[32:, 1].view(np.float32), 4)
