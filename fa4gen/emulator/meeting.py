"""Which lanes of a warp have met at an instruction that they execute together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fa4gen.emulator.code import Code, Step
from fa4gen.emulator.gang import WARP_LANES, Gang
from fa4gen.emulator.lanes import GANG, Lanes
from fa4gen.emulator.report import Severity


def complete_lanes(
    gang: Gang, lanes: Lanes, members: object | None
) -> tuple[Lanes | None, Lanes | None]:
    """Split lanes into those whose partners are all there and the rest.

    ``members`` holds the membermask of each lane (or one for all); None stands for the whole warp.
    Lanes that have left are not waited for.
    """
    here = lanes.array(gang)
    ready = np.zeros(gang.lanes, np.bool_)
    values = None if members is None else np.broadcast_to(np.asarray(members), gang.lanes)
    for warp in range(gang.warps):
        first = warp * WARP_LANES
        stop = min(first + WARP_LANES, gang.lanes)
        present = here[first:stop]
        if not present.any():
            continue
        alive = gang.live[first:stop]
        if values is None:
            ready[first:stop] = present & bool((present == alive).all())
            continue
        for value in {int(values[first + lane]) for lane in np.flatnonzero(present)}:
            wanted = (value >> np.arange(stop - first) & 1).astype(np.bool_) & alive
            same = present & (values[first:stop] == value)
            if (same >= wanted).all():
                ready[first:stop] |= same
    rest = here & ~ready
    return (
        Lanes.of(ready) if ready.any() else None,
        Lanes.of(rest) if rest.any() else None,
    )


def at_copies(
    gang: Gang, step: Step, lanes: Lanes, joint: Mapping[int, Lanes], code: Code
) -> tuple[bool, list[tuple[Step, Lanes]]]:
    """Whether a warpgroup has met at several copies of one setmaxnreg, and the others there.

    The PTX ISA asks all warps for the same instruction. Compilers that give each role its own code
    give it its own copy, which works as each warp reallocates for itself: for review. Who has met
    may wait for registers after that: ``gang.state["met"]`` keeps the copies until they are done.
    """
    end = step.end
    if end is None or end.opcode != "setmaxnreg":
        return False, []
    met: set[int] = gang.state.setdefault("met", set())
    if end.line in met:
        return True, []
    others = [
        (other, there)
        for index, there in joint.items()
        if (other := code.steps[index]).end is not None
        and (other.end.text, other.end.operands) == (end.text, end.operands)
    ]
    everyone = lanes
    for _, there in others:
        everyone = everyone.join(there)
    if not others or everyone.level(gang) < GANG:
        return False, []
    met.update((end.line, *(other.end.line for other, _ in others if other.end is not None)))
    gang.machine.find(
        "partial-warp",
        "the warps of a warpgroup execute setmaxnreg at different places",
        end,
        gang,
        lanes.mask,
        Severity.REVIEW,
    )
    return True, others
