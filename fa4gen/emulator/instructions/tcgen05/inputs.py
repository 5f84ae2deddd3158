"""The inputs of tcgen05.mma: A and B as numbers, from shared and tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.endpoints import only
from fa4gen.emulator.instructions.mma.descriptors import Descriptor
from fa4gen.emulator.instructions.mma.operand_tiles import ELEMENT_BYTES, read_tiles, values_of
from fa4gen.emulator.instructions.tcgen05 import sparsity
from fa4gen.emulator.instructions.tcgen05.common import report_uninitialised, wants_uninitialised
from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import InstructionDescriptor
from fa4gen.emulator.instructions.tcgen05.layouts import Piece
from fa4gen.emulator.instructions.tcgen05.operands import numbers, stored
from fa4gen.emulator.instructions.tcgen05.queue import Action
from fa4gen.emulator.instructions.tcgen05.scales import Scales, columns, repeated
from fa4gen.emulator.instructions.tcgen05.sparsity import Metadata
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.machine import Cta, Warpgroup
from fa4gen.emulator.state.tensor_memory import LANES, TensorMemory

# Every kind takes 32 bytes of K from each row of A: this number of columns of tensor memory.
A_COLUMNS: Final = 8


def join(steps: list[Any]) -> Any:
    """Operands of several steps side by side along K."""
    return steps[0] if len(steps) == 1 else np.concatenate(steps, axis=1)


@dataclass(slots=True, eq=False)
class Inputs(Action):
    """The operands of an issued tcgen05.mma, and their reading.

    ctas        the CTAs that work together, the one of even rank first
    kind        the decoded instruction descriptor
    layout      the rectangles of D; ``column`` is D's first column in each CTA
    a           A in shared memory, or None when it is in tensor memory at ``a_column``
    accumulate  D = A B + D 2^-shift; without it D = A B
    enabled     for each CTA the lanes of D that are written, or None for all
    scales      block scale factors, or None
    metadata    those of a sparse A, or None
    """

    wg: Warpgroup
    lane: int
    site: Instruction
    ctas: tuple[Cta, ...]
    kind: InstructionDescriptor
    layout: tuple[Piece, ...]
    column: int
    a: Descriptor | None
    a_column: int
    b: Descriptor
    accumulate: bool
    shift: int
    enabled: tuple[NDArray[np.bool_], ...] | None
    scales: Scales | None = None
    metadata: Metadata | None = None

    def read_a(self, cta: Cta, memory: TensorMemory, steps: list[Self]) -> NDArray[np.float32]:
        """A of steps that follow each other along K."""
        kind = self.kind
        if self.metadata is not None and len(steps) > 1:
            return np.asarray(join([one.read_a(cta, memory, [one]) for one in steps]))
        element, k = stored(kind, True)
        rows = kind.m // len(self.ctas)
        places = [one.a for one in steps if one.a is not None]
        tile = read_tiles(cta.shared, places, not kind.transpose_a, rows, k, element)
        return self.scaled(memory, self._whole(memory, numbers(tile, kind), 0), True)

    def _whole(
        self, memory: TensorMemory, tile: NDArray[np.float32], row: int
    ) -> NDArray[np.float32]:
        """Rows of A, from ``row`` on, with the zeros of a sparse one."""
        if self.metadata is None:
            return tile
        rows = self.kind.m // len(self.ctas)
        first = self.metadata.first
        span = slice(first, first + self.metadata.columns)
        self.check_written(memory, slice(0, LANES), span, "sparsity metadata from")
        codes = self.metadata.read(memory, self.kind, rows)
        problem = sparsity.wrong(codes, self.kind)
        if problem:
            self._find("illegal-instruction", problem)
        if not self.metadata.repeated(memory, rows):
            self._find(
                "tensor-memory",
                f"the sparsity metadata in column {first} are not the same in all {LANES // rows} "
                f"parts of {rows} lanes",
            )
        return sparsity.with_zeros(tile, codes[row : row + len(tile)], self.kind)

    def _find(self, kind: str, message: str) -> None:
        self.wg.machine.find(kind, message, self.site, self.wg, only(self.wg, self.lane))

    def read_b(self, steps: list[Self]) -> NDArray[np.float32]:
        """B of all CTAs for such steps, with the sign of the product."""
        kind = self.kind
        element, k = stored(kind, False)
        rows = kind.n // len(self.ctas)
        places = [one.b for one in steps]
        tiles = [
            read_tiles(cta.shared, places, not kind.transpose_b, rows, k, element)
            for cta in self.ctas
        ]
        tile = numbers(tiles[0] if len(tiles) == 1 else np.concatenate(tiles), kind)
        return -tile if kind.negate_a != kind.negate_b else tile

    def read_all_tensor_a(
        self, memory: TensorMemory, piece: Piece, steps: list[Self]
    ) -> NDArray[np.float32]:
        """A of steps along K; at once where one begins at the end of the other."""
        last = self.a_column + A_COLUMNS * len(steps)
        columns = range(self.a_column, last, A_COLUMNS)
        if (
            self.scales is None
            and self.metadata is None
            and all(one.a_column == column for one, column in zip(steps, columns, strict=True))
            and memory.full(self.a_column, last)
        ):
            return self._read_tensor_a(memory, piece, len(steps))
        return np.asarray(join([one._read_tensor_a(memory, piece) for one in steps]))

    def _read_tensor_a(
        self, memory: TensorMemory, piece: Piece, steps: int = 1
    ) -> NDArray[np.float32]:
        lanes = slice(piece.lane, piece.lane + piece.rows)
        span = slice(self.a_column, self.a_column + A_COLUMNS * steps)
        self.check_written(memory, lanes, span, "A from")
        raw = np.ascontiguousarray(memory.cells[lanes, span])
        element, _ = stored(self.kind, True)
        values = values_of(raw.view(np.dtype(f"u{ELEMENT_BYTES[element]}")), element)
        tile = self._whole(memory, numbers(values, self.kind), piece.row)
        return self.scaled(memory, tile, True, piece.row)

    def scaled(
        self, memory: TensorMemory, tile: NDArray[np.float32], of_a: bool, row: int = 0
    ) -> NDArray[np.float32]:
        """Rows of A (from ``row`` on) or B times their block scale factors."""
        if self.scales is None:
            return tile
        first = self.scales.a if of_a else self.scales.b
        rows, k = tile.shape
        width = columns(row + rows)
        what = "scale factors from"
        self.check_written(memory, slice(0, LANES), slice(first, first + width), what)
        if not repeated(memory, first, width):
            self._find(
                "tensor-memory",
                f"the scale factors of {'A' if of_a else 'B'} in columns {first} to "
                f"{first + width - 1} are not the same in all four quarters of the lanes",
            )
        return tile * self.scales.read(memory, row + rows, k, of_a)[row:]

    def check_written(
        self, memory: TensorMemory, lanes: slice | NDArray[np.int64], columns: slice, what: str
    ) -> None:
        if memory.initialised(lanes, columns) or not wants_uninitialised(self.wg.machine):
            return
        mask = only(self.wg, self.lane)
        report_uninitialised(
            self.wg, mask, self.site, memory, f"{self.site.text} reads {what}", lanes, columns
        )
