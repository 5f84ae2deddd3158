"""The caller's choices for the schedule: its policy, and the limits that stop a launch."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fa4gen.emulator.report import FindingLog, Severity
from fa4gen.emulator.state.budget import Budget
from fa4gen.emulator.state.findings import Stop

SCHEDULES: Final = ("uniform", "priority", "starve", "eager", "lazy", "starve_warp")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a launch: steps in all, steps without any visible effect, memory.

    ``memory`` is in bytes, of the whole process; None is its use at the launch's beginning plus
    half of the memory that the machine then has free.
    """

    steps: int = 200_000_000
    idle_steps: int = 1_000_000
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches a launch of ``ctas`` CTAs; ``progress`` is called with (done, all).

    The reason for stopping a launch is a finding in ``log``.
    """

    limits: Limits
    budget: Budget
    log: FindingLog
    ctas: int
    progress: Callable[[int, int], None] | None

    def look(self, done: int) -> None:
        """Report that ``done`` CTAs have finished. Raises Stop above the limit of memory."""
        self.check_memory(done)
        if self.progress is not None:
            self.progress(done, self.ctas)

    def check_memory(self, done: int) -> None:
        """Raise Stop where the process uses more memory than it may."""
        why = self.budget.exceeded()
        if why:
            gc.collect()  # which otherwise happens at the end of a launch
            why = self.budget.exceeded()
        if why:
            message = (
                f"{why}: the launch was stopped after {done} of {self.ctas} CTAs; launch fewer, or"
                " allow more with max_memory"
            )
            self.log.add("memory-limit", Severity.INCOMPLETE, message, None, "the launch")
            raise Stop("memory-limit")
