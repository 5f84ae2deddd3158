"""The coverage of a launch: hand-counted on small kernels, and merges of coverages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.emulator import NamedRange, NamedThreads, Names
from fa4gen.emulator.coverage.counts import (
    BarrierCoverage,
    BranchCoverage,
    Coverage,
    RingUse,
    Unrun,
    VoteCoverage,
    merge,
)
from tests.emulator.kernel import REGISTERS, kernel, run

# A ring of two slots that one warp goes round: p0 uses, one after the other.
RING = """
    mov.u32 %r10, tile;
    mov.u32 %r11, %tid.x;
    setp.ne.u32 %p0, %r11, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [%r10], 32;
    mbarrier.init.shared.b64 [%r10 + 8], 32;
READY:
    bar.sync 3;
    mov.u32 %r12, 0;
LOOP:
    setp.ge.u32 %p1, %r12, %r0;
    @%p1 bra DONE;
    and.b32 %r13, %r12, 1;
    shl.b32 %r14, %r13, 3;
    add.u32 %r14, %r14, %r10;
    shr.u32 %r15, %r12, 1;
    and.b32 %r15, %r15, 1;
    mbarrier.arrive.shared.b64 _, [%r14];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r14], %r15;
    @%p2 bra PASSED;
    bra WAIT;
PASSED:
    add.u32 %r12, %r12, 1;
    bra LOOP;
DONE:
    setp.gt.u32 %p3, %r12, 99;
    @%p3 bra TRAP;
    setp.gt.u32 %p4, %r12, 5;
    @%p4 mov.u32 %r20, 7;
    @!%p4 bra END;
    mov.u32 %r21, 1;
    bra END;
TRAP:
    mov.u32 %r22, 1;
    trap;
END:
"""
NAMES = Names((NamedRange("ring_full", 0, 16, 8),), (NamedThreads("worker", 0, 32),))


def ring(uses: int, **options: Any) -> Coverage:
    report = run(
        kernel(RING, ("u32",), shared=16), np.uint32(uses), names=NAMES_OF_STATIC, **options
    )
    assert not report.findings, str(report)
    return report.coverage


# Static shared memory is before the dynamic one that names count from.
NAMES_OF_STATIC = Names((NamedRange("ring_full", -16, 0, 8),), NAMES.roles, base_align=16)


@pytest.mark.parametrize(("uses", "phases"), [(0, (0, 0)), (3, (2, 1)), (6, (3, 3))])
@pytest.mark.parametrize("checks", [True, False])
def test_phases_of_each_slot(uses: int, phases: tuple[int, int], checks: bool) -> None:
    found = ring(uses, checks=checks)
    assert [one.phases for one in found.barriers] == list(phases)
    assert [one.passed for one in found.barriers] == list(phases)
    assert [one.name for one in found.barriers] == ["ring_full[0]", "ring_full[1]"]
    assert [(one.name, one.phases) for one in found.rings()] == [("ring_full", min(phases))]
    assert found.named == (3,)
    assert (found.clusters, found.ctas, found.cancelled) == (1, 1, 0)


def test_branches_taken_and_not() -> None:
    found = {one.where: one for one in ring(3).branches}
    lines = RING_LINES
    first = found[lines["@%p0 bra READY"]]
    assert (first.taken, first.passed, first.covered) == (True, True, True)
    over = found[lines["@!%p4 bra END"]]
    assert (over.taken, over.passed, over.covered) == (True, False, False)
    assert over.roles == ("worker",)
    # no way from there but to trap: that side is not asked for
    trap = found[lines["@%p3 bra TRAP"]]
    assert (trap.taken, trap.expects, trap.covered) == (False, (False, True), True)
    # a wait that gives up is the hardware's choice
    wait = found[lines["@%p2 bra PASSED"]]
    assert wait.expects == (True, False)
    assert wait.covered
    assert len(found) == 5


def test_what_never_ran() -> None:
    few, many = ring(3), ring(6)
    lines = RING_LINES
    never = [lines["@%p4 mov.u32 %r20, 7"], lines["mov.u32 %r21, 1"]]
    assert few.lines_never_run() == tuple(never)
    assert not many.lines_never_run()
    assert few.one_sided()
    assert [one.where for one in many.one_sided()] == [lines["@!%p4 bra END"]]
    both = few | many
    assert not both.one_sided()
    assert both.num_covered == len(both.branches) == 5
    assert not both.unrun
    # not counted: the two instructions of the trap, and three jumps
    assert both.instructions == TEXT.count(";") - _DIRECTIVES - 5


_DIRECTIVES = REGISTERS.count(";") + 1  # and that of the shared memory
TEXT = kernel(RING, ("u32",), shared=16)


class _Lines(dict[Any, str]):
    """``PTX line N`` of a statement, or of the statement ``[1]`` after it."""

    def __missing__(self, key: Any) -> str:
        text, more = key if isinstance(key, tuple) else (key, 0)
        for number, line in enumerate(TEXT.splitlines(), 1):
            if text in line:
                return f"PTX line {number + more}"
        raise KeyError(key)


RING_LINES = _Lines()


def test_a_barrier_that_is_invalidated_keeps_what_it_saw() -> None:
    body = RING.replace(
        "DONE:\n",
        "DONE:\n bar.sync 3;\n @%p0 bra KEPT;\n mbarrier.inval.shared.b64 [%r10];\nKEPT:\n",
    )
    report = run(kernel(body, ("u32",), shared=16), np.uint32(5))
    assert [one.phases for one in report.coverage.barriers] == [3, 2]
    assert [(one.least, one.most) for one in report.coverage.uses if one.name == "tile"] == [(3, 3)]


def test_the_cta_that_saw_most_counts() -> None:
    body = RING.replace("mov.u32 %r12, 0;", "mov.u32 %r12, %ctaid.x; shl.b32 %r12, %r12, 1;")
    body = body.replace("shr.u32 %r15, %r12, 1;", "mov.u32 %r16, %ctaid.x; shr.u32 %r15, %r12, 1;"
                        " sub.u32 %r15, %r15, %r16;")  # fmt: skip
    report = run(kernel(body, ("u32",), shared=16), np.uint32(6), grid=3, names=NAMES_OF_STATIC)
    assert not report.findings, str(report)
    assert [one.phases for one in report.coverage.barriers] == [3, 3]
    assert report.coverage.clusters == 3
    # 6, 4 and 2 rounds in the three CTAs: of each its phases of both slots
    assert report.coverage.uses == (RingUse("ring_full", 2, 6),)


def test_a_run_that_hangs_has_its_coverage() -> None:
    body = RING.replace("shared.b64 [%r10 + 8], 32", "shared.b64 [%r10 + 8], 33")
    report = run(kernel(body, ("u32",), shared=16), np.uint32(6))
    assert report.findings[0].kind == "deadlock"
    assert [one.phases for one in report.coverage.barriers] == [1, 0]
    assert report.coverage.barriers[1].parked > 0


def test_guards_of_joint_instructions_and_returns() -> None:
    body = """
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bar.sync 1, 32;
    setp.gt.u32 %p2, %r1, 99;
    @%p2 ret;
    """
    found = run(kernel(body, ()), block=64).coverage
    assert [(one.taken, one.passed) for one in found.branches] == [(True, True), (False, True)]
    assert found.named == (1,)
    assert len(found.lines_never_run()) == 1


def test_jumps_by_table_count_by_what_ran() -> None:
    body = """
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 1;
    WAYS: .branchtargets A, B, C;
    brx.idx %r1, WAYS;
