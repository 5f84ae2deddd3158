"""Asynchronous operations: issued by a thread, taking effect at some later time.

An operation moves data when it runs and signals when it has finished. Between issue and the signal
it may run at any time: the schedule decides, late or early, so that a missing wait shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.gang import Gang
    from fa4gen.emulator.state.machine import Cta

CANCELLED: Final = "cancelled"
"""In the notes of a try_cancel that has run: the first CTA of the cluster, or None."""


@dataclass(frozen=True, slots=True)
class SharedRange:
    """Bytes ``start`` to ``stop`` of a CTA's shared memory."""

    cta: Cta
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class GlobalRange:
    """Bytes from ``start`` to ``stop`` of global memory, as addresses.

    ``rows`` of a hull: the addresses of its lines, and how many bytes each of them has.
    """

    start: int
    stop: int
    rows: tuple[NDArray[np.int64], int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TensorRange:
    """A rectangle of a CTA's tensor memory: lanes and 32-bit columns, half open."""

    cta: Cta
    first_lane: int
    last_lane: int
    first_column: int
    last_column: int


@dataclass(slots=True, eq=False)
class AsyncOp:
    """One asynchronous operation.

    kind      a word for people: ``tensor copy``, ``wgmma``, ``tcgen05.mma``, ``bulk store``
    gang/lane the issuing thread (of a warp or warpgroup operation its first lane)
    site      the instruction
    run       moves the data; called once
    finish    signals completion; called once, after run
    after     operations that have to run before this one
    reads/writes  what is touched in shared and global memory, through the async proxy
    tensor_reads/tensor_writes  what is touched in tensor memory
    unit      which functional unit it occupies in the cost model: ``tma``, ``tensor``, ``other``
    cycles    how long it occupies the unit in the cost model
    continues  the operation of the same thread just before, nothing in between, whose target it
               has: all that orders one orders the other
    slot, epoch, clock  belong to the checks: the operation's place in the vector clocks
    """

    kind: str
    gang: Gang
    lane: int
    site: Instruction
    run: Callable[[], None]
    finish: Callable[[], None] | None = None
    after: tuple[AsyncOp, ...] = ()
    reads: tuple[SharedRange | GlobalRange, ...] = ()
    writes: tuple[SharedRange | GlobalRange, ...] = ()
    tensor_reads: tuple[TensorRange, ...] = ()
    tensor_writes: tuple[TensorRange, ...] = ()
    unit: str = "other"
    cycles: float = 0.0
    continues: AsyncOp | None = None
    done: bool = False
    slot: int = -1
    epoch: int = 0
    clock: Any = None
    end_time: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} issued at {self.site.where}"


class AsyncEngine:
    """All operations under way. ``eager`` runs each at its issue."""

    def __init__(self, random: Random, eager: bool) -> None:
        self._random = random
        self._eager = eager
        self._open: dict[int, AsyncOp] = {}

    def __len__(self) -> int:
        return len(self._open)

    def submit(self, op: AsyncOp) -> None:
        """Take over an operation. The issuing handler calls ``machine.submit``, not this."""
        self._open[id(op)] = op
        if self._eager:
            self.complete(op)

    def complete(self, op: AsyncOp) -> None:
        """Make sure that an operation has run and has signalled."""
        if op.done:
            return
        for earlier in op.after:
            self.complete(earlier)
        if op.done:
            return
        op.done = True
        self._open.pop(id(op), None)
        op.run()
        if op.finish is not None:
            op.finish()
        op.after = ()

    def complete_random(self) -> None:
        """Complete one operation of the seed's choice."""
        ops = list(self._open.values())
        self.complete(self._random.choice(ops))
