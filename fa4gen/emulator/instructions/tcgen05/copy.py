"""``tcgen05.cp``: from shared to tensor memory (PTX ISA, "tcgen05.cp").

Chosen where the sources are silent [?]: with ``.cta_group::2`` each CTA of the pair copies from its
own shared memory to its own tensor memory, at the same offsets and addresses. The lane of the
destination counts from the address, which has to be lane 0 for all shapes but 4x256b; that one
writes the last four lanes of each quarter. Decompression on the way is not modelled, nor is
``tcgen05.shift``: which way rows move is not known for sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.endpoints import only, pick
from fa4gen.emulator.instructions.mma import descriptors
from fa4gen.emulator.instructions.mma.descriptors import Descriptor, DescriptorError
from fa4gen.emulator.instructions.mma.operand_tiles import tile_offsets, tile_ranges
from fa4gen.emulator.instructions.tcgen05.commit import remember
from fa4gen.emulator.instructions.tcgen05.common import (
    check_columns,
    check_one_thread,
    cta_group,
    use_group,
)
from fa4gen.emulator.instructions.tcgen05.queue import Action, queue_of
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.machine import AsyncOp, Cta, SharedRange, TensorRange, Warpgroup
from fa4gen.emulator.state.memory import RESERVED_SHARED
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.state.tensor_memory import split_address
from fa4gen.emulator.translate.emit import Emitter

_BYTES_PER_CYCLE: Final = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """``rows`` of ``columns`` 32-bit cells; ``lanes`` are (first row, rows, first lane) each."""

    rows: int
    columns: int
    lanes: tuple[tuple[int, int, int], ...]


def _quarters(row_of: tuple[int, int, int, int]) -> tuple[tuple[int, int, int], ...]:
    return tuple((row, 32, 32 * number) for number, row in enumerate(row_of))


SHAPES: Final = {
    "128x256b": Shape(128, 8, ((0, 128, 0),)),
    "4x256b": Shape(4, 8, tuple((0, 4, 32 * number + 28) for number in range(4))),
    "128x128b": Shape(128, 4, ((0, 128, 0),)),
    "64x128b.warpx2::02_13": Shape(64, 4, _quarters((0, 32, 0, 32))),
    "64x128b.warpx2::01_23": Shape(64, 4, _quarters((0, 0, 32, 32))),
    "32x128b.warpx4": Shape(32, 4, _quarters((0, 0, 0, 0))),
}


class _Copy(Action):
    """A copy under way."""

    def __init__(
        self, wg: Warpgroup, lane: int, site: Instruction, ctas: tuple[Cta, ...], shape: Shape,
        source: Descriptor, column: int,
    ) -> None:  # fmt: skip
        self.wg, self.lane, self.site, self.ctas = wg, lane, site, ctas
        self.shape, self.source, self.column = shape, source, column

    def offsets(self) -> NDArray[np.int64]:
        """Bytes of shared memory, shape (rows, bytes of a row)."""
        return tile_offsets(self.source, True, self.shape.rows, self.shape.columns * 4, 1)

    def run(self) -> None:
        columns = slice(self.column, self.column + self.shape.columns)
        for cta in self.ctas:
            memory = cta.tensor_memory
            assert memory is not None
            if not memory.holds(columns.start, columns.stop):
                self.wg.machine.find(
                    "tensor-memory",
                    f"{self.site.text} completes after its columns were freed",
                    self.site, self.wg, only(self.wg, self.lane),
                )  # fmt: skip
                continue
            rows = np.ascontiguousarray(cta.shared.data[self.offsets()]).view(np.uint32)
            for first, count, lane in self.shape.lanes:
                memory.cells[lane : lane + count, columns] = rows[first : first + count]
                memory.mark(slice(lane, lane + count), columns)

    def reads(self) -> tuple[SharedRange, ...]:
        ranges = tile_ranges(self.source, True, self.shape.rows, self.shape.columns * 4, 1)
        return tuple(SharedRange(cta, start, stop) for cta in self.ctas for start, stop in ranges)

    def writes(self) -> tuple[TensorRange, ...]:
        last = self.column + self.shape.columns
        return tuple(
            TensorRange(cta, lane, lane + count, self.column, last)
            for cta in self.ctas
            for _, count, lane in self.shape.lanes
        )


def copy(i: Instruction, e: Emitter) -> None:
    """All shapes, without decompression."""
    group = cta_group(i, e)
    words = [word for word in i.modifiers[1:] if word != f"cta_group::{group}"]
    if words[-1:] == ["b6x16_p32"] or words[-1:] == ["b4x16_p64"]:
        raise e.refuse(
            "which bits of its byte an element of 4 or 6 bits gets: the PTX ISA says that in "
            "figures only"
        )
    shape = SHAPES.get(".".join(words))
    if shape is None:
        raise e.refuse("." + ".".join(words))
    if len(i.operands) != 2:
        raise e.refuse("an address and a descriptor were expected")
    goal, source = e.address(i.operands[0], "u32"), e.reader(i.operands[1], "b64")
    kind = "tcgen05.cp.4x256b" if shape.rows == 4 else "tcgen05.cp"

    def issue(wg: Warpgroup, lane: int, address: int, bits: int) -> None:
        machine = wg.machine
        mask = only(wg, lane)
        ctas = use_group(wg, mask, i, group)
        try:
            descriptor = descriptors.decode(bits, machine.sm)
        except DescriptorError as error:
            machine.fault("descriptor", str(error), i, wg, mask)
        if descriptor.atom != 16:
            machine.fault("descriptor", "atoms of 32 bytes are for operands of mma", i, wg, mask)
        first, column = split_address(address)
        if first:
            machine.fault(
                "tensor-memory", f"the destination {address:#x} is not in lane 0", i, wg, mask
            )
        for cta in ctas:
            check_columns(wg, mask, i, cta, "a copy to", column, column + shape.columns)
        action = _Copy(wg, lane, i, ctas, shape, descriptor, column)
        reads = action.reads()
        for part in reads:
            if part.start < RESERVED_SHARED or part.stop > part.cta.shared.size:
                machine.fault(
                    "out-of-bounds",
                    f"{shape.rows} rows at offset {descriptor.address} of shared memory are not "
                    f"inside that of {part.cta.label}",
                    i, wg, mask,
                )  # fmt: skip
        cycles = shape.rows * shape.columns * 4 / _BYTES_PER_CYCLE
        op = AsyncOp(kind, wg, lane, i, action.run, unit="tensor", cycles=cycles)
        if machine.observer.enabled:
            op.reads, op.tensor_writes = reads, action.writes()
        queue_of(wg, lane).submit(op, action)
        remember(wg, lane, op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_one_thread(wg, mask, i)
        goals, sources = goal(wg), source(wg)
        for lane in wg.lanes_of(mask).tolist():
            issue(wg, lane, pick(goals, lane), pick(sources, lane))

    e.call(handler)


def shift(i: Instruction, e: Emitter) -> None:
    """Refused."""
    raise e.refuse("whether row i moves to lane i + 1 or i - 1 is not documented")
