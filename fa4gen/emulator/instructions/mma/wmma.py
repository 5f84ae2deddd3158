"""``wmma``: matrices whose fragments only ``wmma`` instructions understand (PTX ISA, "wmma").

PTX leaves open which lane holds which element. Here lane ``l`` holds the elements from ``l p`` on,
``p`` to a lane, of the matrix in row-major order; registers beyond these hold them once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.memory.access import (
    Access,
    Offsets,
    lane_addresses,
    lane_values,
    put,
)
from fa4gen.emulator.instructions.mma.layouts import check_whole_warps, registers
from fa4gen.emulator.instructions.mma.mma import multiply_add
from fa4gen.emulator.instructions.mma.operand_tiles import values_of
from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Register, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, WARPGROUP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_SIZES: Final = {
    "f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1, "f32": 4, "s32": 4,
}  # fmt: skip
_SHAPES: Final = {
    "m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16),
    "m16n16k8": (16, 16, 8),
}  # fmt: skip
_WIDE: Final = ("m16n16k16", "m32n8k16", "m8n32k16")
_ACCUMULATORS: Final = ("f16", "f32", "s32")
_LANE: Final = np.arange(WARPGROUP_LANES) % WARP_LANES
# 16-bit floating-point operands fill eight registers whatever the shape
_HALF_REGISTERS: Final = 8


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A matrix of ``rows`` by ``columns`` elements in ``registers`` 32-bit registers of a lane."""

    rows: int
    columns: int
    kind: str
    registers: int

    @property
    def raw(self) -> Any:
        """The type of an element's bits."""
        return np.dtype(f"u{_SIZES[self.kind]}")

    @property
    def per_lane(self) -> int:
        return self.rows * self.columns // WARP_LANES

    def tile(self, words: NDArray[Any]) -> NDArray[Any]:
        """The matrices (warps, rows, columns) from registers (registers, warps, 32)."""
        held = np.ascontiguousarray(words.transpose(1, 2, 0)).view(self.raw)
        mine = held[:, :, : self.per_lane]
        tiles: NDArray[Any] = mine.reshape(len(held), self.rows, self.columns)
        return tiles

    def words(self, tile: NDArray[Any]) -> NDArray[Any]:
        """Registers (registers, lanes) from raw elements of the matrices."""
        mine = tile.reshape(-1, self.per_lane)
        copies = self.registers * 4 // self.raw.itemsize // self.per_lane
        held = np.ascontiguousarray(np.tile(mine, (1, copies))).view(np.uint32)
        return np.ascontiguousarray(held.T)


def _fragment(role: str, shape: str, kind: str, e: Emitter) -> _Fragment:
    m, n, k = _SHAPES[shape]
    rows, columns = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    operand = role in "ab"
    if operand and (kind in ("f32", "s32") or (kind == "tf32") != (k == 8)):
        raise e.refuse(f".{kind} of {shape}")
    if not operand and kind not in _ACCUMULATORS:
        raise e.refuse(f"an accumulator of .{kind}")
    count = rows * columns * _SIZES[kind] // 4 // WARP_LANES
    return _Fragment(rows, columns, kind, _HALF_REGISTERS if operand and kind == "f16" else count)


def _items(operand: Operand, fragment: _Fragment, e: Emitter) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector) or len(operand.items) != fragment.registers:
        raise e.refuse(f"a vector of {fragment.registers} registers was expected")
    return operand.items


class _Place:
    """The place of a matrix in memory: the operands of a load or store."""

    def __init__(self, i: Instruction, e: Emitter, role: str, address: Operand) -> None:
        words = Words(i, e)
        words.kind("load" if i.modifiers[0] == "load" else "store")
        words.kind(role)
        words.kind("sync")
        words.kind("aligned")
        self.by_rows = words.kind("row", "col") == "row"
        shape = words.kind(*_SHAPES)
        space = words.one("global", "shared", "shared::cta") or "generic"
        kind = words.kind(*_SIZES)
        words.end(2, 3)
        self.fragment = _fragment(role, shape, kind, e)
        self.address = e.address(address, shared=space.startswith("shared"))
        self.stride: Reader | None = None
        if len(i.operands) == 3:
            self.stride = e.reader(i.operands[2], "u32")
        access = "read" if i.modifiers[0] == "load" else "write"
        self.access = Access(i, space, self.fragment.raw.itemsize, access)

    def elements(self, wg: Warpgroup, mask: Mask) -> Offsets:
        """The address of each element that a lane holds: (elements of a lane, lanes)."""
        fragment = self.fragment
        lanes = wg.lanes_of(mask)
        index = _LANE[lanes] * fragment.per_lane + np.arange(fragment.per_lane)[:, None]
        row, column = np.divmod(index, fragment.columns)
        across, along = (row, column) if self.by_rows else (column, row)
        if self.stride is None:
            stride: Any = fragment.columns if self.by_rows else fragment.rows
        else:
            stride = lane_values(self.stride(wg), wg, mask).astype(np.int64)
        start = lane_addresses(self.address(wg), mask)
        places: Offsets = start + (across * stride + along) * fragment.raw.itemsize
        return places


