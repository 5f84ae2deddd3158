"""The workspace of a kernel in the emulator: one for all launches, looked at after each.

Counters and tickets are zero before and after every launch, whatever its problem: one that leaves
them otherwise is wrong, though its own results are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.runtime.schedule import Schedule

COUNTERS = 2
"""Words of a dynamic scheduler's counters."""
NAN_WORD = 0x7FC0_0000


@dataclass(frozen=True)
class Kept:
    """The memory of a parameter, in words of 4 bytes: words zero between launches, and others.

    The others are never read before a launch writes them.
    """

    words: int
    row: int = 1
    """Words of a row."""
    first_zero: int = 0
    """From this word of each row on, words are zero between launches."""


def workspace(plan: AttentionPlan, schedule: Schedule) -> dict[str, Kept]:
    """Return the memory that CTAs need which share the keys of a tile, by parameter."""
    size = plan.workspace_bytes(schedule.grid, schedule.num_tiles) - plan.ticket_bytes
    # where splits have a fixed number of keys, tickets are at the end of a row of partial results
    partials = Kept(size // 4, plan.partial_stride, plan.value_depth + 2)
    return {"tickets": Kept(plan.ticket_bytes // 4), "partials": partials}


class Workspace:
    """The memory that the launches of a kernel use in turn, by parameter."""

    def __init__(self) -> None:
        self._memory: dict[str, NDArray[np.uint32]] = {}
        self._given: dict[str, tuple[Kept, NDArray[np.uint32]]] = {}

    def give(self, kept: Mapping[str, Kept]) -> dict[str, NDArray[np.uint32]]:
        """Return the arrays of a launch: of the size that it needs, as the last one left them.

        Words that no launch may read are NaN.
        """
        list(self.take_back())  # of a launch that was given up
        for name, one in kept.items():
            old = self._memory.setdefault(name, np.zeros(0, np.uint32))
            if old.size < one.words:
                self._memory[name] = np.concatenate(
                    (old, np.zeros(one.words - old.size, np.uint32))
                )
            given = self._memory[name][: one.words]
            given.reshape(-1, one.row)[:, : one.first_zero] = NAN_WORD
            self._given[name] = one, given
        return {name: given for name, (_, given) in self._given.items()}

    def take_back(self) -> Iterator[str]:
        """Yield the words that the launch left wrong; the memory is zero for the next launch."""
        for name, (kept, given) in self._given.items():
            zeros = given.reshape(-1, kept.row)[:, kept.first_zero :]
            places = np.argwhere(zeros)
            if len(places):
                row, column = (int(one) for one in places[0])
                word = int(zeros[row, column])
                at = row * kept.row + kept.first_zero + column
                more = f", and {len(places) - 1} words more" if len(places) > 1 else ""
                yield f"{name}[{at}] is {word} after the launch, 0 was expected{more}"
                zeros[...] = 0
        self._given = {}
