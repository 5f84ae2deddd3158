"""Sets of lanes of a warpgroup that stand at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.registers import WARP_LANES

if TYPE_CHECKING:
    from fa4gen.emulator.state.registers import Mask, Registers

PARTIAL, WARPS, WARPGROUP = 0, 1, 2


class Lanes:
    """An immutable set of lanes. ``mask`` is None for all lanes of the warpgroup.

    ``level`` says how complete the set is among the lanes that have not exited: WARPGROUP when it
    is all of them, WARPS when every warp in it is complete, PARTIAL otherwise.
    """

    __slots__ = ("_births", "_level", "mask")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self._level = WARPGROUP if mask is None else -1
        self._births = -1

    @staticmethod
    def of(mask: NDArray[np.bool_]) -> Lanes:
        """The set of a mask; recognises the full one."""
        return Lanes(None) if mask.all() else Lanes(mask)

    def array(self, wg: Registers) -> NDArray[np.bool_]:
        """The set as a mask with one entry per lane."""
        return np.ones(wg.lanes, np.bool_) if self.mask is None else self.mask

    def count(self, wg: Registers) -> int:
        return wg.lanes if self.mask is None else int(np.count_nonzero(self.mask))

    def join(self, other: Lanes) -> Lanes:
        """The union."""
        if self.mask is None or other.mask is None:
            return self if self.mask is None else other
        return Lanes.of(self.mask | other.mask)

    def minus(self, other: NDArray[np.bool_], wg: Registers) -> Lanes:
        return Lanes(self.array(wg) & ~other)

    def level(self, wg: Registers) -> int:
        """The completeness of the set; remembered until a lane of the warpgroup leaves."""
        if self.mask is None:
            return WARPGROUP
        if self._level < 0 or self._births != wg.deaths:
            self._births = wg.deaths
            if np.array_equal(self.mask, wg.live):
                self._level = WARPGROUP
            else:
                here = by_warp(self.mask)
                absent = by_warp(wg.live & ~self.mask)
                self._level = PARTIAL if (here & absent).any() else WARPS
        return self._level


def by_warp(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each warp has a lane in the mask."""
    if len(mask) % WARP_LANES:
        mask = np.pad(mask, (0, -len(mask) % WARP_LANES))
    result: NDArray[np.bool_] = np.logical_or.reduce(mask.reshape(-1, WARP_LANES), axis=1)
    return result
