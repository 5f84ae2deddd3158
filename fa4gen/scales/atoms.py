"""The order in which Blackwell's tensor cores read scales of one byte.

Scales of 128 rows and 4 consecutive blocks of k are an atom of 512 bytes, 32 lines of 16: row r is
in line r % 32, and its four scales are the four bytes from 4 * (r // 32) on. ``tcgen05.cp`` copies
a line to a lane of tensor memory.

    line 0:   rows 0, 32, 64, 96, four scales of each
    line 1:   rows 1, 33, 65, 97
    ...
    line 31:  rows 31, 63, 95, 127

Atoms follow each other along k, then along the rows. Rows in groups, as products with offsets take
them, begin an atom with each group: its last one is filled up, so that all groups together have at
most one atom more each than their rows fill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.errors import ArgumentError, Problem
from fa4gen.scales.backends import backend_of

if TYPE_CHECKING:
    from fa4gen.scales.backends import Backend

LINES, GROUPS, BYTES = 32, 4, 4
ATOM_ROWS, ATOM_COLUMNS = LINES * GROUPS, BYTES
ATOM_BYTES = LINES * GROUPS * BYTES


def arrange(scales: Any, row_offsets: Any = None) -> Any:
    """Return scales (..., rows, blocks of k), uint8, in the order of the hardware.

    The result is (..., rows / 128, blocks / 4, 32, 4, 4), contiguous, with both rounded up; scales
    of rows and blocks beyond the ends are 0.

    ``row_offsets``: int32 (groups + 1,), the first row of each group and the end of the last; each
    group then begins an atom, scales are (rows, blocks of k), and the result has rows // 128 +
    groups atoms of rows, the most that there may be. Nothing is copied to the host.
    """
    backend = backend_of(scales)
    xp, plain = backend.xp, _bytes(backend, scales)
    if row_offsets is not None:
        rows = rows_of_atoms(backend.array(row_offsets), plain.shape[0], xp)
        plain = xp.pad(plain, ((0, 1), (0, 0)))[rows]
    rows, columns = plain.shape[-2:]
    widths = [(0, 0)] * (plain.ndim - 2) + [(0, -rows % ATOM_ROWS), (0, -columns % ATOM_COLUMNS)]
    padded = xp.pad(plain, widths)
    lead = padded.shape[:-2]
    across, along = padded.shape[-2] // ATOM_ROWS, padded.shape[-1] // ATOM_COLUMNS
    shape = (*lead, across, GROUPS, LINES, along, BYTES)
    parts = padded.reshape(shape)
    n = len(lead)
    order = (*range(n), n, n + 3, n + 2, n + 1, n + 4)
    return backend.back(xp.ascontiguousarray(parts.transpose(order)))


def rows_of_atoms(row_offsets: Any, rows: int, xp: Any = np) -> Any:
    """Return the row of ``rows`` that each row of all groups' atoms has, ``rows`` for padding."""
    begin, end = row_offsets[:-1], row_offsets[1:]
    atoms = -(-(end - begin) // ATOM_ROWS)
    first = ATOM_ROWS * (xp.cumsum(atoms) - atoms)
    place = xp.arange(ATOM_ROWS * (rows // ATOM_ROWS + begin.size))
    group = xp.searchsorted(first, place, side="right") - 1
    row = begin[group] + place - first[group]
    return xp.where(row < end[group], row, rows)


def restore(arranged: Any, rows: int, blocks: int) -> Any:
    """Return scales (..., rows, blocks) from those that ``arrange`` gave.

    Raises ArgumentError for a shape that does not fit the rows and blocks.
    """
    backend = backend_of(arranged)
    atoms = _bytes(backend, arranged, 5)
    expected = (-(-rows // ATOM_ROWS), -(-blocks // ATOM_COLUMNS), LINES, GROUPS, BYTES)
    if atoms.shape[-5:] != expected:
        raise ArgumentError(
            Problem(
                f"arranged: expected (..., {', '.join(map(str, expected))}) for {rows} rows and "
                f"{blocks} blocks of k, got {tuple(atoms.shape)}"
            )
        )
    n = atoms.ndim - 5
    plain = atoms.transpose((*range(n), n, n + 3, n + 2, n + 1, n + 4))
    shape = (*atoms.shape[:-5], expected[0] * ATOM_ROWS, expected[1] * ATOM_COLUMNS)
    return backend.back(backend.xp.ascontiguousarray(plain.reshape(shape)[..., :rows, :blocks]))


def _bytes(backend: Backend, array: Any, axes: int = 2) -> Any:
    found = backend.array(array)
    if found.dtype != np.uint8 or found.ndim < axes:
        shape = "(..., rows, blocks of k)" if axes == 2 else "(..., 32, 4, 4) atoms"
        raise ArgumentError(
            Problem(f"scales: expected uint8 {shape}, got {found.dtype} {tuple(found.shape)}")
        )
    return found
