"""The cell of tensor memory of each register of a load or store (PTX ISA, "tcgen05.ld")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.registers import WARP_LANES
from fa4gen.emulator.state.tensor_memory import COLUMNS

SPLIT_SHAPE: Final = "16x32bx2"
# shape -> (registers for x1, largest xN)
SHAPES: Final = {
    "32x32b": (1, 128),
    "16x64b": (1, 128),
    "16x128b": (2, 64),
    "16x256b": (4, 32),
    SPLIT_SHAPE: (1, 128),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A load or store.

    registers  32-bit registers of each lane
    split      columns between the two halves of 16x32bx2
    packed     .pack::16b or .unpack::16b: a register holds the low halves of two columns
    """

    name: str
    registers: int
    split: int
    packed: bool

    @property
    def lanes(self) -> int:
        """Lanes of tensor memory that a warp touches."""
        return 32 if self.name == "32x32b" else 16


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of some warps, relative to a column.

    threads  the lanes of the warpgroup, ascending
    lanes    lanes of tensor memory, those of all threads together (a slice or an index array)
    flat     lane * 512 + column: (registers, threads); when packed, of the low halves
    plain    whether register r of thread t is cell (first lane + t, r): a rectangle
    spans    columns that are touched, as (first, stop), one or two of them
    """

    threads: slice | NDArray[np.int64]
    lanes: slice | NDArray[np.int64]
    flat: NDArray[np.int64]
    plain: bool
    spans: tuple[tuple[int, int], ...]


@lru_cache(maxsize=512)
def place(shape: Shape, warps: tuple[int, ...], offset: int) -> Cells:
    """The cells of some ``warps``; ``offset`` is their lane within their quarter, 0 or 16.

    Warp q of a warpgroup is warp q modulo 4 of its CTA and reaches lanes 32 q to 32 q + 31.
    """
    t = np.arange(WARP_LANES)[None, :]
    r = np.arange(shape.registers)[:, None]
    zero = np.zeros((shape.registers, WARP_LANES), np.int64)
    if shape.name == "32x32b":
        lane, column = t + zero, r + zero
    elif shape.name == "16x64b":
        lane, column = t // 4 + 8 * (t % 2) + zero, 2 * r + t // 2 % 2
    elif shape.name == "16x128b":
        lane, column = t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    elif shape.name == "16x256b":
        lane, column = t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    else:
        lane, column = t % 16 + zero, r + np.where(t >= 16, shape.split, 0)
    width = 2 if shape.packed else 1
    cell = lane * COLUMNS + column * width
    quarter = WARP_LANES * COLUMNS
    flat = np.concatenate([cell + quarter * warp for warp in warps], axis=1) + offset * COLUMNS
    contiguous = warps == tuple(range(warps[0], warps[-1] + 1))
    threads: slice | NDArray[np.int64]
    if contiguous:
        threads = slice(warps[0] * WARP_LANES, (warps[-1] + 1) * WARP_LANES)
    else:
        threads = np.concatenate([np.arange(WARP_LANES) + warp * WARP_LANES for warp in warps])
    whole = contiguous and shape.lanes == WARP_LANES
    lanes = threads if whole else np.unique(flat // COLUMNS)
    extent = (int(column.max()) + 1) * width
    spans: tuple[tuple[int, int], ...] = ((0, extent),)
    if shape.split > shape.registers:
        spans = ((0, shape.registers * width), (shape.split * width, extent))
    plain = contiguous and shape.name == "32x32b" and not shape.packed
    return Cells(threads, lanes, flat, plain, spans)
