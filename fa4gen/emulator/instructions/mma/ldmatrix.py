"""Matrices of 8 x 8 16-bit elements between shared memory and the registers of a warp.

PTX ISA: "ldmatrix", "stmatrix", "movmatrix". Lane ``8 j + r`` gives the address of row ``r`` of
matrix ``j``; lane ``4 r + t`` holds elements ``2 t`` and ``2 t + 1`` of row ``r`` of each matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def _form(i: Instruction, e: Emitter) -> tuple[int, bool, str]:
    """Number of matrices, whether they are transposed, and the space."""
    words = Words(i, e)
    words.kind("sync")
    words.kind("aligned")
    words.kind("m8n8")
    count = int(words.kind("x1", "x2", "x4")[1:])
    transposed = words.has("trans")
    space = words.one("shared", "shared::cta") or "generic"
    words.kind("b16")
    words.end(2)
    return count, transposed, space


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
    access: Access, wg: Warpgroup, mask: Mask, addresses: Any, count: int
) -> tuple[list[Part], int]:
    """Where the rows are, one for each lane that gives an address, and how many."""
    givers = mask
    if count * _ROWS < WARP_LANES:
        givers = executing(wg, mask) & (_LANE[: wg.lanes] < count * _ROWS)
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


def _load(i: Instruction, e: Emitter) -> None:
    count, transposed, space = _form(i, e)
    rows = [destination(e, item, "b32") for item in _items(i.operands[0], count, e)]
    address = e.address(i.operands[1], shared=space != "generic")
    access = Access(i, space, _ROW_BYTES, "read")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        parts, number = _rows(access, wg, mask, address(wg), count)
        if len(parts) == 1:
            words = parts[0].gather(np.uint32, 4)
        else:
            words = np.empty((number, 4), np.uint32)
            for part in parts:
                words[part.places] = part.gather(np.uint32, 4)
        for part in parts:
            access.observe(wg, part)
        words = words.reshape(-1, WARP_LANES)
        if transposed:
            words = _transpose(words)
        words = words.reshape(-1, count, WARP_LANES)
        for matrix, row in enumerate(rows):
            if row is not None:
                put(row(wg), words[:, matrix].reshape(-1), mask)

    e.call(handler)


def _store(i: Instruction, e: Emitter) -> None:
    count, transposed, space = _form(i, e)
    items = [e.reader(item, "b32") for item in _items(i.operands[1], count, e)]
    address = e.address(i.operands[0], shared=space != "generic")
    access = Access(i, space, _ROW_BYTES, "write")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        parts, number = _rows(access, wg, mask, address(wg), count)
        lanes = [lane_values(item(wg), wg, mask).reshape(-1, WARP_LANES) for item in items]
        words = np.stack(lanes, axis=1).reshape(-1, WARP_LANES)
        if transposed:
            words = _transpose(words)
        words = words.reshape(number, 4)
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
