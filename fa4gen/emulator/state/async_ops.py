"""Asynchronous operations: issued by a thread, taking effect at some later time.

An operation moves data when it runs and signals when it has finished. Between issue and the signal
it may run at any time: the schedule decides, late or early, so that a missing wait shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

CANCELLED: Final = "cancelled"
"""In the notes of a try_cancel that has run: the first CTA of the cluster, or None."""


@dataclass(frozen=True, slots=True)
class GlobalRange:
    """Bytes from ``start`` to ``stop`` of global memory, as addresses.

    ``rows`` of a hull: the addresses of its lines, and how many bytes each of them has.
    """

    start: int
    stop: int
    rows: tuple[NDArray[np.int64], int] | None = field(default=None, compare=False)


class Operation(Protocol):
    """The part of an operation that the engine needs."""

    done: bool

    @property
    def after(self) -> tuple[Operation, ...]:
        """Operations that have to run before this one."""

    def carry_out(self) -> None:
        """Move the data, then signal completion; called once."""


class AsyncEngine:
    """All operations under way. ``eager`` runs each at its issue."""

    def __init__(self, random: Random, eager: bool) -> None:
        self._random = random
        self._eager = eager
        self._open: dict[int, Operation] = {}

    def __len__(self) -> int:
        return len(self._open)

    def submit(self, op: Operation) -> None:
        """Take over an operation. The issuing handler calls ``machine.submit``, not this."""
        self._open[id(op)] = op
        if self._eager:
            self.complete(op)

    def complete(self, op: Operation) -> None:
        """Make sure that an operation has run and has signalled."""
        if op.done:
            return
        for earlier in op.after:
            self.complete(earlier)
        if op.done:
            return
        op.done = True
        self._open.pop(id(op), None)
        op.carry_out()

    def complete_random(self) -> None:
        """Complete one operation of the seed's choice."""
        ops = list(self._open.values())
        self.complete(self._random.choice(ops))
