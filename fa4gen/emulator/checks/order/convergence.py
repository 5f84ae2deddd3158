"""The warps that have run as one, and since when.

A warp runs its lanes together until a branch sends some elsewhere. It counts as one
again from the next instruction on that all of its lanes execute together (``.sync`` and
``.aligned``); whether ptxas lets lanes of different paths converge earlier is left open. Accesses
to shared memory of a warp that has run as one are performed in the order of its instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import WARP, Clocks

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask


class Convergence:
    """The warps of one cluster.

    diverged_warps   per warp: lanes have diverged and not converged since
    since   per thread: the epoch in which its warp last converged
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.diverged_warps = np.zeros(clocks.threads // WARP, np.bool_)
        self.since = np.zeros(clocks.threads, np.uint32)

    def diverged(self, base: int, some: NDArray[np.bool_], rest: NDArray[np.bool_]) -> bool:
        """Lanes of a warpgroup go different paths; ``base`` is its first thread's number.

        Returns whether a warp has lanes on both.
        """
        both = _any_of_warp(some) & _any_of_warp(rest)
        first = base // WARP
        self.diverged_warps[first : first + len(both)] |= both
        return bool(both.any())

    def converged(self, base: int, wg: Warpgroup, mask: Mask) -> bool:
        """Lanes execute an instruction together: those of whole warps have converged.

        Returns whether a warp of the warpgroup is still diverged.
        """
        first = base // WARP
        diverged_warps = self.diverged_warps[first : first + wg.warps]
        converged_warps = diverged_warps.copy()
        if mask is not None:
            converged_warps &= _any_of_warp(mask) & ~_any_of_warp(wg.live & ~mask)
        if converged_warps.any():
            threads = base + np.flatnonzero(converged_warps.repeat(WARP)[: wg.lanes])
            self.clocks.advance(threads)
            self.since[threads] = self.clocks.epochs[threads]
            diverged_warps &= ~converged_warps
        return bool(diverged_warps.any())

    def ordered(
        self, ids: NDArray[np.int64], slots: NDArray[np.int64], epochs: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether each thread's warp has run as one since that epoch of the slot, a lane of it.

        The arguments broadcast to one shape, that of the answer.
        """
        warps = ids // WARP
        thread = np.minimum(slots, self.clocks.threads - 1)
        return np.asarray(
            (slots // WARP == warps) & ~self.diverged_warps[warps] & (epochs >= self.since[thread])
        )


def _any_of_warp(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each warp has a lane in the mask."""
    if len(mask) % WARP:
        mask = np.pad(mask, (0, -len(mask) % WARP))
    return np.asarray(mask.reshape(-1, WARP).any(axis=1))
