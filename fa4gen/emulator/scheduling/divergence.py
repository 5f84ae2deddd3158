"""Reports to the observer where lanes of a warp diverge and where they converge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.state.machine import Warpgroup


def diverge(wg: Warpgroup, lanes: Lanes, parts: Iterable[Lanes]) -> None:
    """Lanes at one step go on at several; some of them may stay where they are."""
    observer = wg.machine.observer
    if observer.enabled:
        here = lanes.array(wg)
        for one in parts:
            chosen = one.array(wg)
            observer.diverged(wg, chosen, here & ~chosen)


def converge(wg: Warpgroup, lanes: Lanes) -> None:
    """Lanes of whole warps execute an instruction together."""
    if wg.diverged:
        wg.machine.observer.converged(wg, lanes.mask)
