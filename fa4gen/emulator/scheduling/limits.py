"""What a caller may say of the schedule: its policy, and where a launch is cut short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCHEDULES: Final = ("uniform", "priority", "starve", "eager", "lazy")


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a launch is cut short: steps in all, and steps without any visible effect."""

    steps: int = 200_000_000
    idle_steps: int = 1_000_000