A:  bra END;
B:  bra END;
C:  mov.u32 %r3, 1;
END:
    """
    found = run(kernel(body, ())).coverage
    assert not found.branches
    assert len(found.lines_never_run()) == 1


# ---- merging

NAME = st.sampled_from(["a[0]", "a[1]", "b"])
OFFSETS = {"a[0]": 0, "a[1]": 8, "b": 16}
COUNT = st.integers(0, 5)


@st.composite
def coverages(draw: st.DrawFn) -> Coverage:
    """Return coverages of one kernel with three branches and six instructions on three lines."""
    names = sorted(draw(st.sets(NAME)))
    ran = draw(st.sets(st.integers(0, 5)))
    return Coverage(
        "k",
        tuple(
            BarrierCoverage(OFFSETS[name], name, draw(COUNT), draw(COUNT), draw(COUNT))
            for name in names
        ),
        tuple(
            BranchCoverage(
                line,
                f"k.cu:{line}",
                "",
                draw(st.booleans()),
                draw(st.booleans()),
                tuple(sorted(draw(st.sets(st.sampled_from(["load", "mma"]))))),
                (line != 2, True),
            )
            for line in (1, 2, 3)
        ),
        tuple(Unrun(i, f"k.cu:{i // 2}", "", 2) for i in range(6) if i not in ran),
        tuple(range(6)),
        draw(COUNT),
        draw(COUNT),
        draw(COUNT),
        tuple(sorted(draw(st.sets(COUNT)))),
        (VoteCoverage(5, "k.cu:5", "", draw(COUNT), draw(COUNT)),),
        tuple(
            RingUse(name, *sorted((draw(COUNT), draw(COUNT))))
            for name in sorted(draw(st.sets(NAME)))
        ),
    )


@given(coverages(), coverages(), coverages())
def test_order_and_repetition_of_runs_make_no_difference(
    a: Coverage, b: Coverage, c: Coverage
) -> None:
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert a | a == a
    assert merge([a, b, c]) == a | b | c


@given(coverages(), coverages())
def test_a_merge_has_what_either_has(a: Coverage, b: Coverage) -> None:
    both = a | b
    assert both.num_covered >= max(a.num_covered, b.num_covered)
    assert set(both.lines_never_run()) <= set(a.lines_never_run()) & set(b.lines_never_run())
    for one in (a, b):
        phases = {barrier.name: barrier.phases for barrier in both.barriers}
        assert all(phases[barrier.name] >= barrier.phases for barrier in one.barriers)


def test_coverages_of_different_kernels_do_not_merge() -> None:
    with pytest.raises(ValueError, match="do not merge"):
        Coverage("a") | Coverage("b")
    assert merge([]) is None
