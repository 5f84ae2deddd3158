"""The report of a deadlock: who waits, for what, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.lanes import GANG
from fa4gen.emulator.report import Finding, Severity

if TYPE_CHECKING:
    from fa4gen.emulator.gang import Gang
    from fa4gen.emulator.scheduler import Scheduler


def report_deadlock(scheduler: Scheduler) -> None:
    """Record one finding per group of waiting threads.

    Threads at an instruction that their warp executes together, and that the rest of the warp has
    not reached, are the cause rather than a victim: they come as ``partial-warp``.
    """
    machine = scheduler.machine
    for gang, step, lanes in scheduler.joining():
        site = scheduler.code.instructions[min(step.start, len(scheduler.code.instructions) - 1)]
        unit = "warpgroup" if step.joint == GANG else "warp"
        machine.find(
            "partial-warp",
            f"{site.text} is executed by {lanes.count(gang)} threads only: the others of the "
            f"{unit} {_elsewhere(scheduler, gang)}",
            site,
            gang,
            lanes.mask,
        )
    for parked in scheduler.parked():
        end = scheduler.code.steps[parked.step].end
        assert end is not None
        machine.log.add(
            Finding(
                "deadlock",
                Severity.ERROR,
                parked.wait.reason(),
                end.where,
                end.line,
                machine.who(parked.gang, parked.wait.lanes.mask),
            )
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
