"""Loads, stores, waits and fences of tensor memory (PTX ISA, "tcgen05.ld" to "tcgen05.fence").

A load writes its registers at once, since the use of a loaded register is always ordered after the
load; the observer keeps the load open until ``tcgen05.wait::ld``. A store takes effect at the
latest at ``tcgen05.wait::st``; the stores of a warpgroup take effect in order. Where 16-bit values
are packed, all columns of the shape, ``immHalfSplit`` included, count twice [?]; ``.unpack::16b``
clears the upper half of the cells it writes [?].
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.tcgen05 import load_reduction
from fa4gen.emulator.instructions.tcgen05.common import (
    check_columns,
    per_warp,
    rectangle,
    report_uninitialised,
    wants_uninitialised,
    whole_warps,
)
from fa4gen.emulator.instructions.tcgen05.queue import Action, InOrder
from fa4gen.emulator.instructions.tcgen05.shapes import SHAPES, SPLIT_SHAPE, Cells, Shape, place
from fa4gen.emulator.ptx.syntax import Address, Immediate, Instruction, Operand, Register, Vector
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, TensorRange, Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.state.tensor_memory import COLUMNS, TensorMemory, split_address
from fa4gen.emulator.translate.emit import Emitter

_REDUCING = 103
_LOW = np.uint32(0xFFFF)
_HALF = np.uint32(16)


def _shape(i: Instruction, e: Emitter, pack: str) -> Shape:
    """The modifiers after ``ld``, ``ld.red`` or ``st``."""
    reduces = "red" in i.modifiers
    words = list(i.modifiers[2 if reduces else 1 :])
    name = next((word for word in words if word in SHAPES), None)
    count = next((word for word in words if word[:1] == "x" and word[1:].isdigit()), None)
    if name is None or count is None:
        raise e.refuse("a shape and a number of repetitions were expected")
    packed = pack in words
    rest = [word for word in words if word not in (name, count, pack)]
    if rest[:2] != ["sync", "aligned"] or (not reduces and rest[2:] != ["b32"]):
        raise e.refuse("modifiers")
    operands = len(i.operands) - reduces
    if reduces and (packed or count == "x1" or name not in load_reduction.SHAPES):
        raise e.refuse(f".{name}.{count} with .red")
    each, most = SHAPES[name]
    times = int(count[1:])
    if times & (times - 1) or not 1 <= times <= most:
        raise e.refuse(f".{count} with .{name}")
    split = 0
    if name == SPLIT_SHAPE:
        last = i.operands[-1]
        if operands != 3:
            raise e.refuse(f".{SPLIT_SHAPE} needs the distance of its halves")
        number = last if isinstance(last, Immediate) else i.operands[1]
        if not isinstance(number, Immediate):
            raise e.refuse("the distance of the halves is a literal")
        split = number.bits
        if not 0 <= split < COLUMNS:
            raise e.refuse(f"the halves are {split} columns apart")
    elif operands != 2:
        raise e.refuse("an address and registers were expected")
    return Shape(name, each * times, split, packed)


def _registers(e: Emitter, operand: Operand, shape: Shape) -> slice | NDArray[np.int64]:
    """The rows of the register file that hold the data."""
    if not isinstance(operand, Vector):
        raise e.refuse("registers in braces were expected")
    items = operand.items
    if len(items) != shape.registers:
        raise e.refuse(f"{len(items)} registers instead of {shape.registers}")
    indices = []
    for item in items:
        if not isinstance(item, Register) or item.cls != "r":
            raise e.refuse("32-bit registers were expected")
        indices.append(item.index)
    first = indices[0]
    if indices == list(range(first, first + len(indices))):
        return slice(first, first + len(indices))
    return np.array(indices)


def _base(e: Emitter, operand: Operand) -> Any:
    if not isinstance(operand, Address) or operand.coordinates is not None:
        raise e.refuse("an address in brackets was expected")
    return e.address(operand, "u32")


@lru_cache(maxsize=4096)
def _located(
    shape: Shape, warps: tuple[int, ...], addresses: tuple[int, ...]
) -> tuple[tuple[tuple[Cells, int], ...], tuple[int, int] | None]:
    """The cells of warps, and the first (warp, address) with a lane outside of the warp's quarter.

    A warp reaches the quarter of its number modulo four and no other, whatever its address says:
    of the lane only the place within the quarter counts, 0, or 16 with shapes of 16 lanes. Raises
    LookupError with the (warp, address) of any other place.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    odd = None
    for warp, address in zip(warps, addresses, strict=True):
        lane, column = split_address(address)
        quarter, offset = divmod(lane, WARP_LANES)
        if offset != 0 and not (offset == 16 and shape.lanes == 16):
            raise LookupError(warp, address)
        if quarter != warp % 4 and odd is None:
            odd = warp, address
        groups.setdefault((offset, column), []).append(warp)
    cells = tuple(
        (place(shape, tuple(members), offset), column)
        for (offset, column), members in groups.items()
    )
    return cells, odd


