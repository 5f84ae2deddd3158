"""The arithmetic of tcgen05.mma: operands, accumulation, and where it all is.

Floating-point products are summed exactly and rounded to float32, K steps that follow each other on
the same accumulator in one go; the hardware rounds differently, so results agree within
bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.endpoints import only
from fa4gen.emulator.instructions.mma.products import (
    MOST_BITS,
    added,
    significant_bits,
    sums_of_products,
    whole_sums,
)
from fa4gen.emulator.instructions.tcgen05.inputs import A_COLUMNS, Inputs, join
from fa4gen.emulator.instructions.tcgen05.layouts import Piece
from fa4gen.emulator.instructions.tcgen05.operands import ranges, stored
from fa4gen.emulator.instructions.tcgen05.queue import Action
from fa4gen.emulator.instructions.tcgen05.scales import Scales, columns
from fa4gen.emulator.state.machine import SharedRange, TensorRange
from fa4gen.emulator.state.tensor_memory import LANES, TensorMemory

_LOW: Final = np.uint32(0xFFFF)
# Steps of K that are summed together; sums of this number of 8-bit products are exact in float32.
_STEPS: Final = 64
_EXACT_STEPS: Final = 8
_INT32: Final = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Touched:
    """The accesses of a product, for observers."""

    shared_reads: tuple[SharedRange, ...]
    tensor_reads: tuple[TensorRange, ...]
    tensor_writes: tuple[TensorRange, ...]
    cycles: float
    facts: dict[str, Any]


@dataclass(slots=True, eq=False)
class Product(Inputs):
    """One tcgen05.mma; the same object each time that a thread issues it with the same operands."""

    _touched: Touched | None = None

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
        plain = [] if self.scales is None else [one.read_b([one]) for one in steps]
        b: Any = self.read_b(steps) if self.scales is None else None
        sums = self._shared_sums(steps, b) if self.a is not None and self.scales is None else None
        for index, cta in enumerate(self.ctas):
            memory = cta.tensor_memory
            assert memory is not None
            whole = None if sums is None else sums[index]
            if self.scales is not None:
                scaled = zip(steps, plain, strict=True)
                b = join([one.scaled(memory, tile, False) for one, tile in scaled])
                if self.a is not None:
                    whole = self._sums(join([one.read_a(cta, memory, [one]) for one in steps]), b)
            for piece in self.layout:
                if piece.cta != index or not self._usable(memory, piece):
                    continue
                columns = slice(piece.first, piece.first + piece.columns)
                if whole is None:
                    a = self.read_all_tensor_a(memory, piece, steps)
                    part = self._sums(a, b[columns])
                else:
                    part = whole[piece.row : piece.row + piece.rows, columns]
                self._write(memory, piece, part)

    def _shared_sums(self, steps: list[Product], b: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sums of each CTA with A in its shared memory; B is prepared once for a pair."""
        tiles = []
        for cta in self.ctas:
            assert cta.tensor_memory is not None
            tiles.append(self.read_a(cta, cta.tensor_memory, steps))
        if len(tiles) == 1:
            return self._sums(tiles[0], b)[None]
        return self._sums(np.concatenate(tiles), b).reshape(len(tiles), len(tiles[0]), -1)

    def _sums(self, a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
        kind = self.kind
        if kind.d == "s32":
            return whole_sums(a, b).astype(np.float32)
        bits = significant_bits(kind.a, kind.b) if self.scales is None else MOST_BITS
        return sums_of_products(a, b, bits)

    def _usable(self, memory: TensorMemory, piece: Piece) -> bool:
        """Whether D's columns are still there."""
        if memory.holds(self.column, self.column + piece.columns):
            return True
        self.wg.machine.find(
            "tensor-memory",
            f"{self.site.text} completes after its columns were freed",
            self.site, self.wg, only(self.wg, self.lane),
        )  # fmt: skip
        return False

    def _write(self, memory: TensorMemory, piece: Piece, part: NDArray[np.float32]) -> None:
        """Add to or replace a rectangle of D."""
        lanes = slice(piece.lane, piece.lane + piece.rows)
        columns = slice(self.column, self.column + piece.columns)
        cells = memory.cells[lanes, columns]
        if self.accumulate:
            used: slice | NDArray[np.int64] = lanes
            if self.enabled is not None:
                used = np.flatnonzero(self.enabled[piece.cta][lanes]) + piece.lane
            self.check_written(memory, used, columns, "D from")
        if self.kind.d == "f32" and self.enabled is None:
            target = cells.view(np.float32)
            if not self.accumulate:
                target[...] = part
            else:
                if self.shift:
                    target *= np.float32(2.0**-self.shift)
                target[...] = added(target, part)
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
            sums = added(cells.view(np.float32) * scale, part) if self.accumulate else part
            return np.ascontiguousarray(sums, np.float32).view(np.uint32)
        if self.accumulate:
            old = (cells & _LOW).astype(np.uint16).view(np.float16)
            part = added(old.astype(np.float32) * scale, part)
        return np.ascontiguousarray(part.astype(np.float16)).view(np.uint16).astype(np.uint32)

    def has_columns(self) -> bool:
        """Whether all columns that are touched are allocated."""
        width = max(piece.columns for piece in self.layout)
        spans = [(self.column, width)]
        if self.a is None:
            spans.append((self.a_column, A_COLUMNS))
        if self.scales is not None:
            spans += self._scale_columns(self.scales)
        if self.metadata is not None:
            spans.append((self.metadata.first, self.metadata.columns))
        for cta in self.ctas:
            memory = cta.tensor_memory
            assert memory is not None
            if not all(memory.holds(first, first + count) for first, count in spans):
                return False
        return True

    # ---- data for the observer

    @property
    def touched(self) -> Touched:
        """The reads and writes of a product, and its cost."""
        if self._touched is None:
            self._touched = Touched(
                self.shared_reads(),
                self.tensor_reads(),
                self.tensor_writes(),
                self.cycles(),
                self.facts(),
            )
        return self._touched

    def _scale_columns(self, scales: Scales) -> list[tuple[int, int]]:
        """First column and number of columns of the scale factors of A and B."""
        rows = self.kind.m // len(self.ctas)
        return [(scales.a, columns(rows)), (scales.b, columns(self.kind.n))]

    def shared_reads(self) -> tuple[SharedRange, ...]:
        """The operands in shared memory, of all CTAs of the group."""
        kind, share = self.kind, len(self.ctas)
        element, k = stored(kind, False)
        tiles = [ranges(self.b, not kind.transpose_b, kind.n // share, k, element)]
        if self.a is not None:
            element, k = stored(kind, True)
            tiles.append(ranges(self.a, not kind.transpose_a, kind.m // share, k, element))
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
        spans = [] if self.scales is None else self._scale_columns(self.scales)
        if self.metadata is not None:
            spans.append((self.metadata.first, self.metadata.columns))
        return reads + tuple(
            TensorRange(cta, 0, LANES, first, first + count)
            for first, count in spans
            for cta in self.ctas
        )

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
        """The cycles that the tensor cores are busy: products, or operand bytes at 128 a cycle."""
        kind, share = self.kind, len(self.ctas)
        rate = 8192 if share == 2 else 4096 if kind.m == 128 else 2048
        return max(kind.m * kind.n * 16 / rate, self._operand_bytes() / 128)

    def _operand_bytes(self) -> float:
        """Bytes from each CTA's shared memory: 32 of each row of A, and of B if A is dense."""
        rows = (0 if self.a is None else self.kind.m) + self.kind.n * (1 + self.kind.sparse)
        return rows * 32 / len(self.ctas)

    def facts(self) -> dict[str, Any]:
        """The facts about the product in a timeline."""
        return {
            "a": "tensor memory" if self.a is None else "shared memory",
            "d": self.column,
            "rows": self.kind.m,
            "columns": self.kind.n,
            "shared": self._operand_bytes(),
        }
