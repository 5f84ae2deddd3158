"""The report of a deadlock: who waits, for what, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.gang import WARP_LANES
from fa4gen.emulator.state.lanes import GANG

if TYPE_CHECKING:
    from fa4gen.emulator.scheduling.scheduler import Scheduler
    from fa4gen.emulator.state.gang import Gang
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.translate.steps import Step


def report_deadlock(scheduler: Scheduler) -> None:
    """Record one finding per group of waiting threads, the cause before its victims.

    Threads at an instruction that their warp executes together, and that the rest of the warp has
    not reached, come as ``partial-warp``. They are victims where the rest waits for a barrier, and
    the cause where it does not.
    """
    partial = [(*place, _rest_waits(scheduler, *place)) for place in scheduler.joining()]
    for gang, step, lanes, victim in partial:
        if not victim:
            _report_partial(scheduler, gang, step, lanes)
    for parked in scheduler.parked():
        end = scheduler.code.steps[parked.step].end
        assert end is not None
        who = scheduler.machine.who(parked.gang, parked.wait.lanes.mask)
        scheduler.machine.log.add(
            "deadlock",
            Severity.ERROR,
            parked.wait.reason(),
            end,
            who,
            cta=parked.gang.cta.index,
            apart=who,
        )
    for gang, step, lanes, victim in partial:
        if victim:
            _report_partial(scheduler, gang, step, lanes)


def _report_partial(scheduler: Scheduler, gang: Gang, step: Step, lanes: Lanes) -> None:
    site = scheduler.code.instructions[min(step.start, len(scheduler.code.instructions) - 1)]
    unit = "warpgroup" if step.joint == GANG else "warp"
    scheduler.machine.find(
        "partial-warp",
        f"{site.text} is executed by {lanes.count(gang)} threads only: the others of the "
        f"{unit} {_elsewhere(scheduler, gang)}",
        site,
        gang,
        lanes.mask,
    )


def _rest_waits(scheduler: Scheduler, gang: Gang, step: Step, lanes: Lanes) -> bool:
    """Whether threads of the same warp, or warpgroup, wait for a barrier."""
    size = gang.lanes if step.joint == GANG else WARP_LANES
    here = set(np.flatnonzero(lanes.array(gang)) // size)
    return any(
        here & set(np.flatnonzero(parked.wait.lanes.array(gang)) // size)
        for parked in scheduler.parked()
        if parked.gang is gang
    )


def _elsewhere(scheduler: Scheduler, gang: Gang) -> str:
    """Where the other lanes of a gang are."""
    places = [
        f"wait at {end.text} ({end.where})"
        for parked in scheduler.parked()
        if parked.gang is gang and (end := scheduler.code.steps[parked.step].end) is not None
    ]
    others = [
        f"stand at {scheduler.code.instructions[step.start].text} "
        f"({scheduler.code.instructions[step.start].where})"
        for other, step, _ in scheduler.joining()
        if other is gang
    ]
    found = [*places, *(others if len(others) > 1 else [])]
    return "; ".join(dict.fromkeys(found)) if found else "have left"
