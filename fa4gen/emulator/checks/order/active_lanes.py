"""Lanes that do something together, as the clocks number them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.clocks import Threads

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask


@dataclass(slots=True, eq=False)
class ActiveLanes:
    """Lanes of a warpgroup: ``threads`` selects them in the clocks, ``ids`` has their numbers.

    ``column`` is ``ids`` for accesses of several cells each; ``whole`` for all of them.
    """

    wg: Warpgroup
    mask: Mask
    threads: Threads
    ids: NDArray[np.int64]
    column: NDArray[np.int64]
    whole: bool = False
