"""Matrices between shared memory and the registers of a warp.

PTX ISA: "ldmatrix", "stmatrix", "movmatrix". A row is 16 bytes; lane ``8 j + r`` gives the address
of row ``r`` of matrix ``j``, and lane ``16 j + r`` where matrices have 16 rows. Lane ``4 g + t``
holds of each matrix

* 8 by 8 elements of 16 bits: elements ``2 t`` and ``2 t + 1`` of row ``g``;
* 8 by 16 elements of 8 bits: elements ``4 t`` to ``4 t + 3`` of row ``g``;
* 16 by 16, transposed: rows ``4 t`` to ``4 t + 3`` of column ``g``, and of column ``g + 8`` in the
  next register;
* 16 by 8, transposed (stores; 8 rows in memory): rows ``2 t`` and ``2 t + 1`` of column ``g``, then
  of column ``g + 8``, which are the rows of the matrix.

Rows of packed elements have sixteen of 4 or 6 bits, then padding; they are loaded into the low bits
of bytes. The layouts of bytes are those that CUTLASS's copies expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.memory.access import (
    Access,
    Part,
    destination,
    lane_addresses,
    lane_values,
    put,
)
from fa4gen.emulator.instructions.mma import mma, wmma
from fa4gen.emulator.instructions.mma.layouts import check_whole_warps
from fa4gen.emulator.instructions.mma.operand_tiles import taken_apart
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.instructions.sync.warp import executing
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, WARPGROUP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_ROW_BYTES: Final = 16
_ROWS: Final = 8
_LANE: Final = np.arange(WARPGROUP_LANES) % WARP_LANES
_BYTES_SINCE: Final = 100
# the words of packed elements -> bits of one
_PACKED: Final = {"b6x16_p32": 6, "b4x16_p64": 4}


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers; ``bits`` of an element in memory, ``rows`` of a matrix there."""

    shape: str
    count: int
    transposed: bool
    space: str
    bits: int
    rows: int

    @property
    def registers(self) -> int:
        return self.count * (2 if self.shape == "m16n16" else 1)


def _form(i: Instruction, e: Emitter) -> _Form:
    words = Words(i, e)
    words.kind("sync")
    words.kind("aligned")
    loads = i.opcode == "ldmatrix"
    shape = words.kind("m8n8", "m8n16", "m16n16") if loads else words.kind("m8n8", "m16n8")
    count = int(words.kind("x1", "x2", "x4")[1:])
    transposed = words.has("trans")
    space = words.one("shared", "shared::cta") or "generic"
    bits, rows = 16, _ROWS
    if shape == "m8n8":
        words.kind("b16")
    else:
        if words.one("b8x16"):
            bits = _PACKED[words.kind(*_PACKED)]
        else:
            words.kind("b8")
            bits = 8
        packed = bits < 8
        if transposed != (shape != "m8n16") or (shape == "m8n16" and not packed):
            raise e.refuse(f".{shape} of this type, or its .trans")
        if packed and not loads:
            raise e.refuse("a store of packed elements")
        if shape == "m16n16":
            rows = 16
            if count > 2:
                raise e.refuse("four matrices of 16 rows")
    words.end(2)
    return _Form(shape, count, transposed, space, bits, rows)


def _items(operand: Operand, count: int, e: Emitter) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) != count:
        raise e.refuse(f"{count} registers were expected")
    return items


def _transpose(words: NDArray[Any]) -> NDArray[Any]:
    """Transpose matrices: (matrices, 32) words, two elements each."""
    elements = words.view(np.uint16).reshape(-1, _ROWS, _ROWS)
    return np.ascontiguousarray(elements.swapaxes(1, 2)).view(np.uint32).reshape(words.shape)


def _rows(
    access: Access, wg: Warpgroup, mask: Mask, addresses: Any, form: _Form
) -> tuple[list[Part], int]:
    """The addresses of the rows, one for each lane that provides an address, and their number."""
    if form.shape != "m8n8" and wg.machine.sm < _BYTES_SINCE:
        wg.machine.fault(
            "illegal-instruction", f".{form.shape} does not exist before sm_100", access.site, wg,
            mask,
        )  # fmt: skip
    givers = mask
    if form.count * form.rows < WARP_LANES:
        givers = executing(wg, mask) & (_LANE[: wg.lanes] < form.count * form.rows)
    row = lane_addresses(addresses, givers)
    number = wg.lanes if givers is None else int(np.count_nonzero(givers))
    if len(row) < number:
        row = np.repeat(row, number)
    parts = list(access.parts(wg, givers, row))
    for part in parts:
        if part.cta is None:
            wg.machine.fault(
                "out-of-bounds",
                f"{part.space} memory instead of shared",
                access.site,
                wg,
                part.mask,
            )
    return parts, number


