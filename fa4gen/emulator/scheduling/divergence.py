"""Tells the observer where lanes of a warp part and where they meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.emulator.state.lanes import Lanes
    from fa4gen.emulator.state.machine import Gang


def part(gang: Gang, lanes: Lanes, parts: Iterable[Lanes]) -> None:
    """Lanes that stood together go on in parts; some of them may stay where they are."""
    observer = gang.machine.observer
    if observer.enabled:
        here = lanes.array(gang)
        for one in parts:
            chosen = one.array(gang)
            observer.splits(gang, chosen, here & ~chosen)


def meet(gang: Gang, lanes: Lanes) -> None:
    """Lanes of whole warps execute an instruction together."""
    if gang.apart:
        gang.machine.observer.meets(gang, lanes.mask)
