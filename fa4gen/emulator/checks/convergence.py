"""Which warps have run as one, and since when.

A warp runs its lanes together until a branch sends some elsewhere. It counts as one
again from the next instruction on that all of its lanes execute together (``.sync`` and
``.aligned``); whether ptxas lets lanes of different paths meet earlier is left open. Accesses to
shared memory of a warp that has run as one are performed in the order of its instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.clocks import WARP, Clocks

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask


class Convergence:
    """The warps of one cluster.

    apart   per warp: lanes have taken different paths and not met since
    since   per thread: the epoch in which its warp met last
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.apart = np.zeros(clocks.threads // WARP, np.bool_)
        self.since = np.zeros(clocks.threads, np.uint32)

    def splits(self, base: int, some: NDArray[np.bool_], rest: NDArray[np.bool_]) -> bool:
        """Lanes of a warpgroup go different paths; ``base`` is its first thread's number.

        Returns whether a warp has lanes on both.
        """
        both = _any_of_warp(some) & _any_of_warp(rest)
        first = base // WARP
        self.apart[first : first + len(both)] |= both
        return bool(both.any())

    def meets(self, base: int, wg: Warpgroup, mask: Mask) -> bool:
        """Lanes execute an instruction together: those of whole warps have met.

        Returns whether a warp of the warpgroup is still apart.
        """
        first = base // WARP
        apart = self.apart[first : first + wg.warps]
        met = apart.copy()
        if mask is not None:
            met &= _any_of_warp(mask) & ~_any_of_warp(wg.live & ~mask)
        if met.any():
            threads = base + np.flatnonzero(met.repeat(WARP)[: wg.lanes])
            self.clocks.advance(threads)
            self.since[threads] = self.clocks.epochs[threads]
            apart &= ~met
        return bool(apart.any())

    def ordered(
        self, ids: NDArray[np.int64], slots: NDArray[np.int64], epochs: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether each thread's warp has run as one since that epoch of the slot, a lane of it.

        The arguments broadcast to one shape, that of the answer.
        """
        warps = ids // WARP
        thread = np.minimum(slots, self.clocks.threads - 1)
        return np.asarray(
            (slots // WARP == warps) & ~self.apart[warps] & (epochs >= self.since[thread])
        )


def _any_of_warp(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each warp has a lane in the mask."""
    if len(mask) % WARP:
        mask = np.pad(mask, (0, -len(mask) % WARP))
    return np.asarray(mask.reshape(-1, WARP).any(axis=1))
