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
    """Ready lanes that are held back, by the step at which they stand.

    While they are ``fed`` they run until others are ready, with those of their own warp that are
    behind first: lanes of a warp stay together, as they do in hardware.
    """

    def __init__(self, wg: Warpgroup, mask: NDArray[np.bool_]) -> None:
        self.wg = wg
        self.places: dict[int, Lanes] = {}
        self.fed = False
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

    def split(self, wg: Warpgroup, lanes: Lanes) -> tuple[Lanes | None, Lanes | None]:
        """Split lanes of a warpgroup into starved ones and others."""
        if wg is not self.wg:
            return None, lanes
        here = lanes.array(wg)
        held = here & self._mask
        rest = here & ~held
        return (
            Lanes.of(held) if held.any() else None,
            Lanes.of(rest) if rest.any() else None,
        )

    def hold(self, step: int, lanes: Lanes) -> None:
        """Hold starved lanes back, together with those that stand at the same step."""
        known = self.places.get(step)
        self.places[step] = lanes if known is None else known.join(lanes)
