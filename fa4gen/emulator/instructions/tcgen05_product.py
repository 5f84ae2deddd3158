"""The arithmetic of tcgen05.mma: operands, accumulation, and where it all lies.

Floating-point products are summed in float32, K steps that follow each other on the same
accumulator in one go; the order of the hardware's sums is unknown, so results agree within bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.async_ops import SharedRange, TensorRange
from fa4gen.emulator.descriptors import Descriptor
from fa4gen.emulator.gang import Gang
from fa4gen.emulator.instruction_descriptor import InstructionDescriptor
from fa4gen.emulator.instructions.copy_places import only
from fa4gen.emulator.instructions.tcgen05_common import report_uninitialised, wants_uninitialised
from fa4gen.emulator.instructions.tcgen05_layouts import Piece
from fa4gen.emulator.instructions.tcgen05_queue import Action
from fa4gen.emulator.machine import Cta
from fa4gen.emulator.operand_tiles import ELEMENT_BYTES, read_tile, tile_ranges, values_of
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.tensor_memory import TensorMemory

# Every kind takes 32 bytes of K from each row of A: so many columns of tensor memory.
A_COLUMNS: Final = 8
_LOW: Final = np.uint32(0xFFFF)
# Steps of K that are summed together; sums of so many 8-bit products are exact in float32.
_STEPS: Final = 64
_EXACT_STEPS: Final = 8
_INT32: Final = np.iinfo(np.int32)


@dataclass(slots=True, eq=False)
class Product(Action):
    """One tcgen05.mma under way.

    ctas        those that work together, the one of even rank first
    kind        the decoded instruction descriptor
    layout      the rectangles of D; ``column`` is D's first column in each CTA
    a           A in shared memory, or None when it is in tensor memory at ``a_column``
    accumulate  D = A B + D 2^-shift; without it D = A B
    enabled     for each CTA the lanes of D that are written, or None for all
    """

    gang: Gang
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

    def joins(self, later: Action) -> bool:
        return (
            isinstance(later, Product)
            and later.accumulate
            and later.kind is self.kind
            and later.column == self.column
            and later.layout is self.layout
            and later.ctas == self.ctas
            and later.shift == 0
            and later.enabled is None
            and self.enabled is None
            and not self.kind.saturate
            and (later.a is None) == (self.a is None)
        )

    def run(self) -> None:
        self.run_all((self,))

    def run_all(self, group: Sequence[Action]) -> None:
        steps = [one for one in group if isinstance(one, Product)]
        most = _EXACT_STEPS if self.kind.d == "s32" else _STEPS
        for begin in range(0, len(steps), most):
            steps[begin]._sum(steps[begin : begin + most])

    # ---- one accumulation over several steps of K

    def _sum(self, steps: list[Product]) -> None:
        b = _join([one._read_b() for one in steps])
        if self.kind.negate_a != self.kind.negate_b:
            b = -b
        whole: NDArray[np.float32] | None = None
        for index, cta in enumerate(self.ctas):
            memory = cta.tensor_memory
            assert memory is not None
            if self.a is not None:
                a = _join([one._read_a(cta) for one in steps])
                whole = a @ b.T
            for piece in self.layout:
                if piece.cta != index or not self._usable(memory, piece):
                    continue
                columns = slice(piece.first, piece.first + piece.columns)
                if whole is None:
                    a = _join([one._read_tensor_a(memory, piece) for one in steps])
                    part = a @ b[columns].T
                else:
                    part = whole[piece.row : piece.row + piece.rows, columns]
                self._write(memory, piece, part)

    def _usable(self, memory: TensorMemory, piece: Piece) -> bool:
        """Whether D's columns are still there."""
        if memory.holds(self.column, self.column + piece.columns):
            return True
        self.gang.machine.find(
            "tensor-memory",
            f"{self.site.text} completes after its columns were given back",
            self.site, self.gang, only(self.gang, self.lane),
        )  # fmt: skip
        return False

    def _read_a(self, cta: Cta) -> NDArray[np.float32]:
        assert self.a is not None
        kind = self.kind
        rows = kind.m // len(self.ctas)
        tile = read_tile(cta.shared, self.a, not kind.transpose_a, rows, kind.k, kind.a)
        return tile.astype(np.float32, copy=False)

    def _read_b(self) -> NDArray[np.float32]:
        kind = self.kind
        rows = kind.n // len(self.ctas)
        tiles = [
            read_tile(cta.shared, self.b, not kind.transpose_b, rows, kind.k, kind.b)
            for cta in self.ctas
        ]
        tile = tiles[0] if len(tiles) == 1 else np.concatenate(tiles)
        return tile.astype(np.float32, copy=False)

    def _read_tensor_a(self, memory: TensorMemory, piece: Piece) -> NDArray[np.float32]:
        lanes = slice(piece.lane, piece.lane + piece.rows)
        columns = slice(self.a_column, self.a_column + A_COLUMNS)
        self._check_written(memory, lanes, columns, "A from")
        raw = np.ascontiguousarray(memory.cells[lanes, columns])
        size = ELEMENT_BYTES[self.kind.a]
        values = values_of(raw.view(np.dtype(f"u{size}")), self.kind.a)
        return values.astype(np.float32, copy=False)

    def _check_written(
        self, memory: TensorMemory, lanes: slice | NDArray[np.int64], columns: slice, what: str
    ) -> None:
        if memory.initialised(lanes, columns) or not wants_uninitialised(self.gang.machine):
            return
        mask = only(self.gang, self.lane)
        report_uninitialised(
            self.gang, mask, self.site, memory, f"{self.site.text} reads {what}", lanes, columns
        )

    def _write(self, memory: TensorMemory, piece: Piece, part: NDArray[np.float32]) -> None:
        """Add to or replace a rectangle of D."""
        lanes = slice(piece.lane, piece.lane + piece.rows)
        columns = slice(self.column, self.column + piece.columns)
        cells = memory.cells[lanes, columns]
        if self.accumulate:
            used: slice | NDArray[np.int64] = lanes
            if self.enabled is not None:
                used = np.flatnonzero(self.enabled[piece.cta][lanes]) + piece.lane
            self._check_written(memory, used, columns, "D from")
        if self.kind.d == "f32" and self.enabled is None:
            target = cells.view(np.float32)
            if not self.accumulate:
                target[...] = part
            else:
                if self.shift:
                    target *= np.float32(2.0**-self.shift)
                target += part
            memory.mark(lanes, columns)
            return
        values = self._combine(cells, part)
        if self.enabled is None:
            cells[...] = values
            memory.mark(lanes, columns)
        else:
            rows = np.flatnonzero(self.enabled[piece.cta][lanes])
            cells[rows] = values[rows]
            memory.written[rows + piece.lane, columns] = True

    def _combine(self, cells: NDArray[np.uint32], part: NDArray[np.float32]) -> NDArray[np.uint32]:
        """The new bits of D."""
        if self.kind.d == "s32":
            total = part.astype(np.int64)
            if self.accumulate:
                total += cells.view(np.int32)
            if self.kind.saturate:
                total = total.clip(_INT32.min, _INT32.max)
            return total.astype(np.int32).view(np.uint32)
        scale = np.float32(2.0**-self.shift)
        if self.kind.d == "f32":
            sums = part + cells.view(np.float32) * scale if self.accumulate else part
            return np.ascontiguousarray(sums, np.float32).view(np.uint32)
        if self.accumulate:
            old = (cells & _LOW).astype(np.uint16).view(np.float16)
            part = part + old.astype(np.float32) * scale
        return np.ascontiguousarray(part.astype(np.float16)).view(np.uint16).astype(np.uint32)

    # ---- what the observer is told

    def shared_reads(self) -> tuple[SharedRange, ...]:
        """The operands in shared memory, of all CTAs of the group."""
        kind, share = self.kind, len(self.ctas)
        tiles = [_ranges(self.b, not kind.transpose_b, kind.n // share, kind.k, kind.b)]
        if self.a is not None:
            tiles.append(_ranges(self.a, not kind.transpose_a, kind.m // share, kind.k, kind.a))
        return tuple(
            SharedRange(cta, start, stop)
            for cta in self.ctas
            for tile in tiles
            for start, stop in tile
        )

    def tensor_writes(self) -> tuple[TensorRange, ...]:
        """The rectangles of D."""
        return self._rectangles(self.column, None)

    def tensor_reads(self) -> tuple[TensorRange, ...]:
        """D when it is added to, and A if it is in tensor memory."""
        reads = self._rectangles(self.column, None) if self.accumulate else ()
        if self.a is None:
            reads += self._rectangles(self.a_column, A_COLUMNS)
        return reads

    def _rectangles(self, column: int, width: int | None) -> tuple[TensorRange, ...]:
        return tuple(
            TensorRange(
                self.ctas[piece.cta],
                piece.lane,
                piece.lane + piece.rows,
                column,
                column + (piece.columns if width is None else width),
            )
            for piece in self.layout
        )

    def cycles(self) -> float:
        """How long the tensor cores are busy: products, or operand bytes at 128 a cycle."""
        kind, share = self.kind, len(self.ctas)
        rate = 8192 if share == 2 else 4096 if kind.m == 128 else 2048
        rows = (0 if self.a is None else kind.m) + kind.n
        return max(kind.m * kind.n * 16 / rate, rows * 32 / share / 128)


def _join(steps: list[Any]) -> Any:
    """Operands of several steps side by side along K."""
    return steps[0] if len(steps) == 1 else np.concatenate(steps, axis=1)


@lru_cache(maxsize=4096)
def extent(descriptor: Descriptor, k_major: bool, mn: int, k: int, kind: str) -> tuple[int, int]:
    """The first byte of a tile in shared memory and one past its last."""
    ranges = tile_ranges(descriptor, k_major, mn, k, ELEMENT_BYTES[kind])
    return ranges[0][0], ranges[-1][1]


@lru_cache(maxsize=4096)
def _ranges(
    descriptor: Descriptor, k_major: bool, mn: int, k: int, kind: str
) -> tuple[tuple[int, int], ...]:
    """The bytes of a tile, gaps within swizzled lines closed: they are other steps of K."""
    merged: list[tuple[int, int]] = []
    widest = 2 * descriptor.span
    for start, stop in tile_ranges(descriptor, k_major, mn, k, ELEMENT_BYTES[kind]):
        if merged and start - merged[-1][1] < widest:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return tuple(merged)
