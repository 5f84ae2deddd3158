"""Groups of rows in verify: the rows of each.

Rows of no group are NaN in A, in its scales and in C, and must stay as they are in the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.scales.atoms import ATOM_ROWS, rows_of_atoms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Part:
    """Rows of the result that one B is multiplied for: of a matrix of the batch, or of a group."""

    batch: int
    """The matrix of A, and of what else has its rows."""
    first: int
    """The first row in that matrix."""
    rows: int
    b: int
    """The B, and the C of one row."""
    place: tuple[int, int]
    """The matrix of the result and the row in it where the rows begin."""
    along_k: tuple[int, int | None] = (0, None)
    """Where the part of k that is summed over begins and ends."""

    @property
    def depth(self) -> slice:
        """The part of k."""
        return slice(*self.along_k)

    @property
    def rows_of_matrix(self) -> slice:
        """The rows in the matrix of A."""
        return slice(self.first, self.first + self.rows)


@dataclass(frozen=True)
class Groups:
    """The rows of the groups of a case."""

    kind: str
    """"offsets", "masked", or "k_offsets", whose rows are those of A and B along k."""
    counts: tuple[int, ...]
    apart: tuple[int, int]

    @property
    def matrices(self) -> int:
        """Matrices that A and the output have."""
        return len(self.counts) if self.kind == "masked" else 1

    @property
    def rows(self) -> int:
        """Rows of each of them."""
        before, after = self.apart
        if self.kind == "masked":
            return max(self.counts, default=0) + after
        return before + sum(self.counts) + after

    @property
    def argument(self) -> tuple[str, NDArray[np.int32]]:
        """The name of the array with the groups' rows, and its elements."""
        if self.kind == "masked":
            return "row_counts", np.array(self.counts, np.int32)
        offsets = self.apart[0] + np.cumsum((0, *self.counts))
        return "row_offsets", offsets.astype(np.int32)

    def parts(self) -> Iterator[Part]:
        """Yield the groups; in the result their rows follow one another."""
        begin = 0
        for group, count in enumerate(self.counts):
            batch, first = (group, 0) if self.kind == "masked" else (0, self.apart[0] + begin)
            yield Part(batch, first, count, group, (0, begin))
            begin += count

    def depths(self, rows: int) -> Iterator[Part]:
        """Yield the groups along k, each with ``rows`` rows of a matrix of its own."""
        for part in self.parts():
            depth = part.first, part.first + part.rows
            yield Part(part.b, 0, rows, part.b, (part.b, 0), depth)

    def rows_of_none(self) -> NDArray[np.bool_]:
        """Return a mask (matrices, rows) of the rows that belong to no group."""
        mask = np.ones((self.matrices, self.rows), np.bool_)
        for part in self.parts():
            mask[part.batch, part.first : part.first + part.rows] = False
        return mask

    def in_atoms(self, scales: NDArray[Any], padding: int) -> NDArray[Any]:
        """Return scales (matrices, rows, blocks) so that rows of 128 of a group are an atom's.

        ``padding``: what is after the last row of a group.
        """
        source = self._rows_of_atoms()
        padded = np.pad(scales, ((0, 0), (0, 1), (0, 0)), constant_values=padding)
        return padded[:, source]

    def from_atoms(self, scales: NDArray[Any]) -> NDArray[Any]:
        """Return the scales of rows that ``in_atoms`` has moved; those of no group are 0."""
        source = self._rows_of_atoms()
        there = source < self.rows
        plain = np.zeros((scales.shape[0], self.rows, scales.shape[2]), scales.dtype)
        plain[:, source[there]] = scales[:, : source.size][:, there]
        return plain

    def atoms_of_none(self) -> NDArray[np.bool_]:
        """Return a mask (matrices, atoms) of the atoms of scales without a row of a group."""
        there = self.in_atoms(~self.rows_of_none()[..., None], padding=0)[..., 0]
        padded = np.pad(there, ((0, 0), (0, -there.shape[1] % ATOM_ROWS)))
        by_atom: NDArray[np.bool_] = padded.reshape(self.matrices, -1, ATOM_ROWS)
        return np.logical_not(by_atom.any(axis=-1))

    def _rows_of_atoms(self) -> NDArray[np.intp]:
        """Return the row of a matrix in each row of atoms, or its number of rows for none."""
        if self.kind == "offsets":
            found: NDArray[np.intp] = rows_of_atoms(self.argument[1], self.rows)
            return found
        return np.arange(self.rows)

    def row_of(self, row: int) -> tuple[int, int]:
        """Return the matrix and the row in it of a row of the result."""
        own = next(part for part in self.parts() if row < part.place[1] + part.rows)
        return own.batch, own.first + row - own.place[1]


def matrix_parts(batches: int, rows: int) -> Iterator[Part]:
    """Yield the matrices of a batch as parts."""
    for batch in range(batches):
        yield Part(batch, 0, rows, batch, (batch, 0))
