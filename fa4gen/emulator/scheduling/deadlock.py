"""The report of a deadlock: the waiting threads, their barriers, and the missing arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.lanes import WARPGROUP
from fa4gen.emulator.state.registers import WARP_LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.scheduling.lane_states import Parked
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.state.machine import Machine, Warpgroup
    from fa4gen.emulator.translate.steps import Step


@dataclass(frozen=True, slots=True)
class Standstill:
    """A launch in which no thread can go on.

    ``parked`` threads wait for something; those of ``joining`` are at a step that the rest of their
    warp has not reached.
    """

    machine: Machine
    instructions: Sequence[Instruction]
    steps: Sequence[Step]
    parked: Sequence[Parked]
    joining: Sequence[tuple[Warpgroup, Step, Lanes]]


def report_deadlock(at: Standstill) -> None:
    """Record one finding per group of waiting threads, the cause before its victims.

    Threads at an instruction that their warp executes together, and that the rest of the warp has
    not reached, come as ``partial-warp``. They are victims where the rest waits for a barrier, and
    the cause where it does not.
    """
    partial = [(*place, _rest_waits(at, *place)) for place in at.joining]
    for wg, step, lanes, victim in partial:
        if not victim:
            _report_partial(at, wg, step, lanes)
    for parked in at.parked:
        end = at.steps[parked.step].end
        assert end is not None
        who = at.machine.who(parked.wg, parked.wait.lanes.mask)
        at.machine.log.add(
            "deadlock",
            Severity.ERROR,
            parked.wait.reason(),
            end,
            who,
            cta=parked.wg.cta.index,
            apart=who,
        )
    for wg, step, lanes, victim in partial:
        if victim:
            _report_partial(at, wg, step, lanes)


def _report_partial(at: Standstill, wg: Warpgroup, step: Step, lanes: Lanes) -> None:
    site = at.instructions[min(step.start, len(at.instructions) - 1)]
    unit = "warpgroup" if step.joint == WARPGROUP else "warp"
    at.machine.find(
        "partial-warp",
        f"{site.text} is executed by {lanes.count(wg)} threads only: the others of the "
        f"{unit} {_elsewhere(at, wg)}",
        site,
        wg,
        lanes.mask,
    )


def _rest_waits(at: Standstill, wg: Warpgroup, step: Step, lanes: Lanes) -> bool:
    """Whether threads of the same warp, or warpgroup, wait for a barrier."""
    size = wg.lanes if step.joint == WARPGROUP else WARP_LANES
    here = set(np.flatnonzero(lanes.array(wg)) // size)
    return any(
        here & set(np.flatnonzero(parked.wait.lanes.array(wg)) // size)
        for parked in at.parked
        if parked.wg is wg
    )


def _elsewhere(at: Standstill, wg: Warpgroup) -> str:
    """The steps where the other lanes of a warpgroup are."""
    places = [
        f"wait at {end.text} ({end.position})"
        for parked in at.parked
        if parked.wg is wg and (end := at.steps[parked.step].end) is not None
    ]
    others = [
        f"stand at {at.instructions[step.start].text} ({at.instructions[step.start].position})"
        for other, step, _ in at.joining
        if other is wg
    ]
    found = [*places, *(others if len(others) > 1 else [])]
    return "; ".join(dict.fromkeys(found)) if found else "have left"
