"""Metadata of a sparse A in tensor memory (PTX ISA, "Sparse Matrices"; the places as in CUTLASS).

For 16-bit and 32-bit elements a column has the metadata of 128 rows: those of rows 16 q + r, in the
low half, and 16 q + 8 + r, in the high half, are in lane 16 q + r for the first half of K and in
lane 16 q + 8 + r for the second one, with r below 8. The address is that of a pair of columns, and
the selector says which of them. For narrower elements row m has two columns of lane m. A product
of ``.ws`` with fewer rows has the metadata on the lanes of each copy of A. With a pair of CTAs each
has those of its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma import sparsity
from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import InstructionDescriptor
from fa4gen.emulator.state.tensor_memory import LANES, TensorMemory

_WIDE: Final = ("f16", "bf16", "tf32")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The place of the metadata: their first column and the number of columns."""

    first: int
    columns: int

    def read(
        self, memory: TensorMemory, kind: InstructionDescriptor, rows: int
    ) -> NDArray[np.uint8]:
        """The codes of the chunks of each row: (rows, chunks)."""
        cells = memory.cells[:rows, self.first : self.first + self.columns]
        if kind.a not in _WIDE:
            words = np.ascontiguousarray(cells).view(np.uint64)[:, 0]
            return sparsity.nibbles(words, 16)
        groups = cells[:, 0].reshape(-1, 2, 8)  # (q, half of K, r)
        halves = np.stack([groups & np.uint32(0xFFFF), groups >> np.uint32(16)], axis=1)
        codes = sparsity.nibbles(halves.transpose(0, 1, 3, 2), 4)
        return codes.reshape(rows, -1)

    def repeated(self, memory: TensorMemory, rows: int) -> bool:
        """Whether all copies of ``rows`` lanes are the same."""
        cells = memory.cells[:, self.first : self.first + self.columns]
        copies = cells.reshape(LANES // rows, rows, self.columns)
        return bool((copies == copies[0]).all())


def place(kind: InstructionDescriptor, column: int) -> Metadata:
    """The metadata of a product with ``column`` in its address."""
    if kind.a in _WIDE:
        return Metadata(column + kind.selector, 1)
    return Metadata(column, 2)


def with_zeros(
    tile: NDArray[np.float32], codes: NDArray[np.uint8], kind: InstructionDescriptor
) -> NDArray[np.float32]:
    """A, (rows, k), from its elements and the codes of its rows."""
    width = 2 if kind.packed else 1
    return sparsity.expanded(tile, codes, kind.a != "tf32", width)


def wrong(codes: NDArray[np.uint8], kind: InstructionDescriptor) -> str:
    """The errors in codes, in words; empty if there are none."""
    valid = sparsity.TCGEN05 if kind.a != "tf32" else sparsity.valid_codes(False, True)
    return sparsity.first_wrong(codes, valid)
