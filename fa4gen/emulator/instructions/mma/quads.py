"""``mma.m8n8k4`` over f16: four products of a warp at once (PTX ISA, "mma.m8n8k4").

Lanes 4 q to 4 q + 3 and 16 more, the high group, work on product q; every fragment is given by
lane and element.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.mma.layouts import check_whole_warps, registers
from fa4gen.emulator.instructions.mma.products import added, sums_of_products
from fa4gen.emulator.instructions.scalar.rows.ieee import canonical
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter

SHAPE: Final = "m8n8k4"
_LANE: Final = np.arange(32)[:, None]
_QUAD: Final = _LANE // 4 % 4
_HIGH: Final = _LANE // 16
_DTYPES: Final[dict[str, Any]] = {"f16": np.float16, "f32": np.float32}


def _operand(along_k: bool) -> tuple[Any, Any, Any]:
    """(product, row of A or column of B, k) of the four elements of each lane."""
    element, lane = np.arange(4)[None, :], _LANE % 4 + 0 * np.arange(4)
    here = element + 0 * lane
    inside, k = (lane, here) if along_k else (here, lane)
    return _QUAD + 0 * here, inside + 4 * _HIGH, k


def _accumulator(kind: str) -> tuple[Any, Any, Any]:
    """(product, row, column) of the eight elements of each lane."""
    element = np.arange(8)[None, :]
    if kind == "f16":
        row, column = _LANE % 4 + 0 * element, element + 0 * _LANE
    else:
        row, column = (_LANE & 1) + (element & 2), (element & 4) + (_LANE & 2) + (element & 1)
    return _QUAD + 0 * element, row + 4 * _HIGH, column


def _items(operand: Operand, count: int, e: Emitter) -> tuple[Operand, ...]:
    if not isinstance(operand, Vector) or len(operand.items) != count:
        raise e.refuse(f"a vector of {count} registers was expected")
    return operand.items


def _lanes(words: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Elements (warps, 32, elements) from registers (registers, warps, 32)."""
    return np.ascontiguousarray(words.transpose(1, 2, 0)).view(dtype)


def translate(i: Instruction, e: Emitter) -> None:
    """``mma.sync.aligned.m8n8k4`` with types d, f16, f16 and c."""
    _, _, _, a_layout, b_layout, *types = i.modifiers
    if {a_layout, b_layout} - {"row", "col"} or len(types) != 4 or len(i.operands) != 4:
        raise e.refuse("layouts, four types and four operands were expected")
    d_kind, *inputs, c_kind = types
    if inputs != ["f16", "f16"] or d_kind not in _DTYPES or c_kind not in _DTYPES:
        raise e.refuse("this combination of shape and types")
    counts = {"f16": 4, "f32": 8}
    d, a, b, c = i.operands
    writers = [e.writer(item, "b32") for item in _items(d, counts[d_kind], e)]
    readers = [
        [e.reader(item, "b32") for item in _items(operand, count, e)]
        for operand, count in ((a, 2), (b, 2), (c, counts[c_kind]))
    ]
    at_a, at_b = _operand(a_layout == "row"), _operand(b_layout == "col")
    at_c, at_d = _accumulator(c_kind), _accumulator(d_kind)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_whole_warps(i, wg, mask)
        left = np.zeros((wg.warps, 4, 8, 4), np.float32)
        right, start = np.zeros_like(left), np.zeros((wg.warps, 4, 8, 8), np.float32)
        for tile, at, reads, kind in (
            (left, at_a, readers[0], "f16"), (right, at_b, readers[1], "f16"),
            (start, at_c, readers[2], c_kind),
        ):  # fmt: skip
            tile[:, *at] = _lanes(registers(wg, reads, np.uint32), _DTYPES[kind])
        total = added(start, sums_of_products(left, right))
        result = canonical(total.astype(_DTYPES[d_kind]), d_kind)[:, *at_d]
        rows = np.ascontiguousarray(result).view(np.uint32).reshape(-1, len(writers)).T
        for write, row in zip(writers, rows, strict=True):
            write(wg, row[: wg.lanes], mask)

    e.call(handler)
