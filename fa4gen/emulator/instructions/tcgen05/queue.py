"""Operations of one issuer that take effect in the order of their issue.

The PTX ISA guarantees that order for some pairs only (mma after mma on the same accumulator, mma
after cp or shift, cp.4x256b after shift, commit after all). The emulator keeps it for all of one
thread; the observer knows which pairs may rely on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Machine, Warpgroup


class Action:
    """The action of an operation when its turn has come."""

    def joins(self, later: Action) -> bool:
        """Whether ``later`` can be done together with this one, right after it."""
        return False

    def run(self) -> None:
        """Do it."""

    def run_all(self, group: Sequence[Action]) -> None:
        """Do all of a group that join each other; this is the first of them."""
        for one in group:
            one.run()


class InOrder:
    """A queue: when an operation is to run, all earlier ones run first."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._waiting: dict[AsyncOp, Action | None] = {}

    def submit(self, op: AsyncOp, action: Action | None, *, quiet: bool = False) -> None:
        """Queue an operation; ``quiet`` ones are not reported to the observer.

        The operation's ``run`` is replaced. ``action`` is None for an operation without work.
        """
        self._waiting[op] = action
        op.run = lambda: self._run_to(op)
        if quiet:
            self._machine.progress()
            self._machine.engine.submit(op)
        else:
            self._machine.submit(op)

    def complete_all(self) -> None:
        """Make everything take effect now."""
        if self._waiting:
            self._machine.complete(next(reversed(self._waiting)))

    def __len__(self) -> int:
        return len(self._waiting)

    def _run_to(self, last: AsyncOp) -> None:
        """Run the queue up to ``last``, joining operations that can be joined."""
        if last not in self._waiting:
            return
        ready: list[tuple[AsyncOp, Action | None]] = []
        for pair in self._waiting.items():
            ready.append(pair)
            if pair[0] is last:
                break
        for op, _ in ready:
            del self._waiting[op]
        run_actions([action for _, action in ready if action is not None])
        for op, _ in ready[:-1]:
            self._machine.complete(op)


def run_actions(actions: list[Action]) -> None:
    """Run actions in order, joining those that can be."""
    begin = 0
    while begin < len(actions):
        end = begin + 1
        while end < len(actions) and actions[end - 1].joins(actions[end]):
            end += 1
        actions[begin].run_all(actions[begin:end])
        begin = end


_QUEUES: Final = Attached[Warpgroup, dict[int, InOrder]](lambda wg: {})


def queue_of(wg: Warpgroup, lane: int) -> InOrder:
    """The queue of a thread's mma, cp, shift and commit."""
    queues = _QUEUES.of(wg)
    queue = queues.get(lane)
    if queue is None:
        queue = queues[lane] = InOrder(wg.machine)
    return queue
