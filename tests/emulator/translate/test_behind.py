"""By which sides of branches every way to an instruction leads."""

from __future__ import annotations

import numpy as np

from tests.emulator.kernel import kernel, run

BODY = """
    setp.gt.u32 %p0, %r0, 7;
    @%p0 bra FAR;
    mov.u32 %r10, 1;
    setp.gt.u32 %p1, %r0, 8;
    @!%p1 bra JOIN;
    mov.u32 %r11, 2;
AGAIN:
    add.u32 %r11, %r11, 1;
    setp.lt.u32 %p2, %r11, %r0;
    @%p2 bra AGAIN;
    mov.u32 %r12, 3;
    bra JOIN;
FAR:
    mov.u32 %r13, 4;
JOIN:
    mov.u32 %r14, 5;
"""
TEXT = kernel(BODY, ("u32",))


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(TEXT.splitlines(), 1) if text in line)


def test_what_did_not_run_is_behind_the_sides_that_lead_there() -> None:
    """With 1 as the argument the first branch is not taken, and the second one is."""
    found = run(TEXT, np.uint32(1)).coverage
    behind = {one.line: one.behind for one in found.unrun}
    first, second, loop = map(line_of, ("@%p0 bra FAR", "@!%p1 bra JOIN", "@%p2 bra AGAIN"))
    assert behind == {
        line_of("mov.u32 %r11, 2"): ((second, False), (first, False)),
        # a loop is entered from before it, and again from within
        line_of("add.u32 %r11"): ((second, False), (first, False)),
        line_of("setp.lt.u32"): ((second, False), (first, False)),
        loop: ((second, False), (first, False)),
        line_of("mov.u32 %r12, 3"): ((loop, False), (second, False), (first, False)),
        line_of("mov.u32 %r13, 4"): ((first, True),),
    }


def test_a_side_that_others_lead_to_as_well_is_none() -> None:
    found = run(TEXT, np.uint32(9)).coverage
    behind = {one.line: one.behind for one in found.unrun}
    first = line_of("@%p0 bra FAR")
    assert behind[line_of("mov.u32 %r10, 1")] == ((first, False),)
    assert line_of("mov.u32 %r14, 5") not in behind
