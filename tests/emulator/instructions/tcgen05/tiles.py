"""Operands of tcgen05.mma as bytes of shared memory, placed element by element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.emulator.instructions.tensor_cores import lay_down

SPANS = {0: 0, 128: 2, 64: 4, 32: 6}


def descriptor(offset: int, leading: int, stride: int, span: int) -> int:
    """A descriptor to which the tile's address, divided by 16, is added."""
    return offset >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46 | SPANS[span] << 61


def place(values: NDArray, buffer: NDArray[np.uint8], offset: int, *, k_major: bool, leading: int,
          stride: int, span: int) -> None:  # fmt: skip
    """Write a matrix (mn, k) into ``buffer``, whose first byte is 1024-byte aligned.

    Rows of K are in panels of ``span`` bytes, one after the other.
    """
    width = span // values.itemsize if k_major and span else values.shape[1]
    for first in range(0, values.shape[1], width):
        lay_down(
            values[:, first : first + width], buffer, offset + first // width * len(values) * span,
            k_major=k_major, leading=leading, stride=stride, span=span,
        )  # fmt: skip


def d_place(m: int, n: int, group: int, ws: bool, base: int, row: int, column: int) -> tuple:
    """(CTA, lane, column) of an element of D."""
    if group == 2 and m == 256:
        return row // 128, row % 128, column
    if group == 2:
        return row // 64, row % 64 + 64 * (column // (n // 2)), column % (n // 2)
    if m == 128:
        return 0, row, column
    if ws and m == 64:
        return 0, row + 64 * (column // (n // 2)), column % (n // 2)
    if ws:
        return 0, row + 32 * (column // (n // 4)), column % (n // 4)
    return 0, base + 32 * (row // 16) + row % 16, column


def expected(matrix: NDArray, before: NDArray, group: int, ws: bool = False, base: int = 0):
    """Cells of each CTA (CTAs, 128, columns) after D was written over ``before``."""
    m, n = matrix.shape
    cells = np.array([before] * group)
    for row in range(m):
        for column in range(n):
            cells[d_place(m, n, group, ws, base, row, column)] = matrix[row, column]
    return cells