def _loaded(words: NDArray[np.uint32], form: _Form) -> NDArray[np.uint32]:
    """The registers, (warps, registers, 32), of rows, (rows, 4 words)."""
    if form.shape == "m8n8":
        words = words.reshape(-1, WARP_LANES)
        if form.transposed:
            words = _transpose(words)
        return words.reshape(-1, form.count, WARP_LANES)
    elements = words.view(np.uint8)
    if form.bits < 8:
        elements = taken_apart(elements, form.bits)
    if form.shape == "m8n16":
        return np.ascontiguousarray(elements).view(np.uint32).reshape(-1, form.count, WARP_LANES)
    parts = elements.reshape(-1, form.count, 4, 4, 2, 8).transpose(0, 1, 4, 5, 2, 3)
    return np.ascontiguousarray(parts).view(np.uint32).reshape(-1, form.registers, WARP_LANES)


def _load(i: Instruction, e: Emitter) -> None:
    form = _form(i, e)
    rows = [destination(e, item, "b32") for item in _items(i.operands[0], form.registers, e)]
    address = e.address(i.operands[1], shared=form.space != "generic")
    access = Access(i, form.space, _ROW_BYTES, "read")
    # without the padding of packed elements, which may be unwritten
    used = Access(i, form.space, _ROW_BYTES if form.bits >= 8 else 2 * form.bits, "read")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        parts, number = _rows(access, wg, mask, address(wg), form)
        if len(parts) == 1:
            words = parts[0].gather(np.uint32, 4)
        else:
            words = np.empty((number, 4), np.uint32)
            for part in parts:
                words[part.places] = part.gather(np.uint32, 4)
        for part in parts:
            used.observe(wg, part)
        held = _loaded(np.ascontiguousarray(words), form)
        for register, row in enumerate(rows):
            if row is not None:
                put(row(wg), held[:, register].reshape(-1), mask)

    e.call(handler)


def _stored(words: NDArray[np.uint32], form: _Form) -> NDArray[np.uint32]:
    """The rows, (rows, 4 words), of registers (matrices of all warps, 32)."""
    if form.shape == "m8n8":
        return (_transpose(words) if form.transposed else words).reshape(-1, 4)
    parts = words.view(np.uint8).reshape(-1, 8, 4, 2, 2).transpose(0, 2, 4, 3, 1)
    return np.ascontiguousarray(parts).reshape(-1, _ROW_BYTES).view(np.uint32)


def _store(i: Instruction, e: Emitter) -> None:
    form = _form(i, e)
    items = [e.reader(item, "b32") for item in _items(i.operands[1], form.registers, e)]
    address = e.address(i.operands[0], shared=form.space != "generic")
    access = Access(i, form.space, _ROW_BYTES, "write")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        parts, _ = _rows(access, wg, mask, address(wg), form)
        lanes = [lane_values(item(wg), wg, mask).reshape(-1, WARP_LANES) for item in items]
        words = _stored(np.stack(lanes, axis=1).reshape(-1, WARP_LANES), form)
        for part in parts:
            values = words if part.places is None else words[part.places]
            access.observe(wg, part, values)
            part.scatter(values)
        wg.machine.progress()

    e.call(handler)


def _move(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("sync", "aligned", "m8n8", "trans", "b16") or len(i.operands) != 2:
        raise e.refuse("modifiers or operands")
    row = destination(e, i.operands[0], "b32")
    read = e.reader(i.operands[1], "b32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        words = lane_values(read(wg), wg, mask).reshape(-1, WARP_LANES)
        if row is not None:
            put(row(wg), _transpose(words).reshape(-1), mask)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "ldmatrix": _load,
    "stmatrix": _store,
    "movmatrix": _move,
    "mma": mma.translate,
    **wmma.TRANSLATIONS,
}
