"""Branches that warps take as one: found behind what lies between, and counted by warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator.coverage.counts import RingUse, VoteCoverage
from tests.emulator.kernel import kernel, run

# Warps vote in p0 rounds on whether a thread of theirs has the round's number.
BODY = """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
LOOP:
    setp.ge.u32 %p1, %r2, %r0;
    @%p1 bra END;
    setp.eq.u32 %p2, %r1, %r2;
    setp.eq.u32 %p3, %r2, 1;
    vote.sync.any.pred %p4, %p2, 0xffffffff;
    {branch}
    bra NEXT;
WORK:
    add.u32 %r3, %r3, 1;
NEXT:
    add.u32 %r2, %r2, 1;
    bra LOOP;
END:
"""


def voted(branch: str, rounds: int, **options: Any) -> tuple[VoteCoverage, ...]:
    report = run(kernel(BODY.replace("{branch}", branch), ("u32",)), np.uint32(rounds), **options)
    assert not report.findings, str(report)
    return report.coverage.votes


@pytest.mark.parametrize(
    ("branch", "taken", "skipped"),
    [
        ("@%p4 bra WORK;", 5, 5),
        ("not.pred %p5, %p4; @!%p5 bra WORK;", 5, 5),
        ("@!%p4 bra NEXT; bra WORK;", 5, 5),
        ("not.pred %p5, %p4; @%p5 bra NEXT; bra WORK;", 5, 5),
        # a condition more: work that the vote asks for is not done in round 1, nor counted
        ("not.pred %p5, %p3; and.pred %p6, %p4, %p5; @%p6 bra WORK;", 4, 5),
        ("not.pred %p5, %p4; or.pred %p6, %p5, %p3; @%p6 bra NEXT; bra WORK;", 4, 5),
    ],
)
@pytest.mark.parametrize("checks", [True, False])
def test_warps_that_work_and_warps_whose_vote_failed(
    branch: str, taken: int, skipped: int, checks: bool
) -> None:
    # 5 rounds: of two warps the first has all five numbers, the second none
    [found] = voted(branch, 5, block=64, checks=checks)
    assert (found.taken, found.skipped) == (taken, skipped)
    assert found.where.startswith("PTX line")


def test_both_warps_of_a_block_and_all_ctas_count() -> None:
    [found] = voted("@%p4 bra WORK;", 40, block=64, grid=3)
    assert (found.taken, found.skipped) == (3 * 40, 3 * 40)


def test_other_branches_are_no_votes() -> None:
    assert not voted("@%p2 bra WORK;", 5)
    # written twice: which of both is meant is not known
    assert not voted("@%p3 mov.pred %p4, 1; @%p4 bra WORK;", 5)


def test_counts_are_those_of_the_launch_that_has_most() -> None:
    few, many = VoteCoverage(7, "x", "", 2, 9), VoteCoverage(7, "x", "", 3, 4)
    assert few | many == many | few == VoteCoverage(7, "x", "", 3, 9)
    with pytest.raises(ValueError, match="no merge"):
        few | VoteCoverage(8, "y")
    with pytest.raises(ValueError, match="do not merge"):
        RingUse("a", 1, 2) | RingUse("b", 1, 2)