def _places(
    wg: Warpgroup, mask: Mask, site: Instruction, shape: Shape, row: Any
) -> tuple[tuple[Cells, int], ...]:
    """The cells of the warps that take part, and their first column; those alike together."""
    warps = whole_warps(wg, mask, site)
    addresses = per_warp(wg, mask, warps, row, site, "taddr")
    try:
        cells, odd = _located(shape, warps, tuple(addresses))
    except LookupError as error:
        warp, address = error.args
        wg.machine.fault(
            "tensor-memory",
            f"{_reach(wg, warp, address)} and starts "
            f"{'there' if shape.lanes == WARP_LANES else 'there or 16 lanes on'}",
            site, wg, mask,
        )  # fmt: skip
    if odd is not None:
        wg.machine.remark(
            "tensor-memory",
            f"{_reach(wg, *odd)}, which it takes whatever the address says",
            site, wg, mask,
        )  # fmt: skip
    return cells


def _reach(wg: Warpgroup, warp: int, address: int) -> str:
    first = warp % 4 * WARP_LANES
    return (
        f"lane {split_address(address)[0]} of tensor memory in address {address:#x}; warp "
        f"{wg.first_thread // WARP_LANES + warp} reaches lanes {first} to {first + 31}"
    )


def _prepare(
    wg: Warpgroup, mask: Mask, site: Instruction, cells: Cells, column: int, what: str
) -> tuple[TensorMemory, list[TensorRange]]:
    """Check the columns; return their memory, and the rectangles if an observer needs them."""
    for first, stop in cells.spans:
        memory = check_columns(wg, mask, site, wg.cta, what, column + first, column + stop)
    if not wg.machine.observer.enabled:
        return memory, []
    ranges = []
    for first_lane, lanes in _runs(cells.lanes):
        for first, stop in cells.spans:
            ranges.append(rectangle(wg.cta, first_lane, lanes, column + first, stop - first))
    return memory, ranges


def _runs(lanes: slice | NDArray[np.int64]) -> list[tuple[int, int]]:
    """Consecutive lanes as (first, count)."""
    if isinstance(lanes, slice):
        return [(lanes.start, lanes.stop - lanes.start)]
    breaks = np.flatnonzero(np.diff(lanes) != 1) + 1
    return [(int(part[0]), len(part)) for part in np.split(lanes, breaks)]


def _index(cells: Cells, column: int) -> tuple[Any, Any]:
    """Indices of the cells as (lanes, columns), both halves of packed ones left out."""
    flat = cells.flat + column
    return flat // COLUMNS, flat % COLUMNS


def load(i: Instruction, e: Emitter) -> None:
    """``tcgen05.ld`` and ``tcgen05.ld.red``."""
    shape = _shape(i, e, "pack::16b")
    rows = _registers(e, i.operands[0], shape)
    reduction: load_reduction.Reduction | None = None
    if "red" in i.modifiers:
        known = (*SHAPES, "sync", "aligned", "ld", "red")
        words = [word for word in i.modifiers if word not in known and word[0] != "x"]
        reduction = load_reduction.parse(i, e, words)
    base = _base(e, i.operands[1 if reduction is None else 2])

    def handler(wg: Warpgroup, mask: Mask) -> None:
        block = wg.block("r")
        machine = wg.machine
        if reduction is not None and machine.sm < _REDUCING:
            machine.fault(
                "illegal-instruction", f"{i.text} does not exist before sm_103", i, wg, mask
            )
        check = wants_uninitialised(machine)
        for cells, column in _places(wg, mask, i, shape, base(wg)):
            memory, ranges = _prepare(wg, mask, i, cells, column, "a load from")
            if ranges:
                machine.observer.tensor_access(wg, mask, ranges, "read", i)
            if check:
                _check_written(wg, mask, i, memory, shape, cells, column)
            values = _fetch(memory, shape, cells, column)
            _assign(block, rows, cells, values)
            if reduction is not None:
                block[reduction.target, cells.threads] = reduction.apply(values)

    e.call(handler)


def _fetch(memory: TensorMemory, shape: Shape, cells: Cells, column: int) -> NDArray[np.uint32]:
    """Values of the registers: (registers, threads)."""
    if cells.plain:
        return memory.cells[cells.lanes, column : column + shape.registers].T
    values: NDArray[np.uint32] = memory.cells.reshape(-1).take(cells.flat + column)
    if shape.packed:
        high = memory.cells.reshape(-1).take(cells.flat + (column + 1))
        values = values & _LOW | high << _HALF
    return values


def _assign(
    block: NDArray[np.uint32], rows: slice | NDArray[np.int64], cells: Cells,
    values: NDArray[np.uint32],
) -> None:  # fmt: skip
    if isinstance(rows, slice) or isinstance(cells.threads, slice):
        block[rows, cells.threads] = values
    else:
        block[np.ix_(rows, cells.threads)] = values


