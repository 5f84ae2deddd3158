"""The pieces of an operand tile in shared memory.

A tile of a swizzled layout is many short pieces that lie close together. Checks look at the
stretches that hold them, and at the pieces themselves only when something seems wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.machine import SharedRange

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import AsyncOp, Cta

_GAP: Final = 128
_FEW: Final = 4


class Stretches:
    """Stretches of shared memory that operations read; remembers those of each instruction."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[SharedRange, ...]] = {}

    def of(self, op: AsyncOp) -> tuple[SharedRange, ...]:
        """The shared ranges that an operation reads, joined where little is between them."""
        reads = op.reads
        if len(reads) <= _FEW:
            return tuple(part for part in reads if isinstance(part, SharedRange))
        first, last = reads[0], reads[-1]
        # an instruction's tiles have one shape: their first and last pieces tell where they are
        key = (id(op.site), id(op.wg.cta), first.start, last.stop, len(reads))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _join(op)
        return known


def _join(op: AsyncOp) -> tuple[SharedRange, ...]:
    joined: list[SharedRange] = []
    for part in op.reads:
        if not isinstance(part, SharedRange):
            continue
        last = joined[-1] if joined else None
        if last is not None and last.cta is part.cta and 0 <= part.start - last.stop < _GAP:
            joined[-1] = SharedRange(part.cta, last.start, part.stop)
        else:
            joined.append(part)
    return tuple(joined)


def touched(op: AsyncOp, cta: Cta, offsets: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Whether ``size`` bytes at each offset are among those that an operation really reads."""
    pieces = (
        (part.start, part.stop)
        for part in op.reads
        if isinstance(part, SharedRange) and part.cta is cta
    )
    return within(sorted(pieces), offsets, size)


def within(
    pieces: Sequence[tuple[int, int]], offsets: NDArray[np.int64], size: int
) -> NDArray[np.bool_]:
    """Whether ``size`` bytes at each offset touch one of the pieces, which are in order."""
    if not pieces:
        return np.zeros(len(offsets), np.bool_)
    stops = np.maximum.accumulate(np.array([stop for _, stop in pieces]))
    starts = np.array([start for start, _ in pieces])
    before = np.searchsorted(starts, offsets + size, side="left")
    return np.asarray((before > 0) & (stops[before - 1] > offsets))
