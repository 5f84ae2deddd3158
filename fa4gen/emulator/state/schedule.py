"""The interface of the scheduler for the machine and the instructions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol


class Schedule(Protocol):
    """Wakes lanes that wait under a key."""

    instructions: int
    """Executed so far, by all threads."""

    def wake(self, key: Hashable) -> None:
        """Lanes that wait for ``key`` execute their instruction again."""

    def waiting_at(self, key: Hashable) -> bool:
        """Whether lanes wait for ``key``."""

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Take the next cluster off the grid: its first CTA, or None."""