def _check_written(
    wg: Warpgroup, mask: Mask, site: Instruction, memory: TensorMemory, shape: Shape, cells: Cells,
    column: int,
) -> None:  # fmt: skip
    for first, stop in cells.spans:
        if not memory.full(column + first, column + stop):
            break
    else:
        return
    if shape.lanes == WARP_LANES and not shape.packed:
        # a warp loads all its lanes, but a product of 64 rows leaves every other 16 of them alone
        written = memory.written.reshape(-1)[cells.flat + column]
        full, empty = (one.reshape(-1, WARP_LANES) for one in (written.all(0), ~written.any(0)))
        if (full | empty).all() and full.any(axis=1).all():
            if empty.any():
                wg.machine.remark(
                    "uninitialised",
                    "a warp loads all its lanes of tensor memory, and "
                    f"{int(empty.sum(1).max())} of them hold nothing that was written: undefined, "
                    "harmless while unused",
                    site, wg, mask,
                )  # fmt: skip
            return
    lanes, columns = _index(cells, column)
    if shape.packed:
        lanes, columns = np.concatenate([lanes, lanes]), np.concatenate([columns, columns + 1])
    if not memory.written[lanes, columns].all():
        report_uninitialised(wg, mask, site, memory, "a load from", lanes, columns)


def store(i: Instruction, e: Emitter) -> None:
    """``tcgen05.st``."""
    shape = _shape(i, e, "unpack::16b")
    rows = _registers(e, i.operands[-1], shape)
    base = _base(e, i.operands[0])

    def handler(wg: Warpgroup, mask: Mask) -> None:
        block = wg.block("r")
        machine = wg.machine
        for cells, column in _places(wg, mask, i, shape, base(wg)):
            memory, ranges = _prepare(wg, mask, i, cells, column, "a store to")
            if ranges:
                machine.observer.tensor_access(wg, mask, ranges, "write", i)
            if isinstance(rows, slice) or isinstance(cells.threads, slice):
                values = block[rows, cells.threads].copy()
            else:
                values = block[np.ix_(rows, cells.threads)]
            effect = _Store(wg, mask, i, memory, shape, cells, column, values)
            op = AsyncOp("tcgen05.st", wg, wg.first_lane(mask), i, effect.run)
            _STORES.of(wg).submit(op, effect, quiet=True)

    e.call(handler)


class _Store(Action):
    """A store under way: its data and place."""

    def __init__(
        self, wg: Warpgroup, mask: Mask, site: Instruction, memory: TensorMemory, shape: Shape,
        cells: Cells, column: int, values: NDArray[np.uint32],
    ) -> None:  # fmt: skip
        self.wg, self.mask, self.site = wg, mask, site
        self.memory, self.shape, self.cells, self.column = memory, shape, cells, column
        self.values = values

    def run(self) -> None:
        memory, cells, column, values = self.memory, self.cells, self.column, self.values
        for first, stop in cells.spans:
            if not memory.holds(column + first, column + stop):
                self.wg.machine.find(
                    "tensor-memory",
                    "the columns of a store were freed before it was complete",
                    self.site, self.wg, self.mask,
                )  # fmt: skip
                return
        if cells.plain:
            columns = slice(column, column + self.shape.registers)
            memory.cells[cells.lanes, columns] = values.T
            memory.mark(cells.lanes, columns)
            return
        parts = [(cells.flat + column, values)]
        if self.shape.packed:
            parts = [
                (cells.flat + column, values & _LOW),
                (cells.flat + (column + 1), values >> _HALF),
            ]
        for flat, part in parts:
            memory.cells.reshape(-1)[flat] = part
            memory.written.reshape(-1)[flat] = True


_STORES: Final = Attached[Warpgroup, InOrder](lambda wg: InOrder(wg.machine))


def _no_operands(i: Instruction, e: Emitter, words: tuple[str, ...]) -> None:
    if i.modifiers != words or i.operands:
        raise e.refuse(f"tcgen05.{'.'.join(words)} without operands was expected")


def wait_load(i: Instruction, e: Emitter) -> None:
    """``tcgen05.wait::ld``: all earlier loads of these threads have read."""
    _no_operands(i, e, ("wait::ld", "sync", "aligned"))

    def handler(wg: Warpgroup, mask: Mask) -> None:
        whole_warps(wg, mask, i)
        wg.machine.observer.tensor_waited(wg, mask, "read")

    e.call(handler)


def wait_store(i: Instruction, e: Emitter) -> None:
    """``tcgen05.wait::st``: all earlier stores of these threads are in the cells."""
    _no_operands(i, e, ("wait::st", "sync", "aligned"))

    def handler(wg: Warpgroup, mask: Mask) -> None:
        whole_warps(wg, mask, i)
        _STORES.of(wg).complete_all()
        wg.machine.observer.tensor_waited(wg, mask, "write")

    e.call(handler)


def fence(i: Instruction, e: Emitter) -> None:
    """``tcgen05.fence::before_thread_sync`` and ``::after_thread_sync``: for the observer."""
    if len(i.modifiers) != 1 or i.operands:
        raise e.refuse("a fence without operands was expected")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        wg.machine.observer.fence(wg, mask, i.text, i)

    e.call(handler)
