"""Tells the observer where lanes of a warp part and where they meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.state.machine import Warpgroup


def part(wg: Warpgroup, lanes: Lanes, parts: Iterable[Lanes]) -> None:
    """Lanes that stood together go on in parts; some of them may stay where they are."""
    observer = wg.machine.observer
    if observer.enabled:
        here = lanes.array(wg)
        for one in parts:
            chosen = one.array(wg)
            observer.splits(wg, chosen, here & ~chosen)


def meet(wg: Warpgroup, lanes: Lanes) -> None:
    """Lanes of whole warps execute an instruction together."""
    if wg.apart:
        wg.machine.observer.meets(wg, lanes.mask)