def _load(i: Instruction, e: Emitter) -> None:
    role = i.modifiers[1]
    if role not in ("a", "b", "c"):
        raise e.refuse(f".{role}")
    place = _Place(i, e, role, i.operands[1])
    fragment = place.fragment
    targets = _items(i.operands[0], fragment, e)
    if not all(isinstance(item, Register) and item.cls == "r" for item in targets):
        raise e.refuse("32-bit registers were expected")
    rows = [item.index for item in targets if isinstance(item, Register)]

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        elements = place.elements(wg, mask)
        held = np.empty(elements.shape, fragment.raw)
        for number, addresses in enumerate(elements):
            for part in place.access.parts(wg, mask, addresses):
                where: Any = slice(None) if part.places is None else part.places
                held[number, where] = part.gather(fragment.raw, 1)
                place.access.observe(wg, part)
        for index, words in zip(rows, fragment.words(np.ascontiguousarray(held.T)), strict=True):
            put(wg.U32[index], words, mask)

    e.call(handler)


def _store(i: Instruction, e: Emitter) -> None:
    if i.modifiers[1] != "d":
        raise e.refuse(f".{i.modifiers[1]}")
    place = _Place(i, e, "d", i.operands[0])
    fragment = place.fragment
    readers = [e.reader(item, "b32") for item in _items(i.operands[1], fragment, e)]

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        words = np.stack([lane_values(read(wg), wg, mask) for read in readers])
        held = np.ascontiguousarray(words.T).view(fragment.raw)
        for number, addresses in enumerate(place.elements(wg, mask)):
            values = np.ascontiguousarray(held[:, number])
            for part in place.access.parts(wg, mask, addresses):
                mine = values if part.places is None else values[part.places]
                place.access.observe(wg, part, mine)
                part.scatter(mine)
        wg.machine.progress()

    e.call(handler)


def _product(i: Instruction, e: Emitter) -> None:
    if "f64" in i.modifiers:
        raise e.refuse("fragments of .f64; mma.sync has products of that type")
    words = Words(i, e)
    words.kind("mma")
    words.kind("sync")
    words.kind("aligned")
    words.kind("row", "col")
    words.kind("row", "col")
    shape = words.kind(*_SHAPES)
    saturates = words.has("satfinite")
    kinds = [kind for kind in i.modifiers if kind in _SIZES]
    for kind in kinds:
        words.kind(kind)
    words.end(4)
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    if len(kinds) != 4:
        raise e.refuse("types")
    _check_types(kinds, shape, saturates, e)
    roles = zip("dabc", kinds, i.operands, strict=True)
    parts = [(_fragment(role, shape, kind, e), operand) for role, kind, operand in roles]
    (d, target), *sources = parts
    writers = [e.writer(item, "b32") for item in _items(target, d, e)]
    readers = [
        [e.reader(item, "b32") for item in _items(operand, fragment, e)]
        for fragment, operand in sources
    ]
    types = {"f16": np.float16, "f32": np.float32, "s32": np.int32}

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        a, b, c = (
            fragment.tile(registers(wg, reads, np.uint32))
            for (fragment, _), reads in zip(sources, readers, strict=True)
        )
        left, right = (
            values_of(tile, kind).astype(np.float32, copy=False)
            for tile, kind in ((a, kinds[1]), (b, kinds[2]))
        )
        start = c.view(types[kinds[3]])
        if kinds[0] != kinds[3]:
            start = start.astype(np.float32)
        total = multiply_add(left, right.transpose(0, 2, 1), start, saturates)
        result = np.ascontiguousarray(total.astype(types[kinds[0]], copy=False)).view(d.raw)
        for write, row in zip(writers, d.words(result), strict=True):
            write(wg, row[: wg.lanes], mask)

    e.call(handler)


def _check_types(kinds: list[str], shape: str, saturates: bool, e: Emitter) -> None:
    """Refuse combinations that do not exist."""
    d, a, b, c = kinds
    legal = {
        "f16": d in ("f16", "f32") and c in ("f16", "f32"),
        "bf16": d == c == "f32",
        "tf32": d == c == "f32",
        "s8": d == c == "s32",
        "u8": d == c == "s32",
    }
    if a != b or not legal.get(a, False) or (shape in _WIDE) == (a == "tf32"):
        raise e.refuse("this combination of shape and types")
    if saturates and d != "s32":
        raise e.refuse(".satfinite")


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "wmma.load": _load,
    "wmma.store": _store,
    "wmma.mma": _product,
}
