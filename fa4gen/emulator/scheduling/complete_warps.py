"""Warps whose lanes have all reached an instruction that they execute together."""

from __future__ import annotations

import numpy as np

from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES


def complete_lanes(
    wg: Warpgroup, lanes: Lanes, members: object | None
) -> tuple[Lanes | None, Lanes | None]:
    """Split lanes into those whose partners have all arrived, and the rest.

    ``members`` holds the membermask of each lane (or one for all); None stands for the whole warp.
    Lanes that have left are not waited for.
    """
    here = lanes.array(wg)
    ready = np.zeros(wg.lanes, np.bool_)
    values = None if members is None else np.broadcast_to(np.asarray(members), wg.lanes)
    for warp in range(wg.warps):
        first = warp * WARP_LANES
        stop = min(first + WARP_LANES, wg.lanes)
        present = here[first:stop]
        if not present.any():
            continue
        alive = wg.live[first:stop]
        if values is None:
            ready[first:stop] = present & bool((present == alive).all())
            continue
        for value in {int(values[first + lane]) for lane in np.flatnonzero(present)}:
            wanted = (value >> np.arange(stop - first) & 1).astype(np.bool_) & alive
            same = present & (values[first:stop] == value)
            if (same >= wanted).all():
                ready[first:stop] |= same
    rest = here & ~ready
    return (
        Lanes.of(ready) if ready.any() else None,
        Lanes.of(rest) if rest.any() else None,
    )
