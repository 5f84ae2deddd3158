"""The lanes of one warpgroup that run only when nothing else can."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES

STARVING: Final = ("starve", "starve_warp")
"""Schedules under which lanes are starved: a whole warpgroup, or some of its warps."""


class Starved:
    """Ready lanes that are held back, by the step at which they stand."""

    def __init__(self, wg: Warpgroup, mask: NDArray[np.bool_]) -> None:
        self.wg = wg
        self.places: dict[int, Lanes] = {}
        self._mask = mask

    @staticmethod
    def choose(policy: str, warpgroups: Sequence[Warpgroup], random: Random) -> Starved:
        """Return new victims in one of ``warpgroups``.

        ``starve_warp`` chooses one warp, or all warps but one, with equal chances: a warp that
        lags behind its warpgroup, or runs ahead of it.
        """
        wg = random.choice(warpgroups)
        mask = np.ones(wg.lanes, np.bool_)
        if policy == "starve_warp" and wg.warps > 1:
            warp = random.randrange(wg.warps)
            mask = np.arange(wg.lanes) // WARP_LANES == warp
            if random.random() < 0.5:
                mask = ~mask
        return Starved(wg, mask)

    def hold(self, step: int, lanes: Lanes) -> Lanes | None:
        """Hold back the starved ones of lanes that could go on at a step; return the others."""
        here = lanes.array(self.wg)
        held = here & self._mask
        if not held.any():
            return lanes
        known = self.places.get(step)
        self.places[step] = Lanes.of(held) if known is None else known.join(Lanes(held))
        rest = here & ~held
        return Lanes(rest) if rest.any() else None
