"""mbarrier objects: what PTX keeps in eight bytes of shared memory (PTX ISA, "mbarrier")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.async_ops import AsyncOp
    from fa4gen.emulator.state.machine import Cta

MAX_COUNT: Final = (1 << 20) - 1


@dataclass(slots=True, eq=False)
class Mbarrier:
    """One barrier.

    ``expected`` arrivals a phase, ``pending`` ones of this phase, and ``transactions``: bytes still
    to come, negative when they came before they were expected. ``clock``
    belongs to the checks. ``last`` says who arrived last, once it is made a string. ``passes``
    counts waits that passed, ``parks`` those that had to wait.
    """

    cta: Cta
    offset: int
    expected: int
    pending: int
    transactions: int = 0
    phase: int = 0
    last: object = "nobody"
    clock: Any = None
    complete_time: float = 0.0
    pending_time: float = 0.0
    history: dict[str, Any] = field(default_factory=dict)
    site: Instruction | None = None
    passes: int = 0
    parks: int = 0

    @property
    def name(self) -> str:
        """The barrier's name if the caller gave one, else its offset."""
        return self.cta.name_of(self.offset)

    def passed(self, parity: int) -> bool:
        """Whether a wait for ``parity`` succeeds: the phase of that parity is over."""
        return (self.phase & 1) != parity

    def describe(self) -> str:
        """State for people."""
        return (
            f"{self.name} (phase {self.phase}, {self.pending} of {self.expected} arrivals and "
            f"{self.transactions} bytes missing, last arrival: {self.last})"
        )

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
        """Arrive and expect so many fewer from the next phase on."""
        self.expected -= count
        self.arrive(count, who)

    def complete_transaction(self, count: int, who: object) -> None:
        """complete-tx: bytes have come."""
        self.transactions -= count
        self.last = who
        self._settle()

    def signal_transaction(self, op: AsyncOp, count: int) -> None:
        """An asynchronous operation has written ``count`` bytes that this barrier counts."""
        machine = self.cta.machine
        machine.observer.signalled(op, self)
        self.pending_time = max(self.pending_time, op.end_time)
        machine.progress()
        self.complete_transaction(count, op)
        if abs(self.transactions) > MAX_COUNT:
            machine.find(
                "transaction-bytes",
                f"{self.name}: {self.transactions} bytes outstanding, "
                f"more than the {MAX_COUNT} that a barrier can count",
                op.site,
                op.gang,
                None,
            )

    def signal_arrival(self, op: AsyncOp) -> None:
        """An asynchronous operation (a commit) arrives once."""
        machine = self.cta.machine
        machine.observer.signalled(op, self)
        self.pending_time = max(self.pending_time, op.end_time)
        machine.progress()
        if self.pending == 0:
            machine.fault(
                "over-arrival",
                f"{self.describe()}: an arrival more than it expects",
                op.site,
                op.gang,
                None,
            )
        self.arrive(1, op)

    def _settle(self) -> None:
        if self.pending == 0 and self.transactions == 0:
            self.phase += 1
            self.pending = self.expected
            self.complete_time, self.pending_time = self.pending_time, 0.0
            machine = self.cta.machine
            machine.observer.phase_completed(self)
            machine.wake(self)
