"""The record of the checks for an mbarrier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import Vector

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Warpgroup


@dataclass(frozen=True, slots=True)
class Waits:
    """The threads of a CTA that have seen a phase complete.

    epochs  per thread, the epoch in which; 0 where it has not
    sites   where each warpgroup did so last
    """

    epochs: NDArray[np.uint32]
    sites: dict[Warpgroup, Instruction]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Threads that arrived by one instruction.

    ids       these threads, in ascending order
    together  those that executed the instruction, which may arrive at several barriers
    epochs    the epochs in which all threads were, before
    """

    ids: NDArray[np.int64]
    together: NDArray[np.int64]
    epochs: NDArray[np.uint32]


@dataclass(slots=True)
class BarrierClock:
    """The checks' part of an mbarrier.

    pending   the knowledge published by all arrivals so far
    done      ``pending`` when the last phase completed: the knowledge that waiters learn
    before    the plane EXEC of ``done`` before the last phase completed
    near      the parts of ``pending`` and ``done`` that a wait of the CTA's scope learns: without
              releases of other CTAs. None until there is a difference
    maker, made, fenced   the initialising thread, its epoch, and whether a fence followed
    trusted   sets of threads that all know of the initialisation
    waits     phase -> the threads that saw it complete
    arrivals  arrivals of this phase, by instructions that arrived elsewhere, too
    last      arrivals of the phase before
    """

    pending: Vector
    done: Vector
    before: NDArray[np.uint32]
    maker: int
    made: int
    site: Instruction
    near: tuple[Vector, Vector] | None = None
    fenced: bool = False
    trusted: set[ActiveLanes] = field(default_factory=set)
    waits: dict[int, Waits] = field(default_factory=dict)
    arrivals: list[Arrivals] = field(default_factory=list)
    last: list[Arrivals] = field(default_factory=list)

    def pending_near(self) -> Vector:
        """``near`` of ``pending``, from now on apart."""
        if self.near is None:
            self.near = self.pending.copy(), self.done.copy()
        return self.near[0]
