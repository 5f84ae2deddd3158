"""Choices between two sizes: which are counted, and which of their values threads got."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator.coverage.counts import BranchCoverage
from tests.emulator.kernel import kernel, run


def choices(body: str, *numbers: int, **options: Any) -> list[BranchCoverage]:
    text = kernel(body, ("u32",) * len(numbers))
    report = run(text, *map(np.uint32, numbers), **options)
    assert not report.findings, str(report)
    return [one for one in report.coverage.branches if one.choice]


def sides(body: str, *numbers: int, **options: Any) -> list[tuple[str, bool, bool]]:
    return [(one.choice, one.taken, one.passed) for one in choices(body, *numbers, **options)]


@pytest.mark.parametrize(
    ("a", "b", "wanted"), [(3, 5, (True, False)), (5, 3, (False, True)), (4, 4, (False, False))]
)
def test_a_minimum_gives_the_first_or_the_second_and_equal_values_decide_nothing(
    a: int, b: int, wanted: tuple[bool, bool]
) -> None:
    assert sides("min.s32 %r9, %r0, %r1;", a, b) == [("min", *wanted)]
    assert sides("max.u32 %r9, %r0, %r1;", a, b) == [("max", *wanted[::-1])]
    # the destination may be an operand
    assert sides("min.u32 %r0, %r0, %r1;", a, b) == [("min", *wanted)]


def test_signs_count() -> None:
    assert sides("min.s32 %r9, %r0, %r1;", 0xFFFFFFFF, 1) == [("min", True, False)]
    assert sides("min.u32 %r9, %r0, %r1;", 0xFFFFFFFF, 1) == [("min", False, True)]


def test_lanes_that_do_not_take_part_are_not_counted() -> None:
    body = """
    mov.u32 %r8, %tid.x;
    setp.lt.u32 %p0, %r8, 4;
    @%p0 min.u32 %r9, %r8, 4;
    @!%p0 bra END;
    max.u32 %r10, %r8, 3;
END:
    """
    assert sides(body) == [("min", True, False), ("max", False, True)]


def test_both_values_in_one_launch_or_in_several() -> None:
    body = "mov.u32 %r8, %tid.x; min.u32 %r9, %r8, %r0;"
    assert sides(body, 16) == [("min", True, True)]
    (below,), (above,) = choices(body, 99), choices(body, 0, block=(64, 1, 1))
    assert (below.taken, below.passed) == (True, False)
    assert (above.taken, above.passed) == (False, True)
    assert (below | above).covered
    assert (below | above).choice == "min"


def test_selections_of_sizes_count_by_their_predicate() -> None:
    body = "setp.gt.u32 %p0, %r0, 7; selp.b32 %r9, %r1, 4, %p0; add.u32 %r9, %r9, 1;"
    assert sides(body, 9, 9) == [("selp", True, False)]
    assert sides(body, 1, 9) == [("selp", False, True)]


@pytest.mark.parametrize(
    "body",
    [
        "selp.b32 %r9, 1, 0, %p0;",
        "selp.f32 %r9, %r1, %r0, %p0;",
        "min.f32 %r9, %r1, %r0;",
        # data: moved on to another lane, or a float
        "selp.b32 %r9, %r1, %r0, %p0; mov.b32 %r8, %r9; shfl.sync.bfly.b32 %r7, %r8, 1, 31, -1;",
        "selp.b32 %r9, %r1, %r0, %p0; add.f32 %r8, %r9, %r9;",
    ],
)
def test_data_and_conditions_are_no_sizes(body: str) -> None:
    assert sides(f"setp.gt.u32 %p0, %r0, 7; {body}", 1, 2) == []


def test_results_are_the_same_in_long_runs() -> None:
    """Runs in which equal instructions are done at once leave choices out of that."""
    lines = [f"min.u32 %r{20 + i}, %r0, {i + 1};" for i in range(30)]
    lines += [f"add.u32 %r{60 + i}, %r{20 + i}, 1;" for i in range(30)]
    total = " ".join(f"add.u32 %r9, %r9, %r{60 + i};" for i in range(30))
    body = f"mov.u32 %r9, 0; {' '.join(lines)} {total} st.global.u32 [%d0], %r9;"
    out = np.zeros(1, np.uint32)
    report = run(kernel(body.replace("%r0", "%r1"), ("u64", "u32")), out, np.uint32(7), block=1)
    assert not report.findings, str(report)
    assert out[0] == sum(min(7, i + 1) + 1 for i in range(30))
    found = [one for one in report.coverage.branches if one.choice]
    assert [one.passed for one in found] == [i < 6 for i in range(30)]
    assert [one.taken for one in found] == [i > 6 for i in range(30)]
