"""Block scale factors of tcgen05.mma in tensor memory (PTX ISA, ".block_scale").

The factor of row m and block j of K is byte j of column m / 32 in lane m % 32, repeated in all four
quarters of the lanes; with fewer than four blocks the id in the instruction descriptor says which
byte is the first. With ``.cta_group::2`` each CTA holds the factors of its own rows of A and those
of all rows of B [?].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.state.registers import WARP_LANES
from fa4gen.emulator.state.tensor_memory import LANES, TensorMemory

SCALE_FACTOR_ID: Final = 0xC000_0000
"""Bits of an address of factors that select nothing: CuTe leaves the id of the first byte in them,
which its kernels also have in the descriptor."""
# kind -> (words that say how many factors a row has in one instruction, the default's number)
VECTORS: Final[dict[str, tuple[dict[str, int], int | None]]] = {
    "mxf8f6f4": ({"scale_vec::1X": 1, "block32": 1}, 1),
    "mxf4": ({"scale_vec::2X": 2, "block32": 2}, 2),
    "mxf4nvf4": ({"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4}, None),
}


def factors(kind: str, words: Sequence[str]) -> int | None:
    """Factors of each row, from the modifiers; None if they do not fit the kind."""
    table, default = VECTORS[kind]
    if not words:
        return default
    return table.get(words[0]) if len(words) == 1 else None


@dataclass(frozen=True, slots=True)
class Scales:
    """The places of the factors of A and B.

    a, b          first columns
    count         factors of each row
    a_byte, b_byte  the first factor's byte within its column
    kind          ue8m0 or ue4m3
    """

    a: int
    b: int
    count: int
    a_byte: int
    b_byte: int
    kind: str

    def read(self, memory: TensorMemory, rows: int, k: int, of_a: bool) -> NDArray[np.float32]:
        """The factor of every element of A or B: (rows, k)."""
        first, byte = (self.a, self.a_byte) if of_a else (self.b, self.b_byte)
        cells = memory.cells[:WARP_LANES, first : first + columns(rows)]
        # (lane, column, byte) -> (column, lane, byte): rows in order
        raw = np.ascontiguousarray(cells.T).view(np.uint8).reshape(-1, 4)
        values = _table(self.kind)[raw[:rows, byte : byte + self.count]]
        return np.repeat(values, k // self.count, axis=1)


def columns(rows: int) -> int:
    """The number of columns of the factors of this number of rows."""
    return -(-rows // WARP_LANES)


def repeated(memory: TensorMemory, first: int, count: int) -> bool:
    """Whether all four quarters hold the same factors."""
    cells = memory.cells[:, first : first + count].reshape(LANES // WARP_LANES, WARP_LANES, count)
    return bool((cells == cells[0]).all())


@cache
def _table(kind: str) -> NDArray[np.float32]:
    codes = np.arange(256, dtype=np.uint8)
    dtype: Any = ml_dtypes.float8_e8m0fnu
    if kind == "ue4m3":
        dtype = ml_dtypes.float8_e4m3fn
        codes &= np.uint8(127)
    values: NDArray[np.float32] = codes.view(dtype).astype(np.float32)
    return values
