"""mbarrier objects: their state, eight bytes of shared memory in PTX (PTX ISA, "mbarrier")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction

MAX_COUNT: Final = (1 << 20) - 1


@dataclass(slots=True, eq=False)
class Phases:
    """The counts of one barrier.

    ``expected`` arrivals a phase, ``pending`` ones of this phase, and ``transactions``: bytes still
    to come, negative when they came before they were expected. ``clock`` belongs to the checks.
    ``last`` names the last arrival, once it is made a string. ``passes`` counts waits that passed,
    ``parks`` those that had to wait.
    """

    offset: int
    expected: int
    pending: int
    transactions: int = 0
    phase: int = 0
    last: object = "nobody"
    clock: Any = None
    complete_time: float = 0.0
    pending_time: float = 0.0
    site: Instruction | None = None
    passes: int = 0
    parks: int = 0

    def passed(self, parity: int) -> bool:
        """Whether a wait for ``parity`` succeeds: the phase of that parity is over."""
        return (self.phase & 1) != parity

    def expect(self, count: int) -> None:
        """expect-tx: more bytes to come."""
        self.transactions += count
        self._settle()

    def arrive(self, count: int, who: object) -> None:
        """Count arrivals; the caller has checked that they are not too many."""
        self.pending -= count
        self.last = who
        self._settle()

    def drop(self, count: int, who: object) -> None:
        """Arrive, and expect ``count`` fewer arrivals from the next phase on."""
        self.expected -= count
        self.arrive(count, who)

    def complete_transaction(self, count: int, who: object) -> None:
        """complete-tx: bytes have come."""
        self.transactions -= count
        self.last = who
        self._settle()

    def _settle(self) -> None:
        if self.pending == 0 and self.transactions == 0:
            self.phase += 1
            self.pending = self.expected
            self.complete_time, self.pending_time = self.pending_time, 0.0
            self.completed()

    def completed(self) -> None:
        """A phase has completed."""
        raise NotImplementedError
