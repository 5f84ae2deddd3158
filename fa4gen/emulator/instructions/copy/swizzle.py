"""Swizzles of shared memory: XORs on absolute address bits (PTX ISA, "Swizzling modes").

A span of W bytes is permuted in atoms of 16 bytes (32 or 64 in the special 128-byte modes). The
phase comes from the address bits above the 128-byte line, so that data reached by plain addition
stays consistent wherever its tile starts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LINE: Final = 128
CHUNK: Final = 16


def swizzle(address: Any, span: int, atom: int = CHUNK) -> Any:
    """The physical address of a logical one, an int or an array of ints; an involution.

    ``span`` is 0 (no swizzle), 32, 64 or 128 bytes; ``atom`` 16, or 32 or 64 with span 128.
    """
    if span == 0:
        return address
    return address ^ ((address // LINE) & (span // atom - 1)) * atom


@lru_cache(maxsize=256)
def box_order(lines: int, chunks: int, phase: int, span: int, atom: int) -> NDArray[np.int64]:
    """The order of a box's 16-byte chunks: ``lines`` lines of ``chunks`` chunks, one per span.

    The tile starts on a 128-byte boundary, ``phase`` lines past a multiple of 1024. Returns int64
    (lines * chunks): indices of physical chunks, counted from the start of the tile.
    """
    line = np.arange(lines, dtype=np.int64)[:, None]
    logical = phase * LINE + line * span + np.arange(chunks, dtype=np.int64) * CHUNK
    order: NDArray[np.int64] = (swizzle(logical, span, atom) - phase * LINE) // CHUNK
    order = order.reshape(-1)
    order.flags.writeable = False
    return order
