"""The registers in which a warp's lanes hold ``mma.sync`` matrices (PTX ISA, "Matrix Fragments").

Lane ``4 g + t`` holds rows ``g`` and ``g + 8`` of A and of the accumulator, and column ``g`` of B.
A 32-bit register of A or B has ``e`` elements that follow each other along K, from ``e t`` on; the
next register continues ``4 e`` further (in A of 16 rows, first the one with row ``g + 8``). The
accumulator's columns are ``2 t`` and ``2 t + 1``. So every layout is a matter of transposing axes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.sync.warp import executing, per_warp
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.translate.emit import Reader

_FULL_WARP = 0xFFFFFFFF
_BYTE: Final = 8


def check_whole_warps(site: Instruction, wg: Warpgroup, mask: Mask) -> None:
    """Stop unless every warp that takes part does so with all of its 32 lanes."""
    if mask is None and wg.lanes % WARP_LANES == 0:
        return
    there = per_warp(executing(wg, mask))
    partial = (there != 0) & (there != _FULL_WARP)
    if partial.any():
        warp = int(partial.argmax())
        wg.machine.fault(
            "partial-warp",
            f"{int(there[warp]).bit_count()} lanes of warp {wg.first_thread // WARP_LANES + warp}"
            f" execute {site.text}, which takes all 32",
            site,
            wg,
            mask,
        )


def registers(wg: Warpgroup, readers: list[Reader], dtype: Any) -> NDArray[Any]:
    """Registers of a warpgroup's warps: (registers, warps, 32); zeros for lanes that are not."""
    rows = np.zeros((len(readers), wg.warps * WARP_LANES), dtype)
    for row, read in zip(rows, readers, strict=True):
        row[: wg.lanes] = read(wg)
    return rows.reshape(len(readers), wg.warps, WARP_LANES)


def elements(words: NDArray[Any], bits: int) -> NDArray[Any]:
    """The elements of registers, low bits first: those of each register follow each other."""
    if bits >= _BYTE:
        return words.view(np.dtype(f"u{bits // _BYTE}"))
    places = np.arange(0, 32, bits, dtype=np.uint32)
    parts = words[..., None] >> places & np.uint32((1 << bits) - 1)
    return parts.astype(np.uint8).reshape(*words.shape[:-1], -1)


def a_tile(parts: NDArray[Any], m: int) -> NDArray[Any]:
    """A, (warps, m, k), from the elements of its registers, (registers, warps, elements)."""
    count, warps, _ = parts.shape
    parts = parts.reshape(count * 8 // m, m // 8, warps, 8, 4, -1)
    tile: NDArray[Any] = parts.transpose(2, 1, 3, 0, 4, 5).reshape(warps, m, -1)
    return tile


def b_tile(parts: NDArray[Any]) -> NDArray[Any]:
    """B transposed, (warps, 8, k), from the elements of its registers."""
    count, warps, _ = parts.shape
    parts = parts.reshape(count, warps, 8, 4, -1)
    tile: NDArray[Any] = parts.transpose(1, 2, 0, 3, 4).reshape(warps, 8, -1)
    return tile


def accumulator_tile(words: NDArray[Any], element: Any, m: int) -> NDArray[Any]:
    """The accumulator, (warps, m, 8), from its registers."""
    _, warps, _ = words.shape
    parts = words.view(element)
    ordered: NDArray[Any]
    if words.itemsize == parts.itemsize:
        ordered = parts.reshape(m // 8, 2, warps, 8, 4).transpose(2, 0, 3, 4, 1)
    else:
        ordered = parts.reshape(m // 8, warps, 8, 4, 2).transpose(1, 0, 2, 3, 4)
    return ordered.reshape(warps, m, 8)


def accumulator_registers(tile: NDArray[Any], packed: bool) -> NDArray[Any]:
    """The registers, (registers, lanes), of an accumulator (warps, m, 8).

    ``packed``: two 16-bit elements to a register, which comes as uint32.
    """
    warps, m, _ = tile.shape
    parts = tile.reshape(warps, m // 8, 8, 4, 2)
    rows: NDArray[Any]
    if packed:
        pairs = np.ascontiguousarray(parts.transpose(1, 0, 2, 3, 4))
        rows = pairs.view(np.uint32).reshape(m // 8, -1)
    else:
        rows = parts.transpose(1, 4, 0, 2, 3).reshape(m // 4, -1)
    return rows
